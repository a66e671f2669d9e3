"""A log in memory says what the file says, whatever happens to the file."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import TS, Damaged, batch, entry, lines, patch, tombstone

from keepstone.log.fold import Fold
from keepstone.log.scan import Line
from keepstone.model import Record
from keepstone.store.files.snapshot import Snapshot
from keepstone.store.versions import in_order


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "logs")
    yield session
    session.close()


@pytest.fixture
def snapshot(session: Damaged) -> Snapshot:
    return Snapshot(session.log)


def texts(snapshot: Snapshot) -> list[str]:
    return [record["text"] for record in snapshot.records()]


def test_a_log_that_is_not_there_holds_nothing(session: Damaged, snapshot: Snapshot) -> None:
    assert snapshot.records() == ()
    session.append(entry("a", "one"))
    assert texts(snapshot) == ["one"]
    session.path.unlink()
    assert snapshot.records() == ()


def test_the_same_records_are_given_until_the_log_changes(session: Damaged, snapshot: Snapshot) -> None:
    session.append(entry("a", "one"))
    before = snapshot.records()
    assert snapshot.records() is before
    session.append(entry("b", "two"))
    assert (texts(snapshot), len(before)) == (["one", "two"], 1)
    assert snapshot.records()[0] is before[0]


def test_a_line_that_gets_its_newline_later_is_read_once(session: Damaged, snapshot: Snapshot) -> None:
    session.write_raw(b'{"type":"note","text":"one"}')
    assert texts(snapshot) == ["one"]
    session.write_raw(b'\n{"type":"note","text":"two"}\n')
    assert texts(snapshot) == ["one", "two"]


def test_a_line_that_goes_on_is_read_again(session: Damaged, snapshot: Snapshot) -> None:
    session.write_raw(b'{"id":"a","type":"note","text":"one"}')
    assert texts(snapshot) == ["one"]
    session.write_raw(b" no more\n")
    assert texts(snapshot) == []


def test_lines_that_were_changed_in_place_are_read_again(session: Damaged, snapshot: Snapshot) -> None:
    session.append(entry("a", "one"))
    assert texts(snapshot) == ["one"]
    session.path.write_bytes(session.path.read_bytes().replace(b"one", b"two"))
    session.write(entry("b", "three"))
    assert texts(snapshot) == ["two", "three"]


def test_edit_far_from_the_end_plus_append_is_noticed(session: Damaged, snapshot: Snapshot) -> None:
    session.append(entry("a", "one"), entry("b", "x" * 50_000))
    assert texts(snapshot)[0] == "one"
    session.path.write_bytes(session.path.read_bytes().replace(b"one", b"two"))
    session.write(entry("c", "three"))
    assert (texts(snapshot)[0], texts(snapshot)[2]) == ("two", "three")


def test_a_replaced_log_with_an_equal_end_is_read_again(session: Damaged, snapshot: Snapshot) -> None:
    session.append(entry("a", "one"), entry("b", "x" * 5000))
    snapshot.records()
    other = session.path.with_name("other")
    other.write_bytes(session.path.read_bytes().replace(b"one", b"two") + lines(entry("c", "three")))
    other.replace(session.path)
    assert (texts(snapshot)[0], texts(snapshot)[2]) == ("two", "three")


def test_times_that_lines_lack_are_those_of_the_line_before(session: Damaged, snapshot: Snapshot) -> None:
    session.append(entry("a") | {"ts": "2020-01-01T00:00:00.000000Z"})
    snapshot.records()
    session.write({"id": "b", "type": "note", "text": "x"})
    assert [record["ts"][:4] for record in snapshot.records()] == ["2020", "2020"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, OSError])
@pytest.mark.parametrize("failing", ["line", "order"])
def test_interrupted_read_leaves_no_phantom_entries(
    session: Damaged,
    snapshot: Snapshot,
    monkeypatch: pytest.MonkeyPatch,
    failing: str,
    error: type[BaseException],
) -> None:
    session.append(entry("a", "one"))
    snapshot.records()
    session.write_raw(b'{"type":"note","text":"two"}\n{"type":"note","text":"three"}\n')

    def stop(*_: object) -> None:
        raise error

    def add(fold: Fold, line: Line) -> None:
        if line.raw.endswith(b'"three"}'):
            raise error
        whole_add(fold, line)

    whole_add = Fold.add
    with monkeypatch.context() as patched:
        if failing == "line":
            patched.setattr(Fold, "add", add)
        else:
            patched.setattr("keepstone.store.files.snapshot.in_order", stop)
        with pytest.raises(error):
            snapshot.records()
    assert texts(snapshot) == ["one", "two", "three"]


@pytest.mark.parametrize("running", [True, False])
def test_reading_leaves_pythons_collector_as_it_was(
    session: Damaged, snapshot: Snapshot, *, running: bool
) -> None:
    session.append(entry("a"))
    if not running:
        gc.disable()
    try:
        snapshot.records()
        assert gc.isenabled() is running
    finally:
        gc.enable()


EVENTS: list[Callable[[Damaged], object]] = [
    lambda session: session.append(entry("a", "one")),
    lambda session: session.append(entry("b") | {"ts": "2020-01-01T00:00:00.000000Z"}),
    lambda session: session.append(patch("a", tags=["x"])),
    lambda session: session.append(tombstone("a")),
    lambda session: session.append(*batch(entry("c"), entry("d"))),
    lambda session: session.write(*batch(entry("e"), length=2)),
    lambda session: session.write({"ts": TS, "type": "note", "text": "nameless"}),
    lambda session: session.write_raw(b'{"id":"f","ts":"2026-02-01","type":"note"'),
    lambda session: session.write_raw(b"}\n"),
    lambda session: session.cut(9),
    lambda session: session.compact(),
    lambda session: session.purge("a", "c"),
    lambda session: session.clear(),
]


@given(st.lists(st.sampled_from(EVENTS), max_size=12))
def test_after_whatever_happens_memory_says_what_the_file_says(
    tmp_path_factory: pytest.TempPathFactory, events: list[Callable[[Damaged], object]]
) -> None:
    session = Damaged(tmp_path_factory.mktemp("logs"))
    snapshot = Snapshot(session.log)
    session.write_raw(b"")
    for event in events:
        event(session)
        assert list(snapshot.records()) == in_order(session.records())
    session.close()


@pytest.mark.parametrize(
    ("times", "order"),
    [
        (["2026-01-02", "2026-01-01"], [1, 0]),
        ([TS, TS, TS], [0, 1, 2]),
        (["2026-01-01T01:00:00+02:00", "2025-12-31T22:30:00Z"], [1, 0]),
        ([TS, "soon"], [1, 0]),
    ],
)
def test_records_come_by_time_and_then_by_place(times: list[str], order: list[int]) -> None:
    records: list[Record] = [entry(str(place)) | {"ts": ts} for place, ts in enumerate(times)]
    assert [int(record["id"]) for record in in_order(records)] == order
