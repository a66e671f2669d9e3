"""Reading a foreign SQLite file, of which nothing is changed and beside which nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote

import apsw

from keepstone.importing.item import SourceError

_JOURNALS = ("-wal", "-journal")
_MAGIC = b"SQLite format 3\0"
_LONGEST_VALUE = 64 << 20


class ForeignDatabase:
    """The tables of a foreign SQLite file, read-only."""

    def __init__(self, connection: apsw.Connection, name: str) -> None:
        self._connection = connection
        self.name = name
        found = self.rows("SELECT name FROM sqlite_schema WHERE type = 'table'")
        self.tables = frozenset(str(name) for (name,) in found)

    def columns(self, table: str) -> list[str]:
        """Return the names of a table's columns."""
        return [str(row[1]) for row in self.rows(f"PRAGMA table_info({_quoted(table)})")]

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query.

        Raises:
            SourceError: The file is damaged, or not of this form.
        """
        try:
            yield from self._connection.execute(statement, values)
        except (apsw.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{self.name} is damaged, or not of this form: {error}") from error

    def records(self, table: str, order: str = "rowid") -> Iterator[dict[str, Any]]:
        """Yield the rows of a table as mappings."""
        names = self.columns(table)
        chosen = ", ".join(map(_quoted, names))
        for row in self.rows(f"SELECT {chosen} FROM {_quoted(table)} ORDER BY {order}"):  # noqa: S608
            yield dict(zip(names, row, strict=True))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def is_sqlite(path: Path) -> bool:
    """Tell whether a file is an SQLite database."""
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC
    return False


@contextmanager
def foreign_database(path: Path) -> Iterator[ForeignDatabase]:
    """Open a foreign SQLite file for reading.

    Opened in place, a file in WAL mode would get ``-wal`` and ``-shm`` files beside it. So it is opened as
    immutable; where a journal has changes that are not in it yet, a copy of both is read.

    Raises:
        SourceError: It is not an SQLite file, or cannot be read.
    """
    path = path.resolve()
    journals = [path.with_name(path.name + suffix) for suffix in _JOURNALS]
    filled = [journal for journal in journals if journal.is_file() and journal.stat().st_size]
    if not is_sqlite(path):
        raise SourceError(f"{path} is not an SQLite database")
    if not filled:
        with _opened(path, f"file:{quote(str(path))}?mode=ro&immutable=1") as database:
            yield database
        return
    with TemporaryDirectory(prefix="keepstone-import-") as folder:
        for file in (path, *filled):
            shutil.copyfile(file, Path(folder) / file.name)
        copy = Path(folder) / path.name
        with _opened(path, f"file:{quote(str(copy))}") as database:
            yield database


@contextmanager
def _opened(path: Path, address: str) -> Iterator[ForeignDatabase]:
    flags = apsw.SQLITE_OPEN_URI | (
        apsw.SQLITE_OPEN_READONLY if "immutable" in address else apsw.SQLITE_OPEN_READWRITE
    )
    try:
        connection = apsw.Connection(address, flags=flags)
    except apsw.Error as error:
        raise SourceError(f"{path} cannot be opened: {error}") from error
    try:
        # The schema is a stranger's: no function of it may run, and no value fills the memory.
        connection.execute("PRAGMA trusted_schema = OFF; PRAGMA query_only = ON")
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        yield ForeignDatabase(connection, path.name)
    except apsw.Error as error:
        raise SourceError(f"{path} is damaged: {error}") from error
    finally:
        connection.close()
