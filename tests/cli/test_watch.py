"""``keepstone watch``: changes from a cursor on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import keepstone

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture
def cursor(cli: Command) -> str:
    """The cursor of the first of three changes of two agents."""
    with keepstone.open(cli.home, embedder="none") as home:
        watched = home.watch(timeout=5)
        home.agent("a").add("one", id="x", session="s")
        first = next(iter(watched))
        home.agent("a").add("two", id="y", session="s")
        home.agent("b").add("three", id="z", session="s")
    return str(first.cursor)


def changes(cli: Command, *words: str) -> list[dict[str, Any]]:
    result = cli("watch", "--timeout", "0", "--json", *words)
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_each_change_behind_a_cursor_is_one_json_line(cli: Command, cursor: str) -> None:
    found = changes(cli, "--since", cursor)
    assert [(change["kind"], change["agent"], change["id"]) for change in found] == [
        ("add", "a", "y"),
        ("add", "b", "z"),
    ]


def test_only_the_named_agents_are_watched(cli: Command, cursor: str) -> None:
    assert [change["id"] for change in changes(cli, "--since", cursor, "--agent", "b")] == ["z"]


def test_people_read_kind_agent_session_and_id(cli: Command, cursor: str) -> None:
    result = cli("watch", "--timeout", "0", "--since", cursor, "--agent", "a")
    assert result.stdout == "add     a  s  y\n"


def test_a_cursor_that_is_none_is_bad_input(cli: Command) -> None:
    assert cli("watch", "--timeout", "0", "--since", "nonsense").exit_code == 2
