"""Transcripts of Claude Code and Codex: which lines become entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.importing.sources import auto, entries, jsonl

from keepstone.agent import Agent

CLAUDE_CODE = [
    {"type": "summary", "summary": "Sign-in", "leafUuid": "u2"},
    {"type": "file-history-snapshot", "messageId": "x"},
    {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s",
        "timestamp": "2026-01-11T14:31:00.120Z",
        "message": {"role": "user", "content": "Which sign-in?"},
    },
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "sessionId": "s",
        "timestamp": "2026-01-11T14:32:00Z",
        "message": {"id": "msg", "role": "assistant", "content": [{"type": "text", "text": "Use passkeys"}]},
    },
]


def test_transcripts_of_claude_code(agent: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "projects" / "-work-app"
    folder.mkdir(parents=True)
    jsonl(folder / "7a1c.jsonl", CLAUDE_CODE)
    assert auto(agent, tmp_path / "projects", "claude-code").imported == 3
    found = entries(agent, "7a1c")
    assert found["u1"].text == "user: Which sign-in?"
    assert found["u2"].text == "assistant: Use passkeys"
    assert found["u1"].ts.isoformat() == "2026-01-11T14:31:00.120000+00:00"
    assert found["summary-u2"].type == "summary"


def codex() -> list[dict[str, Any]]:
    def item(**payload: Any) -> dict[str, Any]:
        return {"timestamp": "2026-01-11T14:31:00Z", "type": "response_item", "payload": payload}

    text = {"type": "input_text", "text": "Which sign-in?"}
    return [
        {
            "timestamp": "2026-01-11T14:30:00Z",
            "type": "session_meta",
            "payload": {"id": "thread-1", "cwd": "/"},
        },
        item(type="message", role="user", content=[text]),
        {"timestamp": "2026-01-11T14:31:00Z", "type": "event_msg", "payload": {"type": "user_message"}},
        item(type="reasoning", summary=[], encrypted_content="x"),
        item(type="function_call", name="shell", arguments="{}", call_id="c"),
        item(type="function_call_output", call_id="c", output="done"),
    ]


def test_transcripts_of_codex(agent: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026" / "01" / "11"
    folder.mkdir(parents=True)
    jsonl(folder / "rollout-x.jsonl", codex())
    assert auto(agent, tmp_path / "sessions", "codex").imported == 3
    assert [entry.data["type"] for entry in agent.session("thread-1").entries()] == [
        "message",
        "function_call",
        "function_call_output",
    ]
