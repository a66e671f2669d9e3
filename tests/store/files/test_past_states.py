"""A reader of the past is kept for the next question, until something changes what was there then."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.model import Record, Scope
from keepstone.store import as_of
from keepstone.store.files.file_store import FileStore
from keepstone.store.files.past_states import PastStates
from keepstone.testing.clock import START
from keepstone.testing.making import record
from keepstone.vector import unit

THEN = START + timedelta(minutes=1)
LOG = "agents/a/memory/sessions/s.ndjson"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sessions whose lines were read to tell of the past."""
    sessions: list[str] = []
    real = PastStates.__call__

    def note(states: PastStates, names: Sequence[str] | None) -> dict[str, Sequence[Record]]:
        found = real(states, names)
        sessions.extend(found)
        return found

    monkeypatch.setattr(PastStates, "__call__", note)
    return sessions


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"], durable=False)) as made:
        made.append("a", "s", [record("x", "walnut"), record("y", "pecan")])
        yield made


def found(store: FileStore, word: str = "walnut", agent: str = "a") -> list[str]:
    with store.reader(agent, THEN) as reader:
        keys = [one.key for one in reader.search([word], Scope(agent), 9)]
        return sorted(entry.id for entry in reader.load(keys).values())


def test_second_question_about_a_moment_reads_no_log(store: FileStore, read: list[str]) -> None:
    for _ in range(3):
        assert found(store) == ["x"]
        assert [entry.id for entry in store.entries("a", "s", 1, None, as_of=THEN)] == ["y"]
    assert read == ["s"]


def test_lines_of_later_times_keep_the_reader(store: FileStore, read: list[str]) -> None:
    assert found(store) == ["x"]
    for minute in (2, 3):
        store.append("a", "s", [record(f"later-{minute}", "walnut", minute=minute)])
        assert found(store) == ["x"]
    assert read == ["s"]


def test_new_session_alone_is_read(store: FileStore, read: list[str]) -> None:
    assert found(store) == ["x"]
    store.append("a", "merged", [record("z", "walnut")])
    assert found(store) == ["x", "z"]
    assert read == ["s", "merged"]


@pytest.mark.parametrize(
    "line", ['{"id":"z","ts":"2026-01-01T00:00:00Z","type":"note","text":"walnut"}', "no"]
)
def test_line_of_an_earlier_time_or_of_none_is_read_at_once(
    store: FileStore, tmp_path: Path, read: list[str], line: str
) -> None:
    assert found(store) == ["x"]
    with (tmp_path / LOG).open("a") as log:
        log.write(line + "\n")
    assert found(store) == (["x", "z"] if line != "no" else ["x"])
    assert read == ["s", "s"]


def test_edit_in_place_is_seen(store: FileStore, tmp_path: Path) -> None:
    assert found(store) == ["x"]
    log = tmp_path / LOG
    with log.open("r+b") as file:
        file.write(log.read_bytes().replace(b"walnut", b"acorns"))
    os.utime(log, (2_000_000_000, 2_000_000_000))
    assert (found(store), found(store, "acorns")) == ([], ["x"])


def test_purge_drops_the_reader_at_once(store: FileStore) -> None:
    assert found(store) == ["x"]
    assert store._pasts._kept  # noqa: SLF001
    store.purge("a", "s", ["x"])
    assert not store._pasts._kept  # noqa: SLF001
    assert found(store) == []


def test_removed_session_is_gone_from_the_past(store: FileStore, tmp_path: Path) -> None:
    assert found(store) == ["x"]
    (tmp_path / LOG).unlink()
    assert found(store) == []


@pytest.mark.parametrize(("name", "value", "kept"), [("MOST_KEPT", 2, 2), ("MOST_BYTES", 1, 0)])
def test_few_readers_of_few_bytes_are_kept(
    store: FileStore, monkeypatch: pytest.MonkeyPatch, name: str, value: int, kept: int
) -> None:
    monkeypatch.setattr(as_of, name, value)
    for minutes in range(1, 5):
        store.entries("a", "s", 1, None, as_of=START + timedelta(minutes=minutes))
    assert len(store._pasts._kept) == kept  # noqa: SLF001


def test_entry_that_a_caller_changes_is_not_changed_for_others(store: FileStore) -> None:
    for _ in range(2):
        with store.reader("a", THEN) as reader:
            [key] = [one.key for one in reader.search(["walnut"], Scope("a"), 9)]
            entry = reader.load([key])[key]
            assert entry.text == "walnut"
            entry.line["text"] = "changed"


def test_reader_asked_for_within_another_is_one_of_its_own(store: FileStore) -> None:
    with store.reader("a", THEN) as one, store.reader("a", THEN) as other:
        assert one is not other


def test_vector_made_since_is_found_again(store: FileStore) -> None:
    with store.reader("a", THEN) as reader:
        assert len(reader.pending("made", Scope("a"))) == 2
    [walnut] = store.find("a", "x", "s")
    store.keep_vectors("a", "made", [(walnut, unit([1, 0]))])
    with store.reader("a", THEN) as reader:
        assert [entry.id for entry in reader.load(reader.pending("made", Scope("a"))).values()] == ["y"]
