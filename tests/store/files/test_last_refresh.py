"""When an index was last refreshed, and whether that is recent enough."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepstone.store.files.last_refresh import AT_ONCE, LastRefresh


class Watch:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Watch:
    return Watch()


@pytest.fixture
def last(tmp_path: Path, clock: Watch) -> LastRefresh:
    return LastRefresh(tmp_path, clock)


def refresh(last: LastRefresh, clock: Watch, seconds: float = 0.0) -> None:
    began = last.begin()
    clock.seconds += seconds
    last.end(began)


def test_the_first_refresh_is_due(last: LastRefresh) -> None:
    assert not last.is_within(1e9)


def test_a_refresh_holds_for_its_age(last: LastRefresh, clock: Watch) -> None:
    refresh(last, clock)
    clock.seconds += 1.0
    assert (last.is_within(1.5), last.is_within(0.5)) == (True, False)


def test_the_age_counts_from_the_beginning(last: LastRefresh, clock: Watch) -> None:
    refresh(last, clock, seconds=2.0)
    assert not last.is_within(1.0)


def test_a_file_that_comes_or_goes_makes_the_next_refresh_due(
    last: LastRefresh, clock: Watch, tmp_path: Path
) -> None:
    refresh(last, clock)
    (tmp_path / "new").touch()
    assert last.is_outdated
    assert not last.is_within(9)
    refresh(last, clock)
    (tmp_path / "new").unlink()
    assert not last.is_within(9)


def test_a_file_that_comes_during_a_refresh_makes_the_next_one_due(last: LastRefresh, tmp_path: Path) -> None:
    began = last.begin()
    (tmp_path / "new").touch()
    last.end(began)
    assert not last.is_within(9)


def test_a_long_refresh_is_not_repeated_at_once(last: LastRefresh, clock: Watch, tmp_path: Path) -> None:
    refresh(last, clock, seconds=0.03)
    (tmp_path / "new").touch()
    assert last.is_within(9)
    clock.seconds += AT_ONCE
    assert not last.is_within(9)


def test_a_refresh_can_be_made_due(last: LastRefresh, clock: Watch) -> None:
    refresh(last, clock)
    last.forget()
    assert not last.is_within(1e9)


def test_a_folder_that_is_gone_is_outdated(last: LastRefresh, clock: Watch, tmp_path: Path) -> None:
    refresh(last, clock)
    tmp_path.rmdir()
    assert last.is_outdated
