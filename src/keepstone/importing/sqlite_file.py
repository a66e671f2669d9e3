"""Reading a foreign SQLite file without changing it or writing files beside it."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import apsw

from keepstone.errors import SourceError

_MAGIC = b"SQLite format 3\0"
_HOT_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""The first bytes of a rollback journal with an unfinished transaction."""
_LONGEST_VALUE = 64 << 20
_STEPS = 50_000_000
_STEPS_PER_BYTE = 100
"""Maximum steps of SQLite's virtual machine for a file: ``_STEPS``, and this number more for each byte.

A row takes tens of steps, so an honest file stays far below the limit, and a hostile one is stopped within
seconds.
"""
_STEPS_BETWEEN = 10_000


class ForeignDatabase:
    """The tables of a foreign SQLite file, read-only.

    Views, virtual tables and computed columns are not read, as they would run code of the file's author.
    """

    def __init__(self, connection: apsw.Connection, name: str, size: int) -> None:
        self._connection = connection
        self.name = name
        self._steps = _STEPS + _STEPS_PER_BYTE * size
        # The limit is set first, as even reading the schema of a hostile file can take forever.
        connection.set_progress_handler(self._is_exhausted, _STEPS_BETWEEN)
        # A virtual table has no page of its own: its root page is 0 or null.
        found = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
        self.tables = frozenset(str(name) for (name,) in found)
        # For generated columns, ``hidden`` is 2 if they are computed on reading, and 3 if they are stored.
        self._computed = frozenset(
            self.rows(
                "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_xinfo(t.name) AS c "
                "WHERE t.type = 'table' AND t.rootpage > 0 AND c.hidden = 2"
            )
        )
        # The authorizer is set after the schema was read, as it needs the tables and computed columns.
        connection.authorizer = self._authorize

    def _is_exhausted(self) -> bool:
        self._steps -= _STEPS_BETWEEN
        return self._steps < 0

    def _authorize(self, action: int, table: str | None, column: str | None, *_: str | None) -> int:
        # ``query_only`` already refuses writes. SQLite reports the schema table as ``sqlite_master`` even if
        # the query names ``sqlite_schema``.
        if action != apsw.SQLITE_READ or table == "sqlite_master":
            return apsw.SQLITE_OK
        is_stored = table in self.tables and (table, column) not in self._computed
        return apsw.SQLITE_OK if is_stored else apsw.SQLITE_DENY

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns."""
        return [str(row[1]) for row in self.rows(f"PRAGMA table_info({_quoted(table)})")]

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query.

        Raises:
            SourceError: The file is damaged, takes too many steps, or has other tables.
        """
        try:
            yield from self._connection.execute(statement, values)
        except apsw.InterruptError as error:
            raise SourceError(
                f"{self.name} takes more work than a file of its size should: it is damaged, or made for that"
            ) from error
        except (apsw.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{self.name} is damaged, or not of this form: {error}") from error

    def records(self, table: str, order: str = "rowid") -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as mappings."""
        names = self.columns(table)
        # Name the columns: a star would include computed columns, and the authorizer would refuse the query.
        chosen = ", ".join(map(_quoted, names))
        for row in self.rows(f"SELECT {chosen} FROM {_quoted(table)} ORDER BY {order}"):  # noqa: S608
            yield dict(zip(names, row, strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def is_sqlite(path: Path) -> bool:
    """Return whether a file is an SQLite database."""
    return _begins_with(path, _MAGIC)


def _begins_with(path: Path, magic: bytes) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(magic)) == magic
    return False


@contextmanager
def foreign_database(path: Path) -> Iterator[ForeignDatabase]:
    """Open a foreign SQLite file for reading.

    Normal opening would create ``-wal`` and ``-shm`` files beside a file in WAL mode, so the file is opened
    as immutable. If there is a WAL with content, a copy of the file and its WAL is read instead. A rollback
    journal is never applied: it may name another file, which SQLite would delete.

    Raises:
        SourceError: The file is not an SQLite file, cannot be read, or has an unfinished transaction.
    """
    # Files beside the database are named after its real path, not after a link to it.
    path = path.resolve()
    if not is_sqlite(path):
        raise SourceError(f"{path} is not an SQLite database")
    journal = path.with_name(f"{path.name}-journal")
    if _is_filled(journal) and _begins_with(journal, _HOT_JOURNAL):
        raise SourceError(
            f"{journal} holds an unfinished transaction: let the tool that wrote {path.name} open it once, "
            "or import a copy of it without that file"
        )
    wal = path.with_name(f"{path.name}-wal")
    if not _is_filled(wal):
        with _opened(path, f"file:{quote(str(path))}?mode=ro&immutable=1") as database:
            yield database
        return
    with TemporaryDirectory(prefix="keepstone-import-") as folder:
        # ``-shm`` is not copied: SQLite recreates it from the WAL when it opens the copy.
        for file in (path, wal):
            shutil.copyfile(file, Path(folder) / file.name)
        copy = Path(folder) / path.name
        with _opened(path, f"file:{quote(str(copy))}") as database:
            yield database


def _is_filled(path: Path) -> bool:
    """Return whether a file beside a database exists and is not empty; refuse a link."""
    try:
        # Check the link itself: a link's target would be copied and read as a part of the database.
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise SourceError(f"{path} is a link or no file, and is not read: remove it, or import a copy")
    return status.st_size > 0


@contextmanager
def _opened(path: Path, address: str) -> Iterator[ForeignDatabase]:
    flags = apsw.SQLITE_OPEN_URI | (
        # To read a WAL, SQLite creates a ``-shm`` file beside it.
        apsw.SQLITE_OPEN_READONLY if "immutable" in address else apsw.SQLITE_OPEN_READWRITE
    )
    try:
        connection = apsw.Connection(address, flags=flags)
    except apsw.Error as error:
        raise SourceError(f"{path} cannot be opened: {error}") from error
    try:
        _distrust(connection)
        yield ForeignDatabase(connection, path.name, path.stat().st_size)
    except apsw.Error as error:
        raise SourceError(f"{path} is damaged: {error}") from error
    finally:
        connection.close()


def _distrust(connection: apsw.Connection) -> None:
    """Prevent code in the untrusted schema from running, and limit the size of values."""
    for setting, value in (
        (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
        (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_VIEW, 0),
        (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0),
    ):
        connection.config(setting, value)
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
    # ``cell_size_check`` detects a damaged page on loading, before its cells are used.
    connection.execute("PRAGMA query_only = ON; PRAGMA cell_size_check = ON")
