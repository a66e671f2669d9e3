"""Letta agent files: messages and memory blocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import auto, entries, items, read, reasons

from keepstone.agent import Agent
from keepstone.errors import SourceError
from keepstone.importing.letta import read_letta


@pytest.mark.parametrize("version", [1, 2])
def test_messages_and_blocks_of_a_letta_agent_file(agent: Agent, tmp_path: Path, version: int) -> None:
    block = {"id": "block-0", "label": "human", "value": "The user is Ada"}
    said = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "Hi"}],
            "created_at": "2026-01-11T14:31:00+00:00",
        },
        {"role": "assistant", "content": [], "tool_calls": [{"id": "c", "function": {"name": "f"}}]},
    ]
    old = {"name": "helper", "agent_type": "memgpt_agent", "core_memory": [block], "messages": said}
    new = {"agents": [{"name": "helper", "block_ids": ["block-0"], "messages": said}], "blocks": [block]}
    (tmp_path / "helper.af").write_text(json.dumps(old if version == 1 else new), "utf-8")
    assert auto(agent, tmp_path / "helper.af", "letta").imported == 3
    found = entries(agent, "helper")
    assert found["block-human"].pinned
    assert found["message-1"].data == {"role": "user", "content": "Hi"}
    assert found["message-2"].data["tool_calls"][0]["id"] == "c"


def agent_file(tmp_path: Path, **keys: Any) -> Path:
    (tmp_path / "x.af").write_text(json.dumps({"name": "helper", **keys}), "utf-8")
    return tmp_path / "x.af"


def test_blocks_that_agents_share_are_in_the_session_of_each(tmp_path: Path) -> None:
    agents = [{"name": name, "block_ids": ["b", "unknown"]} for name in ("one", "two")]
    blocks = [{"id": "b", "label": "human", "value": "Ada", "description": "Who it is"}]
    found = items(read_letta, agent_file(tmp_path, agents=agents, blocks=blocks))
    assert [(item.session, item.line["text"]) for item in found] == [("one", "Ada"), ("two", "Ada")]
    assert found[0].line["data"] == {"label": "human", "description": "Who it is"}


def test_blocks_come_before_the_messages(tmp_path: Path) -> None:
    said = [{"id": "m1", "role": "user", "content": "Hi"}]
    block = {"label": "human", "value": "Ada"}
    found = items(read_letta, agent_file(tmp_path, core_memory=[block], messages=said))
    assert [item.line["id"] for item in found] == ["block-human", "m1"]


def test_a_message_with_other_blocks_than_text_keeps_them(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "See"}, {"type": "image", "url": "x"}]
    (found,) = items(read_letta, agent_file(tmp_path, messages=[{"role": "user", "content": content}]))
    assert found.line["data"]["content"] == content


def test_a_message_of_the_oldest_form_has_its_text(tmp_path: Path) -> None:
    (found,) = items(read_letta, agent_file(tmp_path, messages=[{"role": "user", "text": "Hi"}]))
    assert found.line["data"]["content"] == "Hi"


def test_unreadable_parts_are_named(tmp_path: Path) -> None:
    blocks, said = [{"label": "human", "value": ""}], ["x", {"role": "user", "content": ""}]
    found = read(read_letta, agent_file(tmp_path, core_memory=blocks, messages=said))
    assert reasons(found) == [
        ("x.af: helper, block human", "the block has no label, or no text"),
        ("x.af: helper, message 1", "it is not a message with a role"),
        ("x.af: helper, message 2", "the message is empty"),
    ]


def test_a_file_that_is_not_an_object_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.af").write_text("[]")
    with pytest.raises(SourceError, match=r"x\.af is not a Letta agent file: it is not an object"):
        read(read_letta, tmp_path / "x.af")


def test_messages_that_are_no_list_are_named(tmp_path: Path) -> None:
    found = read(read_letta, agent_file(tmp_path, messages={"m1": {"role": "user", "text": "Tea"}}))
    assert reasons(found) == [("x.af: helper", "its messages are not a list")]
