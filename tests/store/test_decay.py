"""Priorities fade with age, grow with use, and never leave their formula."""

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.log.line import format_time
from keepstone.store.decay import FADING, Decay, Fading, base_of, worth_of

MADE = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)


def priority(days: float = 0, more: int = 0, **record: Any) -> float:
    """The priority of an entry of this age."""
    whole = {"type": "conversation", "ts": format_time(MADE), **record}
    return worth_of(whole).at(MADE + timedelta(days=days), more)


@pytest.mark.requirement("memory.types.conversation")
def test_a_conversation_starts_at_one_and_fades_by_a_twentieth_a_day() -> None:
    assert priority(type="conversation") == 1.0
    assert priority(10, type="conversation") == 1.0 * math.exp(-0.05 * 10)


@pytest.mark.requirement("memory.types.decision")
def test_a_decision_starts_at_its_base_and_fades_at_its_rate() -> None:
    assert priority(type="decision") == 0.95
    assert priority(10, type="decision") == 0.95 * math.exp(-0.03 * 10)


@pytest.mark.requirement("memory.types.finding")
def test_a_finding_starts_at_its_base_and_fades_at_its_rate() -> None:
    assert priority(type="finding") == 0.9
    assert priority(10, type="finding") == 0.9 * math.exp(-0.04 * 10)


@pytest.mark.requirement("memory.types.preference")
def test_a_preference_starts_at_its_base_and_fades_at_its_rate() -> None:
    assert priority(type="preference") == 0.85
    assert priority(10, type="preference") == 0.85 * math.exp(-0.02 * 10)


def test_a_type_of_ones_own_fades_as_a_conversation() -> None:
    assert base_of("todo") == base_of("conversation")
    assert priority(7, type="todo") == priority(7, type="conversation")


@pytest.mark.requirement("memory.decay.formula")
@given(st.sampled_from(sorted(FADING)), st.integers(0, 4000), st.integers(0, 86_399), st.integers(0, 50))
def test_priority_is_what_the_documents_formula_gives(
    kind: str, days: int, seconds: int, access: int
) -> None:
    record = {"type": kind, "ts": format_time(MADE), "access": access}
    fading = FADING[kind]
    expected = fading.base * math.exp(-fading.rate * days) + min(0.2, access * 0.02)
    assert worth_of(record).at(MADE + timedelta(days, seconds)) == pytest.approx(expected, abs=1e-12)


def test_a_day_counts_only_when_it_is_over() -> None:
    almost = priority(1 - 1 / 86_400)
    assert (almost, priority(1)) == (1.0, math.exp(-0.05))


def test_an_entry_from_the_future_has_not_faded() -> None:
    assert priority(-3) == 1.0


def test_times_in_other_zones_count_as_instants() -> None:
    later = datetime.fromisoformat("2026-01-12T15:30:00+01:00")
    assert worth_of({"type": "decision", "ts": "2026-01-11T14:30:00Z"}).at(later) == 0.95 * math.exp(-0.03)


@pytest.mark.requirement("memory.decay.access-boost")
@pytest.mark.parametrize(
    ("access", "boost"), [(0, 0.0), (1, 0.02), (9, 0.18), (10, 0.2), (11, 0.2), (10**400, 0.2)]
)
def test_each_access_adds_a_little_up_to_a_fifth(access: int, boost: float) -> None:
    assert priority(access=access) == pytest.approx(1.0 + boost)


def test_accesses_not_yet_recorded_add_to_those_that_are() -> None:
    assert priority(access=3, more=2) == priority(access=5)


def test_a_stored_priority_takes_the_place_of_the_base() -> None:
    assert priority(10, type="decision", priority=0.5) == 0.5 * math.exp(-0.3)


@pytest.mark.parametrize("stored", [None, "high", True, [1], 10**400])
def test_a_stored_priority_that_is_not_a_number_counts_as_none(stored: object) -> None:
    assert priority(type="finding", priority=stored) == 0.9


@pytest.mark.parametrize("stored", [None, "3", True, -4, 2.5])
def test_an_access_count_that_is_none_counts_as_zero(stored: object) -> None:
    assert priority(access=stored) == 1.0


def test_an_entry_without_a_time_is_refused_with_its_value() -> None:
    with pytest.raises(ValueError, match="'yesterday' is not a time"):
        worth_of({"type": "decision", "ts": "yesterday"})


@pytest.mark.parametrize(
    ("rule", "faded"),
    [
        ({}, True),
        ({"threshold": 0.1}, False),
        ({"fading": {"finding": Fading(0.9, 0.0)}}, False),
        ({"accesses": {"a": 10}}, False),
        ({"accesses": {"b": 10}}, True),
        ({"moment": MADE}, False),
    ],
)
def test_each_part_of_a_rule_decides_what_has_faded(rule: dict[str, Any], faded: bool) -> None:  # noqa: FBT001
    record = {"id": "a", "type": "finding", "ts": format_time(MADE)}
    assert Decay(**{"moment": MADE + timedelta(days=40)} | rule).has_faded(record) is faded


def test_pinned_entry_never_fades() -> None:
    record = {"id": "a", "type": "finding", "ts": format_time(MADE), "pinned": True}
    assert not Decay(MADE + timedelta(days=4000)).has_faded(record)
