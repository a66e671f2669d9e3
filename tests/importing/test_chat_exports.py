"""Data exports of ChatGPT and Claude: conversations, their branches, and what of a message is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import auto, chatgpt, claude, entries, zipped

from keepstone.agent import Agent
from keepstone.importing import import_memory


@pytest.mark.parametrize("form", ["zip", "folder", "file"])
def test_the_current_branch_of_a_chatgpt_export(agent: Agent, tmp_path: Path, form: str) -> None:
    (tmp_path / "x").mkdir()
    source = {
        "zip": tmp_path / "x.zip",
        "folder": tmp_path / "x",
        "file": tmp_path / "x" / "conversations.json",
    }[form]
    (tmp_path / "x" / "conversations.json").write_text(json.dumps(chatgpt()), "utf-8")
    zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(chatgpt()), "user.json": "{}"})
    assert auto(agent, source, "chatgpt").imported == 2
    found = agent.session("c1").entries()
    assert [(entry.id, entry.data["role"]) for entry in found] == [("m1", "user"), ("m2", "assistant")]
    assert found[0].data == {"role": "user", "content": "Which sign-in?"}
    assert found[0].ts.isoformat() == "2026-01-11T14:31:00.500000+00:00"


def test_all_branches_of_a_chatgpt_export_are_linked(agent: Agent, tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(chatgpt())})
    assert auto(agent, source, "chatgpt", branches=True).imported == 3
    assert [entry.id for entry in agent.related("m1", "reply_to")] == ["old", "m2"]


@pytest.mark.parametrize(("source", "made"), [("chatgpt", chatgpt), ("claude", claude)])
def test_what_is_no_conversation_is_one_failure(
    agent: Agent, tmp_path: Path, source: str, made: Callable[[], list[Any]]
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps([None, *made(), 7, "x"]))
    result = auto(agent, path, source)
    assert result.imported >= 2
    assert [one.place.rpartition(" ")[2] for one in result.failed] == ["1", "3", "4"]


def test_a_chatgpt_tree_with_a_circle_ends(agent: Agent, tmp_path: Path) -> None:
    made = chatgpt()
    made[0]["mapping"]["m1"]["parent"] = "m2"
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(made)})
    assert import_memory(agent, "chatgpt", source).imported == 2
    import_memory(agent, "chatgpt", source, branches=True)
    assert agent.count() == 3


def test_messages_of_a_claude_export(agent: Agent, tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": json.dumps(claude()), "users.json": "[]"})
    assert auto(agent, source, "claude").imported == 3
    found = entries(agent, "conversation-1")
    assert found["u1"].data == {"role": "user", "content": "Which sign-in?"}
    assert found["u2"].data["content"][1]["name"] == "search"
    assert "Use passkeys" in json.dumps(found["u3"].data)
    assert found["u3"].ts.isoformat() == "2026-01-11T14:33:00+00:00"
