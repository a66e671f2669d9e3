"""The arguments of a recall, and which loaded entries pass them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from keepstone.log.line import entry_of
from keepstone.log.where import conditions_of
from keepstone.model import Entry, Scope
from keepstone.recall.question import Question, allows, filtering
from keepstone.testing.clock import START
from keepstone.testing.making import record, time_at

MINUTE = timedelta(minutes=1)
ALL = Scope("a")


def question(**given: Any) -> Question:
    keys: dict[str, Any] = {"clock": lambda: START} | given
    return Question("?", 5, START, **keys)


def entry(**keys: Any) -> Entry:
    return entry_of("a", "s", record("x", "walnut", tags=["t"], **keys))


# The time at which entries have to hold


def test_entries_have_to_hold_once_they_are_loaded() -> None:
    assert question(clock=lambda: START + MINUTE).moment() == START + MINUTE


def test_a_clock_that_was_set_back_does_not_bring_entries_back() -> None:
    assert question(clock=lambda: START - MINUTE).moment() == START


def test_a_question_of_the_past_is_about_that_time() -> None:
    assert question(as_of=START - MINUTE).moment() == START - MINUTE


# Filters


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, True),
        ({"valid_to": time_at(1)}, True),
        ({"valid_to": time_at(0)}, False),
        ({"expires": time_at(0)}, False),
        ({"valid_from": time_at(1)}, False),
    ],
)
def test_only_entries_that_hold_pass(keys: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    assert filtering(question(), ALL)(entry(**keys)) is expected
    assert allows(question(include_superseded=True), ALL, entry(**keys), START)


def test_an_entry_of_little_priority_is_left_out() -> None:
    ask = question(min_priority=0.5)
    assert allows(ask, ALL, entry(priority=0.6), START)
    assert not allows(ask, ALL, entry(priority=0.4), START)


@pytest.mark.parametrize(
    ("passing", "refusing"),
    [
        ({"sessions": ("s",)}, {"sessions": ("t",)}),
        ({"types": ("note",)}, {"types": ("fact",)}),
        ({"since": START}, {"since": START + MINUTE}),
        ({"until": START + MINUTE}, {"until": START}),
        ({"tags": ("t",)}, {"tags": ("t", "u")}),
        (
            {"where": conditions_of({"content": "walnut"})},
            {"where": conditions_of({"content": "pecan"})},
        ),
    ],
)
def test_filters_that_the_index_decided_are_decided_once_more(
    passing: dict[str, Any], refusing: dict[str, Any]
) -> None:
    assert allows(question(), Scope("a", **passing), entry(), START)
    assert not allows(question(), Scope("a", **refusing), entry(), START)
