"""A purge that was killed on its way is finished by the next process that opens the home."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Home, StoreError
from keepstone.filesystem.confine import Folder
from keepstone.log.log_file import Log, Stat
from keepstone.store.files.purge_marks import PurgeMarks


def left_in(home: Home) -> set[str]:
    """Return the names of files beside the journal."""
    names = {path.name for path in sessions_of(home).iterdir()}
    return {name for name in names if not name.startswith(".purged.")}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os") as home:
        for name in ("s1", "s2"):
            home.agent("a").session(name).add_many(
                {"type": "event", "id": key, "content": f"walnut {key}"} for key in "ab"
            )
        home.agent("a").recall("walnut")
        yield home


def sessions_of(home: Home) -> Path:
    return home.root / "agents/a/memory/sessions"


def leave_marks(home: Home, text: str) -> None:
    """What a process killed in mid-purge leaves."""
    home.close()
    (sessions_of(home) / ".purge.ndjson").write_text(text)


@pytest.fixture
def marks(tmp_path: Path) -> Iterator[PurgeMarks]:
    with Folder(tmp_path / "marks", create=True) as folder:
        marks = PurgeMarks(folder)
        yield marks
        marks.close()


def test_marks_of_entries_and_sessions_are_read_as_written(marks: PurgeMarks) -> None:
    made = marks.add("s1", {"a": 1, "b": 2}) + marks.add_session("s2", None)
    assert marks.pending() == made
    assert made[-1] == {"session": "s2"}


def test_the_last_mark_takes_the_file_with_it(marks: PurgeMarks, tmp_path: Path) -> None:
    first, second = marks.add("s1", {"a": 1}), marks.add_session("s2", None)
    marks.remove(first)
    assert marks.pending() == second
    marks.remove(second)
    assert marks.pending() == []
    assert list((tmp_path / "marks").iterdir()) == []


def test_an_entry_that_was_to_be_purged_is_gone_after_the_next_open(home: Home) -> None:
    leave_marks(home, '{"session":"s1","id":"a"}\n')
    with keepstone.open(home.root) as again:
        assert [entry.id for entry in again.agent("a").session("s1").entries()] == ["b"]
        assert {(hit.entry.session, hit.entry.id) for hit in again.agent("a").recall("walnut")} == {
            ("s1", "b"),
            ("s2", "a"),
            ("s2", "b"),
        }
    assert not (sessions_of(home) / ".purge.ndjson").exists()


def test_a_session_that_was_to_be_removed_is_gone_after_the_next_open(home: Home) -> None:
    leave_marks(home, '{"session":"s1"}\n')
    with keepstone.open(home.root) as again:
        assert [info.id for info in again.agent("a").sessions()] == ["s2"]
        assert {hit.entry.session for hit in again.agent("a").recall("walnut")} == {"s2"}
    assert left_in(home) == {"s2.ndjson", "s2.lock"}


def test_damaged_marks_hinder_neither_the_others_nor_the_home(home: Home) -> None:
    leave_marks(
        home,
        'no mark\n{"id":"a"}\n[]\n{"session":"s1","id":"b"}\n{"session":"none","id":"b"}\n{"session":5}\n',
    )
    with keepstone.open(home.root) as again:
        assert [entry.id for entry in again.agent("a").session("s1").entries()] == ["a"]
        assert len(again.agent("a").session("s2").entries()) == 2


def test_removing_a_session_leaves_no_mark_behind(home: Home) -> None:
    home.agent("a").session("s1").remove()
    assert left_in(home) == {"s2.ndjson", "s2.lock"}


def refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let every rewrite and removal of one log fail, as on a disk that is full or read-only."""
    replace, remove = Log.replace, Log.remove

    def replacing(log: Log, lines: Iterable[bytes]) -> Stat:
        if log.name == name:
            raise StoreError("disk full; it is unchanged")
        return replace(log, lines)

    def removing(log: Log) -> None:
        if log.name == name:
            raise StoreError("disk full; it is unchanged")
        remove(log)

    monkeypatch.setattr(Log, "replace", replacing)
    monkeypatch.setattr(Log, "remove", removing)


def ids_in(home: Home) -> list[str]:
    return [entry.id for entry in home.agent("a").session("s1").entries()]


def test_purge_that_failed_is_not_carried_out_later(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        refuse(full, "s1.ndjson")
        with pytest.raises(StoreError, match="unchanged"):
            home.agent("a").session("s1").purge("a")
    home.agent("a").session("s1").add("note", text="walnut", id="c")
    home.close()
    with keepstone.open(home.root) as again:
        assert ids_in(again) == ["a", "b", "c"]
    assert not (sessions_of(home) / ".purge.ndjson").exists()


def test_removal_that_failed_is_not_carried_out_later(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as full:
        refuse(full, "s1.ndjson")
        with pytest.raises(StoreError, match="unchanged"):
            home.agent("a").session("s1").remove()
    home.agent("a").session("s1").add("note", text="walnut", id="c")
    assert ids_in(home) == ["a", "b", "c"]


def test_purge_that_failed_halfway_says_pending_and_is_finished(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.agent("a").session("s1").update("a", data={"content": "pecan"})
    home.agent("a").session("s1").compact()
    with monkeypatch.context() as full:
        refuse(full, ".archive/s1.ndjson")
        with pytest.raises(keepstone.PurgePendingError):
            home.agent("a").session("s1").purge("a")
    home.close()
    with keepstone.open(home.root) as again:
        assert ids_in(again) == ["b"]
        with pytest.raises(keepstone.EntryNotFoundError):
            again.agent("a").history("a", session="s1")


def test_purge_that_cannot_be_withdrawn_says_pending(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise StoreError("disk full; it is unchanged")

    with monkeypatch.context() as full:
        refuse(full, "s1.ndjson")
        full.setattr(PurgeMarks, "remove", refused)
        with pytest.raises(keepstone.PurgePendingError):
            home.agent("a").session("s1").purge("a")
    home.agent("a").session("s1").add("note", text="walnut", id="c")
    assert ids_in(home) == ["b", "c"]
