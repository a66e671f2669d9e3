"""The clock that tests set."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone.testing import START, ManualClock

SECONDS = st.floats(-1e6, 1e6)


def test_a_clock_stands_still_until_it_is_moved() -> None:
    clock = ManualClock()
    assert (clock(), clock(), clock.now) == (START, START, START)


@given(SECONDS)
def test_seconds_and_a_timedelta_move_alike(seconds: float) -> None:
    by_number, by_delta = ManualClock(), ManualClock()
    assert by_number.advance(seconds) == by_delta.advance(timedelta(seconds=seconds))
    assert by_number() == by_delta() == START + timedelta(seconds=seconds)


def test_whole_seconds_and_steps_backwards_add_up() -> None:
    clock = ManualClock(datetime(2026, 3, 1, tzinfo=UTC))
    clock.advance(90)
    clock.advance(timedelta(minutes=-2))
    assert clock() == datetime(2026, 2, 28, 23, 59, 30, tzinfo=UTC)


def test_entries_of_a_home_are_made_at_the_time_of_its_clock(tmp_path: Path) -> None:
    clock = ManualClock()
    with keepstone.open(tmp_path, clock=clock) as home:
        session = home.agent("default").session("s")
        times = [session.add("note", text="x").ts, clock.advance(60), session.add("note", text="y").ts]
    assert times == [START, START + timedelta(minutes=1), START + timedelta(minutes=1)]
