"""Letta agent files: messages and memory blocks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.importing.sources import auto, entries

from keepstone.agent import Agent


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
