"""The files of a session without some entries, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.damage import entry, lines, tombstone

from keepstone.filesystem.layout import ARCHIVE
from keepstone.log.replacement import OvertakenError
from keepstone.model import Record, Scope
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.purged_files import PurgedFiles

A, B, C = (entry(letter) for letter in "abc")


def write(logs: AgentLogs, *items: Record | bytes, sub: str = "", name: str = "s") -> None:
    """Append as a foreign program does."""
    folder = logs.folder.path / sub
    folder.mkdir(exist_ok=True)
    with (folder / f"{name}.ndjson").open("ab") as file:
        file.write(lines(*items))


def read(logs: AgentLogs, sub: str = "", name: str = "s") -> bytes:
    return (logs.folder.path / sub / f"{name}.ndjson").read_bytes()


@pytest.fixture
def filled(logs: AgentLogs) -> AgentLogs:
    write(logs, A, B, tombstone("b"), C)
    logs.reach(["s"])
    return logs


@contextmanager
def prepared(files: PurgedFiles) -> Iterator[None]:
    """Prepare the files, and hold the lock for the last steps."""
    with files.begun(), files.placing.locked():
        yield


def test_ids_without_a_line_are_not_gone(filled: AgentLogs) -> None:
    assert PurgedFiles(filled, "s", ["b", "none", "a"]).gone == ["a", "b"]
    assert PurgedFiles(filled, "missing", ["a"]).gone == []


def test_entries_are_there_until_the_files_are_put(filled: AgentLogs) -> None:
    files = PurgedFiles(filled, "s", ["b"])
    with prepared(files):
        files.check()
        assert read(filled) == lines(A, B, tombstone("b"), C)
        files.put(files.gone)
    assert read(filled) == lines(A, C)


def test_rows_of_the_entries_are_hidden_with_the_files(filled: AgentLogs) -> None:
    files = PurgedFiles(filled, "s", ["a"])
    with prepared(files):
        files.put(files.gone)
    assert filled.index.counts("s") == {"s": 1}


def test_an_archive_and_other_spellings_lose_the_entries_too(filled: AgentLogs) -> None:
    write(filled, entry("b", "older"), C, sub=ARCHIVE)
    write(filled, B, C, name="%73")
    files = PurgedFiles(filled, "s", ["b"])
    with prepared(files):
        files.check()
        files.put(files.gone)
    assert (read(filled), read(filled, ARCHIVE), read(filled, name="%73")) == (
        lines(A, C),
        lines(C),
        lines(C),
    )


def test_a_purge_given_up_leaves_the_session_as_it_was(filled: AgentLogs) -> None:
    with prepared(PurgedFiles(filled, "s", ["b"])):
        pass
    assert read(filled) == lines(A, B, tombstone("b"), C)
    assert not filled.log("s").is_prepared()


def test_lines_that_others_add_are_kept_and_theirs_of_the_entry_purged(filled: AgentLogs) -> None:
    files = PurgedFiles(filled, "s", ["b"])
    with files.begun():
        write(filled, entry("d"), entry("b", "again"))
        with files.placing.locked():
            files.check()
            files.put(files.gone)
    assert read(filled) == lines(A, C, entry("d"))


def test_a_line_in_a_file_that_was_not_prepared_overtakes_the_purge(filled: AgentLogs) -> None:
    files = PurgedFiles(filled, "s", ["b"])
    with files.begun():
        write(filled, B, sub=ARCHIVE)
        with files.placing.locked(), pytest.raises(OvertakenError):
            files.check()


# Entries that a scope selects


def test_entries_out_of_the_scope_are_left_out(filled: AgentLogs) -> None:
    files = PurgedFiles(filled, "s", ["a", "c"], Scope("a", ids=("a",)))
    with prepared(files):
        files.check()
        assert files.gone == ["a"]


def test_an_entry_that_leaves_the_scope_overtakes_and_stays(filled: AgentLogs) -> None:
    files = PurgedFiles(filled, "s", ["a", "c"], Scope("a", types=("note",)))
    with files.begun():
        write(filled, entry("a", type="fact"))
        with files.placing.locked(), pytest.raises(OvertakenError):
            files.check()
    with prepared(files):
        files.check()
        assert files.gone == ["c"]
