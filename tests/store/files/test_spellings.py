"""Other files of a session: its archive, originals, and logs under other names."""

from __future__ import annotations

from pathlib import Path

from tests.damage import entry, lines

from keepstone.filesystem.layout import ARCHIVE
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.spellings import (
    archive_of,
    holding,
    logs_named,
    named_sessions,
    other_spellings,
    parts,
)

ORIGINAL = "s.ndjson.20260111T143100000000Z.original"


def make(logs: AgentLogs, *names: str) -> None:
    for name in names:
        path = logs.folder.path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(lines(entry("a")))


def found(logs: AgentLogs) -> set[tuple[str, str]]:
    return set(named_sessions(logs.folder, logs.layout))


def test_an_archive_shares_the_lock_of_its_log(logs: AgentLogs) -> None:
    log = logs.log("s")
    archive = archive_of(logs.folder, log)
    assert (archive.name, archive.lock) == (f"{ARCHIVE}/s.ndjson", log.lock)


def test_parts_are_the_log_its_archive_and_its_originals_in_order(logs: AgentLogs) -> None:
    later = ORIGINAL.replace("2026", "2027")
    make(logs, "s.ndjson", f"{ARCHIVE}/{later}", f"{ARCHIVE}/{ORIGINAL}", f"{ARCHIVE}/other.{ORIGINAL}")
    names = [part.name for part in parts(logs.folder, logs.log("s"))]
    assert names == ["s.ndjson", *(f"{ARCHIVE}/{name}" for name in ("s.ndjson", ORIGINAL, later))]


def test_every_file_with_lines_of_a_session_is_named(logs: AgentLogs) -> None:
    make(logs, "s.ndjson", "%73.ndjson", f"{ARCHIVE}/old.ndjson", f"{ARCHIVE}/{ORIGINAL}")
    assert found(logs) == {("s", "s.ndjson"), ("s", "%73.ndjson"), ("old", "old.ndjson")}


def test_a_file_that_a_killed_rewrite_left_is_one_of_its_session(logs: AgentLogs) -> None:
    make(logs, "s.ndjson.tmp", "t.ndjson.next.tmp")
    assert found(logs) == {("s", "s.ndjson"), ("t", "t.ndjson")}


def test_locks_marks_and_folders_are_of_no_session(logs: AgentLogs) -> None:
    make(logs, "s.lock", ".purge.ndjson")
    (logs.folder.path / "t.ndjson").mkdir()
    assert found(logs) == set()


def test_other_spellings_are_all_names_but_the_one_that_is_used(logs: AgentLogs) -> None:
    make(logs, "s.ndjson", "%73.ndjson", f"{ARCHIVE}/%73.ndjson", "t.ndjson")
    assert [log.name for log in other_spellings(logs.folder, logs.layout, "s", "s.ndjson")] == ["%73.ndjson"]


def test_logs_under_other_names_have_locks_of_their_own(logs: AgentLogs) -> None:
    first, second = logs_named(logs.folder, logs.layout, ["b.ndjson", "a.ndjson"])
    assert (first.name, second.name) == ("a.ndjson", "b.ndjson")
    assert first.lock is not second.lock


def locks(path: Path) -> list[str]:
    return [file.name for file in path.iterdir() if file.suffix == ".lock"]


def test_holding_leaves_no_lock_file_without_a_log(logs: AgentLogs) -> None:
    make(logs, "a.ndjson")
    for name in ("a.ndjson", "none.ndjson"):
        (log,) = logs_named(logs.folder, logs.layout, [name])
        with holding(log):
            assert log.lock.is_mine
    assert locks(logs.folder.path) == ["a.lock"]
