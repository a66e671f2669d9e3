"""Hooks of coding agents, as processes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.mcp.clients import client_of
from keepstone.mcp.hooks import EVENTS
from keepstone.mcp.project import agent_of

from .processes import command

CLAUDE: list[dict[str, Any]] = [
    {
        "type": "user",
        "uuid": "u1",
        "timestamp": "2026-01-11T14:31:00Z",
        "message": {"role": "user", "content": "Hi"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "timestamp": "2026-01-11T14:32:00Z",
        "message": {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hello"}],
        },
    },
    {
        "type": "user",
        "uuid": "u3",
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "x"}]},
    },
    {"type": "user", "uuid": "u4", "isMeta": True, "message": {"role": "user", "content": "meta"}},
    {"type": "summary", "summary": "s"},
]
CODEX = [
    {"timestamp": "2026-01-11T14:31:00Z", "type": "session_meta", "payload": {"id": "s"}},
    {
        "timestamp": "2026-01-11T14:31:00Z",
        "type": "response_item",
        "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    },
    {
        "timestamp": "2026-01-11T14:32:00Z",
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hello"}],
        },
    },
]
GEMINI = {
    "messages": [
        {"id": "g1", "timestamp": "2026-01-11T14:31:00Z", "type": "user", "content": "Hi"},
        {"id": "g2", "timestamp": "2026-01-11T14:32:00Z", "type": "gemini", "content": [{"text": "Hello"}]},
    ]
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "shop").mkdir()
    return tmp_path


def hook(place: Path, client: str, event: str, payload: object, status: int = 0) -> tuple[str, str]:
    done = subprocess.run(
        [*command(), "hook", "--home", str(place / "home"), client, event],
        input=payload if isinstance(payload, str) else json.dumps(payload),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    return done.stdout, done.stderr


def remembering(place: Path, *texts: str) -> str:
    slug = agent_of(place / "shop")
    with keepstone.open(place / "home", embedder="none") as home:
        for text in texts:
            home.agent(slug).session("main").add("decision", text=text)
    return slug


def entries(place: Path, session: str) -> list[tuple[str, Any]]:
    with keepstone.open(place / "home", embedder="none") as home:
        agent: Agent = home.agent(agent_of(place / "shop"))
        return [(entry.type, entry.data) for entry in agent.session(session).entries()]


@pytest.mark.parametrize("client", EVENTS)
def test_a_session_starts_with_the_context_of_its_project(place: Path, client: str) -> None:
    remembering(place, "We use pnpm")
    out, _ = hook(place, client, "SessionStart", {"cwd": str(place / "shop"), "session_id": "s"})
    found = json.loads(out)["hookSpecificOutput"]
    assert found["hookEventName"] == "SessionStart"
    assert "We use pnpm" in found["additionalContext"]


@pytest.mark.parametrize(
    ("client", "event"), [("claude-code", "UserPromptSubmit"), ("gemini", "BeforeAgent")]
)
def test_a_prompt_gets_what_fits_it(place: Path, client: str, event: str) -> None:
    remembering(place, "We use pnpm", "The office is in Turin")
    payload = {"cwd": str(place / "shop"), "prompt": "where is the office?"}
    found = json.loads(hook(place, client, event, payload)[0])["hookSpecificOutput"]["additionalContext"]
    assert "Turin" in found
    assert "pnpm" not in found


def test_nothing_remembered_is_nothing_said(place: Path) -> None:
    assert hook(place, "claude-code", "SessionStart", {"cwd": str(place / "shop")}) == ("", "")
    assert not (place / "home").exists()


@pytest.mark.parametrize(
    ("client", "event", "transcript"),
    [
        ("claude-code", "PreCompact", "\n".join(map(json.dumps, CLAUDE)) + "\n{broken"),
        ("codex", "Stop", "\n".join(map(json.dumps, CODEX))),
        ("gemini", "SessionEnd", json.dumps(GEMINI, indent=1)),
    ],
)
def test_turns_are_stored_once(place: Path, client: str, event: str, transcript: str) -> None:
    (place / "transcript").write_text(transcript)
    payload = {"cwd": str(place / "shop"), "session_id": "s1", "transcript_path": str(place / "transcript")}
    for _ in range(2):
        assert hook(place, client, event, payload) == ("", "")
    assert entries(place, f"{client}-s1") == [
        ("message", {"role": "user", "content": "Hi"}),
        ("message", {"role": "assistant", "content": "Hello"}),
    ]


@pytest.mark.parametrize(
    ("client", "event", "payload"),
    [
        ("claude-code", "SessionStart", "garbage"),
        ("claude-code", "SessionStart", "[]"),
        ("claude-code", "PreCompact", {"session_id": "s", "transcript_path": "/none"}),
        ("claude-code", "PreCompact", {}),
        ("claude-code", "Unknown", {}),
        ("unknown", "SessionStart", {}),
        ("", "", ""),
    ],
)
def test_whatever_is_wrong_the_agent_goes_on(place: Path, client: str, event: str, payload: object) -> None:
    out, log = hook(place, client, event, payload)
    assert out == ""
    assert log.startswith("keepstone: ")


def test_a_locked_memory_does_not_hold_up_the_agent(place: Path) -> None:
    slug = remembering(place, "x")
    (place / "transcript").write_text("\n".join(map(json.dumps, CLAUDE)))
    payload = {"cwd": str(place / "shop"), "session_id": "s", "transcript_path": str(place / "transcript")}
    hook(place, "claude-code", "PreCompact", payload)
    (place / "transcript").write_text("\n".join(map(json.dumps, [*CLAUDE, CLAUDE[0] | {"uuid": "new"}])))
    sessions = place / "home/agents" / slug / "memory/sessions"
    with Lock(Folder(sessions), "claude-code-s.lock").hold():
        _, log = hook(place, "claude-code", "PreCompact", payload)
    assert "took more than 2 s" in log
    assert len(entries(place, "claude-code-s")) == 2


@pytest.mark.parametrize("name", EVENTS)
def test_hooks_are_installed_beside_others_and_removed(name: str) -> None:
    client = client_of(name)
    assert client.hooks_file is not None
    path = client.hooks_file()
    path.parent.mkdir(parents=True)
    others = {"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "mine"}]}]}, "a": 1}
    path.write_text(json.dumps(others, indent=2))
    words = [*command(), "mcp"]
    subprocess.run(
        [*words, "install", name, "--hooks"], check=True, stdin=subprocess.DEVNULL, capture_output=True
    )
    found = json.loads(path.read_text())["hooks"]
    assert list(found) == list(EVENTS[name])
    assert [len(groups) for groups in found.values()] == [2, 1, 1, 1]
    ours = found["SessionStart"][1]["hooks"][0]["command"]
    done = subprocess.run(ours, shell=True, input="{}", capture_output=True, text=True, check=True)  # noqa: S602
    assert done.stderr == ""
    subprocess.run([*words, "uninstall", name], check=True, stdin=subprocess.DEVNULL, capture_output=True)
    left = json.loads(path.read_text())
    left.pop("mcpServers", None)
    assert left == others
