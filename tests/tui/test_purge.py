"""The page that purges what recall finds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tui.screens import Shown, keys, on

import keepstone
from keepstone import Agent
from keepstone.tui.purge import Forgetting


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path) as home:
        made = home.agent("default")
        made.session("s").add("note", {"content": "the walnut code is 4711"}, id="code")
        yield made


def left(agent: Agent) -> list[str]:
    return [entry.id for entry in agent.session("s").entries()]


@pytest.mark.parametrize(
    ("typed", "purged"), [(["d", "y"], True), (["enter", "y"], True), (["delete", "n"], False), ([], False)]
)
def test_whether_something_was_purged_is_told_when_the_page_closes(
    agent: Agent, typed: list[str], *, purged: bool
) -> None:
    assert on(Forgetting(agent, "walnut"), keys(*typed, "escape")) == [purged]
    assert left(agent) == ([] if purged else ["code"])


def test_the_question_shows_what_is_to_be_removed(agent: Agent) -> None:
    async def steps(shown: Shown[bool]) -> None:
        await shown.press("d")
        assert "Remove every byte of this entry?" in shown.text
        assert "walnut code" in shown.text

    on(Forgetting(agent, "walnut"), steps)


def test_entries_purged_by_another_process_count_as_gone(agent: Agent) -> None:
    async def steps(shown: Shown[bool]) -> None:
        await shown.press("d")
        agent.purge("code", "s")
        await shown.press("y")
        assert "It no longer exists." in shown.text
        await shown.press("escape")

    assert on(Forgetting(agent, "walnut"), steps) == [False]


def test_a_question_that_finds_nothing_leads_to_the_notes(agent: Agent) -> None:
    async def steps(shown: Shown[bool]) -> None:
        await shown.press("d")
        assert "Nothing found. Notes are deleted in /memory." in shown.text

    on(Forgetting(agent, "pecan"), steps)
