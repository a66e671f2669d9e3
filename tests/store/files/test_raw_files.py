"""Sessions of files as the lines that they are."""

from __future__ import annotations

from tests.damage import batch, entry, lines, tombstone

from keepstone.filesystem.layout import ARCHIVE
from keepstone.model import Record
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.raw_files import raw_lines, take_raw_lines


def write(logs: AgentLogs, *items: Record | bytes, archived: bool = False) -> None:
    folder = logs.folder.path / ARCHIVE if archived else logs.folder.path
    folder.mkdir(exist_ok=True)
    (folder / "s.ndjson").write_bytes(lines(*items))


def found(logs: AgentLogs, session: str = "s") -> list[tuple[str | None, bool]]:
    return [(line.id, line.archived) for line in raw_lines(logs, session)]


def test_lines_of_the_archive_come_first(logs: AgentLogs) -> None:
    write(logs, entry("b"), tombstone("b"))
    write(logs, entry("a"), archived=True)
    assert found(logs) == [("a", True), ("b", False), ("b", False)]


def test_a_missing_session_has_no_lines(logs: AgentLogs) -> None:
    assert found(logs) == []


def test_a_torn_batch_is_left_out_and_a_damaged_line_is_not(logs: AgentLogs) -> None:
    write(logs, entry("a"), b"no line", *batch(entry("b"), length=2))
    assert found(logs) == [("a", False), (None, False)]


def test_a_session_that_takes_lines_has_the_same_bytes(logs: AgentLogs) -> None:
    write(logs, entry("b"), b"no line", entry("c"))
    write(logs, entry("a"), archived=True)
    take_raw_lines(logs, "copy", list(raw_lines(logs, "s")))
    folder = logs.folder.path
    for sub in (folder, folder / ARCHIVE):
        assert (sub / "copy.ndjson").read_bytes() == (sub / "s.ndjson").read_bytes()


def test_taken_lines_replace_the_ones_before(logs: AgentLogs) -> None:
    write(logs, entry("a"))
    taken = list(raw_lines(logs, "s"))
    write(logs, entry("b"), entry("c"))
    take_raw_lines(logs, "s", taken)
    assert found(logs) == [("a", False)]


def test_a_time_that_was_derived_is_written_out(logs: AgentLogs) -> None:
    write(logs, entry("a"), b'{"content":"of another program"}')
    lines_before = list(raw_lines(logs, "s"))
    take_raw_lines(logs, "copy", lines_before)
    assert [(line.id, line.ts) for line in raw_lines(logs, "copy")] == [
        (line.id, line.ts) for line in lines_before
    ]
    assert b'"ts"' in (logs.folder.path / "copy.ndjson").read_bytes().splitlines()[1]


def test_taken_entries_are_in_the_index(logs: AgentLogs) -> None:
    write(logs, entry("a"))
    take_raw_lines(logs, "copy", list(raw_lines(logs, "s")))
    assert logs.index.counts("copy") == {"copy": 1}


def test_a_session_without_lines_is_there_and_empty(logs: AgentLogs) -> None:
    take_raw_lines(logs, "s", [])
    assert (logs.folder.path / "s.ndjson").read_bytes() == b""
