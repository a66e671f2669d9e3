"""Checks of an index: its own consistency, and its agreement with the logs that it is derived from.

Unlike every other use of an index, a check never recreates a damaged file: it only reports.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import apsw

from keepstone.errors import KeepstoneError
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import LOCK
from keepstone.index import entries, session_table
from keepstone.index.database import BUSY, UNUSABLE, Database, UnavailableError
from keepstone.index.index import Index
from keepstone.index.session_table import LogState
from keepstone.index.vectors import building, hnsw, vector_table
from keepstone.index.vectors.segment import read_into
from keepstone.log.fold import Fold
from keepstone.log.log_file import Log, checksum, stat_of
from keepstone.log.scan import Scan
from keepstone.model import Record, Scope
from keepstone.vector import decode

_COLUMNS = "e.priority, e.pinned, e.tags, e.links, e.digest, e.head"


@contextmanager
def _snapshot(index: Index) -> Iterator[Database]:
    """Yield a snapshot of the index's file; raise UnavailableError if it cannot be used now."""
    database = index._database  # noqa: SLF001  Same package: this module is the other half of that class.
    # Not ``with database``: that would replace a damaged file with an empty one on exit.
    with database.guard:
        try:
            # All statements of one check see one state. Otherwise another process could write between two of
            # them, and the difference would look like damage.
            database.execute("BEGIN")
            try:
                yield database
            finally:
                # The body may have committed, and SQLite rolls back by itself after some errors of the disk.
                if database.connection.in_transaction:
                    database.execute("ROLLBACK")
        except (*BUSY, *UNUSABLE) as error:
            raise UnavailableError(str(error)) from error


def damage(index: Index) -> list[str]:
    """Return the damage of the file itself, its full-text table and its vectors; empty if there is none.

    Raises:
        UnavailableError: Another process keeps the index busy, or the disk fails.
    """
    checks: tuple[Callable[[Database], list[str]], ...] = (_pages, _words, _vectors)
    found: list[str] = []
    for check in checks:
        try:
            with _snapshot(index) as database:
                found += check(database)
        except apsw.Error as error:
            found.append(f"SQLite cannot read it ({type(error).__name__})")
    # One damaged page can fail several checks with the same message.
    return list(dict.fromkeys(found))


def _pages(database: Database) -> list[str]:
    rows = database.rows("PRAGMA integrity_check(3)")
    return [] if rows == [("ok",)] else [f"SQLite finds damage: {str(rows[0][0])[:120]}"]


def _words(database: Database) -> list[str]:
    # FTS5 takes its commands as inserts. This one writes nothing, and raises if the table contradicts itself.
    database.execute("INSERT INTO words(words) VALUES('integrity-check')")
    # The table stores no text, so only the number of its texts can be checked.
    # Rows above ``flushed`` still wait for their words, so the table does not have their texts.
    flushed = "(SELECT value FROM meta WHERE key='flushed')"
    sql = f"SELECT (SELECT count(*) FROM words_docsize), (SELECT count(*) FROM entry WHERE eid<={flushed})"
    texts, rows = database.row(sql) or (0, 0)
    return [] if texts == rows else [f"the table of words has {texts:,} texts for {rows:,} entries"]


def _vectors(database: Database) -> list[str]:
    sql = (
        "SELECT count(*) FROM vector v LEFT JOIN entry e ON e.eid=v.eid "
        "LEFT JOIN space s ON s.number=v.space "
        "WHERE e.eid IS NULL OR s.number IS NULL OR length(v.f32)!=4*s.dim"
    )
    (wrong,) = database.row(sql) or (0,)
    if wrong:
        return [f"{wrong:,} vector(s) of no entry, or of another length than their space"]
    for number, dim in database.rows("SELECT number, dim FROM space"):
        try:
            for _ in vector_table.stream(database, number, dim, Scope("")):
                pass
        except apsw.CorruptError as error:
            return [str(error)]
    return []


@dataclass(frozen=True, slots=True)
class _SessionRows:
    """The index's rows of one session."""

    known: LogState
    rows: dict[str, tuple[Record | None, tuple[Any, ...]]]
    given: dict[str, tuple[str, bytes]]
    """Vectors that callers gave, by the ids of their entries."""


def differing(index: Index, session: str, log: Log) -> int:
    """Return how many entries of a session differ between the index and the log.

    Lines that the index has not read yet are not compared. Vectors that callers gave are compared.

    Raises:
        UnavailableError: Another process keeps the index busy, or the disk fails.
    """
    with log.reading() as fd:
        try:
            with _snapshot(index) as database:
                stored = _stored_rows(database, session)
        except apsw.Error:
            return 0  # ``damage`` reports it.
        if fd is None or stored is None or not _is_of(stored.known, fd):
            return 0
        fold = Fold()
        for line in Scan(fd):
            if line.offset >= stored.known.offset:
                break
            fold.add(line)
        same = sum(_is_same(stored, folded.record) for folded in fold.entries.values())
        # An entry that is only in the log and a row that is only in the index count as one difference.
        return max(len(fold.entries), len(stored.rows)) - same


def _stored_rows(database: Database, session: str) -> _SessionRows | None:
    known = session_table.known_of(database, session)
    if known is None:
        return None
    rows: dict[str, tuple[Record | None, tuple[Any, ...]]] = {}
    sql = f"SELECT {_COLUMNS}, {entries.ROW} {entries.FROM} WHERE e.sid=?"
    for found in database.rows(sql, (known.sid,)):
        columns, row = found[:6], found[6:]
        record = None
        # A row that cannot be read counts as different; it does not end the comparison.
        with suppress(apsw.CorruptError):
            record = entries.row(*row).record
        rows[row[2]] = record, (*row[2:5], *columns)
    sql = (
        "SELECT e.id, s.id, v.f32 FROM entry e JOIN vector v ON v.eid=e.eid AND v.made=0 "
        "JOIN space s ON s.number=v.space WHERE e.sid=?"
    )
    given = {entry_id: (space, raw) for entry_id, space, raw in database.rows(sql, (known.sid,))}
    return _SessionRows(known, rows, given)


def _is_of(known: LogState, fd: int) -> bool:
    """Return whether the index was read from this file, even if lines were added to the file later."""
    stat = stat_of(os.fstat(fd))
    if known.stat == stat:
        return True
    return known.stat.inode == stat.inode and checksum(fd, known.offset, known.tail) == known.crc


def _is_same(stored: _SessionRows, record: Record) -> bool:
    indexed, columns = stored.rows.get(record["id"], (None, ()))
    # Counts, given vectors and the other keys are compared through the record, whichever column holds them.
    *expected, _access, digest, head, _given, _rest = entries.columns_of(record)
    return columns == (*expected, digest, head) and indexed == record and _is_given(stored, record)


def _is_given(stored: _SessionRows, record: Record) -> bool:
    given = stored.given.get(record["id"])
    if given is None:
        # Without a row in ``vector``, the vector is in the entry's record, which was compared as a whole.
        return True
    found = decode(record.get("embedding"))
    return found is not None and given == (found[0].id, found[1].astype("<f4").tobytes())


def damaged_files(index: Index) -> list[str]:
    """Return the vector files that the index does not list, and the files whose checksum differs.

    Raises:
        UnavailableError: Another process keeps the index busy, or the disk fails.
    """
    with suppress(apsw.Error), _snapshot(index) as database:
        place = building.folder_of(database)
        if place is None or not place.is_dir():
            return []
        with building.files(database) as folder:
            return sorted({*_wrong(database, folder), *_left(database, folder)})
    return []


def _wrong(database: Database, folder: Folder) -> Iterator[str]:
    for space, number in database.rows("SELECT space, number FROM generation"):
        if building.open_generation(database, folder, space, whole=True) is None:
            yield building.name_of(space, number)
    for *name, expected in database.rows("SELECT space, number, sid, mark, checksum FROM graph"):
        file = building.name_of_graph(*name)
        if not _matches(folder, file, expected):
            yield file


def _matches(folder: Folder, name: str, expected: int) -> bool:
    try:
        fd = folder.open(name, os.O_RDONLY)
    except (FileNotFoundError, KeepstoneError):
        return False
    try:
        raw = bytearray(os.fstat(fd).st_size)
        return bool(raw) and read_into(fd, memoryview(raw), 0) and hnsw.checksum_of(raw) == expected
    finally:
        os.close(fd)


def _left(database: Database, folder: Folder) -> list[str]:
    """Return the files that the index does not list; none while another process may be writing one."""
    named = {building.name_of(*row) for row in database.rows("SELECT space, number FROM generation")}
    graphs = database.rows("SELECT space, number, sid, mark FROM graph")
    named |= {building.name_of_graph(*row) for row in graphs}
    with building.alone(folder) as is_alone:
        files = [entry.name for entry in folder.scan() if not entry.is_dir(follow_symlinks=False)]
        return [name for name in files if name not in named and not name.endswith(LOCK)] if is_alone else []


def forget_damaged_files(index: Index) -> None:
    """Remove the files that ``damaged_files`` returns. Queries use the rows until new files are built.

    Raises:
        UnavailableError: Another process keeps the index busy, or the disk fails.
    """
    with _snapshot(index) as database, building.files(database) as folder:
        wrong = set(_wrong(database, folder))
        for space, number in database.rows("SELECT space, number FROM generation"):
            if building.name_of(space, number) in wrong:
                database.execute("DELETE FROM generation WHERE space=?", (space,))
                database.execute("DELETE FROM graph WHERE space=?", (space,))
        for *name, space, sid in database.rows("SELECT space, number, sid, mark, space, sid FROM graph"):
            if building.name_of_graph(*name) in wrong:
                database.execute("DELETE FROM graph WHERE space=? AND sid=?", (space, sid))
        database.execute("COMMIT")
        with building.alone(folder) as is_alone:
            if is_alone:
                building.tidy(database, folder)
