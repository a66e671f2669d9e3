"""Taking lives out of a session that the journal says were erased."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.damage import entry, lines, tombstone

from keepstone.filesystem.layout import ARCHIVE
from keepstone.model import Record
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.erased_lives import erase_lives, erased_ids, is_empty, state_of
from keepstone.store.files.purge_digests import record

TWO_LIVES = [entry("a", "one"), tombstone("a"), entry("a", "two", life=2), entry("b")]


def write(logs: AgentLogs, *items: Record | bytes, sub: str = "") -> None:
    folder = logs.folder.path / sub
    folder.mkdir(exist_ok=True)
    (folder / "s.ndjson").write_bytes(lines(*items))


def read(logs: AgentLogs, sub: str = "") -> bytes:
    return (logs.folder.path / sub / "s.ndjson").read_bytes()


def purged(**lives: int) -> Callable[[str], int]:
    return lambda entry_id: lives.get(entry_id, 0)


def erase(logs: AgentLogs, **lives: int) -> None:
    with logs.log("s").locked():
        erase_lives(logs, "s", purged(**lives), erased_ids(logs, "s", purged(**lives)))


def test_ids_are_found_by_lives_that_were_erased(logs: AgentLogs) -> None:
    write(logs, *TWO_LIVES)
    write(logs, entry("c"), sub=ARCHIVE)
    assert erased_ids(logs, "s", purged(a=1, c=1, none=1)) == ["a", "c"]
    assert erased_ids(logs, "s", purged()) == []


def test_all_lines_go_of_an_id_whose_last_life_was_erased(logs: AgentLogs) -> None:
    write(logs, *TWO_LIVES)
    erase(logs, a=2)
    assert read(logs) == lines(entry("b"))


def test_a_later_life_stays(logs: AgentLogs) -> None:
    write(logs, *TWO_LIVES, b"no line")
    erase(logs, a=1)
    assert read(logs) == lines(*TWO_LIVES[2:], b"no line")


def test_erased_lives_go_from_the_archive_as_well(logs: AgentLogs) -> None:
    write(logs, entry("a", "two", life=2))
    write(logs, *TWO_LIVES[:2], entry("b"), sub=ARCHIVE)
    erase(logs, a=1)
    assert read(logs, ARCHIVE) == lines(entry("b"))
    assert read(logs) == lines(entry("a", "two", life=2))


def test_nothing_is_written_where_nothing_was_erased(logs: AgentLogs) -> None:
    write(logs, *TWO_LIVES)
    before = (logs.folder.path / "s.ndjson").stat().st_ino
    erase(logs, none=1)
    assert (logs.folder.path / "s.ndjson").stat().st_ino == before


@pytest.mark.parametrize(
    ("log", "archive", "expected"),
    [([], [], True), ([entry("a")], [], False), ([], [entry("a")], False)],
)
def test_a_session_is_empty_without_a_line_anywhere(
    logs: AgentLogs,
    log: list[Record | bytes],
    archive: list[Record | bytes],
    expected: bool,  # noqa: FBT001
) -> None:
    assert is_empty(logs, "s")
    write(logs, *log)
    write(logs, *archive, sub=ARCHIVE)
    assert is_empty(logs, "s") is expected


def test_the_state_changes_with_the_journal_and_with_new_archives(logs: AgentLogs) -> None:
    states = [state_of(logs.folder)]
    record(logs.folder, [])
    states.append(state_of(logs.folder))
    record(logs.folder, [{"purged": "x"}])
    states.append(state_of(logs.folder))
    write(logs, entry("a"), sub=ARCHIVE)
    states.append(state_of(logs.folder))
    assert states[0] is None
    assert len(set(states)) == 4
    assert state_of(logs.folder) == states[-1]
