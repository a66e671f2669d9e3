"""Transcripts of Claude Code and Codex: which lines become entries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import auto, entries, items, jsonl, read, reasons

from keepstone.agent import Agent
from keepstone.importing.origin import Origin
from keepstone.importing.transcripts import is_claude_code, is_codex, read_claude_code, read_codex

CLAUDE_CODE: list[dict[str, Any]] = [
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


def test_a_line_that_is_not_an_object_leaves_the_others(tmp_path: Path) -> None:
    path = jsonl(tmp_path / "s.jsonl", [CLAUDE_CODE[2], [1], CLAUDE_CODE[3]])
    path.write_text(path.read_text() + "{broken\n")
    found = read(read_claude_code, path)
    assert [place for place, _ in reasons(found)] == ["s.jsonl:2", "s.jsonl:4"]
    assert len(found) == 4


def test_an_answer_of_a_sub_agent_links_to_what_it_answers(tmp_path: Path) -> None:
    aside = CLAUDE_CODE[3] | {"isSidechain": True}
    (found,) = items(read_claude_code, jsonl(tmp_path / "s.jsonl", [aside]))
    assert found.line["links"] == [{"to": "u1", "rel": "reply_to"}]


def test_the_main_conversation_has_no_links(tmp_path: Path) -> None:
    (found,) = items(read_claude_code, jsonl(tmp_path / "s.jsonl", [CLAUDE_CODE[3]]))
    assert "links" not in found.line


def test_a_codex_transcript_without_its_head_is_named_by_its_file(tmp_path: Path) -> None:
    found = items(read_codex, jsonl(tmp_path / "rollout-x.jsonl", codex()[1:]))
    assert {item.session for item in found} == {"rollout-x"}


def test_items_of_codex_are_numbered_by_their_lines(tmp_path: Path) -> None:
    found = items(read_codex, jsonl(tmp_path / "s.jsonl", codex()))
    assert [item.line["id"] for item in found] == ["line-2", "line-5", "line-6"]


def test_items_of_an_old_codex_are_the_lines_themselves(tmp_path: Path) -> None:
    old = [{"type": "message", "role": "user", "content": "Hi"}, {"record_type": "state"}]
    (found,) = items(read_codex, jsonl(tmp_path / "s.jsonl", old))
    assert found.line["data"] == {"role": "user", "content": "Hi"}


def test_reasoning_that_can_be_read_is_kept(tmp_path: Path) -> None:
    payload = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Compare"}]}
    (found,) = items(read_codex, jsonl(tmp_path / "s.jsonl", [{"type": "response_item", "payload": payload}]))
    assert found.line["data"] == payload


@pytest.mark.parametrize(("text", "count"), [("In short", 1), ("", 0)])
def test_a_compacted_history_is_a_summary(tmp_path: Path, text: str, count: int) -> None:
    line = {"type": "compacted", "payload": {"message": text}}
    found = items(read_codex, jsonl(tmp_path / "s.jsonl", [line]))
    assert [(item.line["type"], item.line["text"]) for item in found] == [("summary", text)] * count


def test_each_tool_is_recognised_by_its_own_lines(tmp_path: Path) -> None:
    ours, theirs = jsonl(tmp_path / "a.jsonl", CLAUDE_CODE), jsonl(tmp_path / "b.jsonl", codex())
    assert (is_claude_code(Origin(ours)), is_codex(Origin(ours))) == (True, False)
    assert (is_claude_code(Origin(theirs)), is_codex(Origin(theirs))) == (False, True)
