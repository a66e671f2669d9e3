"""Slash commands: which lines are one, and which names begin as typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.chat.slash import COMMANDS, Typed, command_of, completions


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("/new", Typed("new", "")),
        ("/recall  which one? ", Typed("recall", "which one?")),
        ("/recall one\ntwo", Typed("recall", "one\ntwo")),
        ("/nonsense x", Typed("nonsense", "x")),
    ],
)
def test_a_slash_and_letters_are_a_command(text: str, typed: Typed) -> None:
    assert command_of(text) == typed


@pytest.mark.parametrize(
    "text", ["", "/", "new", " /new", "/usr/bin", "/New", "/new2", "//new", "/ new", "/new?"]
)
def test_anything_else_is_a_message(text: str) -> None:
    assert command_of(text) is None


@given(st.sampled_from([*COMMANDS]), st.integers(0, 9))
def test_each_beginning_of_a_name_offers_it(name: str, length: int) -> None:
    assert COMMANDS[name] in completions(f"/{name}"[: length + 1])


@pytest.mark.parametrize("text", ["", "re", "/recall ", "/recall x", "/R", " /re", "/zzz"])
def test_nothing_is_offered_for_what_begins_no_command(text: str) -> None:
    assert completions(text) == []


def test_a_slash_alone_offers_all_commands_in_the_order_of_the_help() -> None:
    assert completions("/") == [*COMMANDS.values()]
