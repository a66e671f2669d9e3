"""The indexed text of messages whose parts have a framework's own form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

import keepstone
from keepstone import Agent
from keepstone.integrations.texts import STATE, called, returned, said, text_of_blocks


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("a")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (said("On it"), "On it"),
        (said(None), ""),
        (said(7), "7"),
        (called("weather", {"city": "Bern", "days": [1, 2]}), "weather: Bern, 1, 2"),
        (called("now", {}), "now"),
        (called("now", None), "now"),
        (returned({"result": "sunny"}), "sunny"),
        (returned(MappingProxyType({"result": "sunny"})), "sunny"),
        (returned("sunny"), "sunny"),
    ],
)
def test_a_block_is_indexed_by_what_was_said_called_or_returned(block: Any, text: str) -> None:
    assert text_of_blocks([block]).removeprefix("result: ") == text


def test_each_block_is_on_a_line_and_the_speaker_before_the_first() -> None:
    assert text_of_blocks([said("one"), said("two")], "Ada") == "Ada: one\ntwo"


def test_a_message_without_blocks_has_no_speaker() -> None:
    assert text_of_blocks([]) == ""
    assert text_of_blocks([], "") == ""


def test_state_of_a_framework_is_found_by_nobody(agent: Agent) -> None:
    agent.session("s").add("state", {"words": "ferry to Dover"}, **STATE)
    assert agent.recall("ferry to Dover") == []
    assert "Dover" not in agent.context("ferry to Dover").text


def test_state_cannot_be_changed_for_all_by_one() -> None:
    with pytest.raises(TypeError):
        STATE["text"] = "x"  # type: ignore[index]
