"""The SQLite file of an index: its schema, how it is opened, and when it is discarded."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Self

import apsw

from keepstone.filesystem.confine import FILE_MODE
from keepstone.filesystem.fork import hold_over_forks, reset_in_child
from keepstone.index.page_size import ENLARGING, LARGE, MOST_SMALL, SMALL, enlarge, is_half_enlarged
from keepstone.index.row_text import WaitingTexts, with_vector
from keepstone.index.table_schema import TABLES
from keepstone.index.turn import Turn
from keepstone.text.tokenizer import ENGLISH, stemmed, stemming_of, tokenizer_of

_ROLLBACK = "-journal"

SCHEMA = 11
"""The version of the schema. The index's path has it, so that versions do not overwrite one another."""


def sqlite_version() -> str:
    """Return the version of the SQLite that indexes are kept in."""
    return apsw.sqlite_lib_version()


def _words_table(language: str) -> str:
    return f"""
CREATE VIRTUAL TABLE words USING fts5(text, content='', tokenize='{" ".join(tokenizer_of(language))}');
INSERT INTO words(words, rank) VALUES('secure-delete', 1);
INSERT INTO meta VALUES('tokenizer', '{_tokenization(language)}');
"""


def _tokenization(language: str) -> str:
    """Return an identifier of tokenizer and stemming; an index with another identifier is rebuilt."""
    # A digest, as the characters that some scripts add would take four pages of a small index.
    return sha256(" ".join((*tokenizer_of(language), stemming_of(language))).encode()).hexdigest()


DAMAGE = (
    *(apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.MismatchError),
    *(apsw.ConstraintError, apsw.SQLError, UnicodeDecodeError),
)
"""Errors of SQLite for a file that is not, or is no longer, a valid index; see ``is_damage``."""

_LIMITS = (
    "Expression tree is too large",
    "too many SQL variables",
    "parser stack overflow",
    "too many terms",
)
"""Prefixes of SQLite's error messages for a statement that exceeds its limits."""

UNUSABLE = (
    *(apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.FullError),
    *(apsw.IOError, apsw.ConnectionClosedError, OSError),
)
"""Errors if the disk is full or fails, or if the index was closed during the call."""

BUSY = (apsw.BusyError,)
"""SQLite's error if another process locks the file for too long."""


def is_damage(error: BaseException) -> bool:
    """Return whether an error means that the file is damaged; exceeding SQLite's limits does not."""
    return isinstance(error, DAMAGE) and not str(error).startswith(_LIMITS)


_SHORT_JOURNAL = 1 << 20
"""Size in bytes below which reading a journal at the next open takes less time than writing it back now."""

LONG_JOURNAL = 32 << 20
"""Size in bytes from which long work pauses until the journal can be emptied. SQLite writes it back from 8 MB
on, but starts it over only at a moment without readers, which does not come while readers overlap."""

_epochs = count(1)
"""Numbers for the files that this process opens or creates, so that rows of two files are never confused."""


class DamagedError(Exception):
    """The index was damaged and is empty now: catch up and ask again."""


class UnavailableError(Exception):
    """The index cannot be used now: it is busy, or the disk is full or fails."""


class Database:
    """One connection, shared between threads under ``guard``; every use holds the guard.

    A fork waits for the guard, and the child closes its copies of the connection's files. SQLite keeps the
    locks of a process in its memory: a child with the locks of its parent would wait forever.
    """

    def __init__(self, path: Path | None, language: str = ENGLISH) -> None:
        self.path, self._file = path, str(path)
        self.language = language
        """The language of words in Latin letters, see ``keepstone.text.tokenizer``."""
        self.epoch = next(_epochs)
        """Number that changes when the file is replaced by an empty one: rows then mean other entries."""
        self.guard = threading.RLock()
        hold_over_forks(self.guard)
        self.turn = Turn(path)
        self._most_pages = math.inf
        """Number of pages above which the index gets large pages; infinite if it has them already."""
        self.texts = WaitingTexts()
        self.has_hidden: bool | None = None
        """Whether any row may be hidden, see ``keepstone.index.hidden_rows``; None if it is unknown."""
        with self.guard:
            self.connection = self._open()
            reset_in_child(self)
        self.inode = self._inode()

    def reset(self) -> None:
        """Close a parent's connection in its child, and leave the journal to the parent."""
        with suppress(apsw.ConnectionClosedError):
            self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self.connection.close(force=True)

    def execute(self, sql: str, bindings: tuple[Any, ...] = ()) -> None:
        """Run one statement for its effect."""
        self.connection.execute(sql, bindings)

    def rows(self, sql: str, bindings: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        return self.connection.execute(sql, bindings).fetchall()

    def row(self, sql: str, bindings: tuple[Any, ...] = ()) -> tuple[Any, ...] | None:
        """Run one statement and return the first row that it finds, None if it finds none."""
        return self.connection.execute(sql, bindings).fetchone()

    def stamp(self) -> object:
        """Return a value that changes with every transaction, of this connection and of others."""
        # data_version changes with writes of other connections, total_changes with writes of this one. The
        # pragma reads the file; apsw's data_version() is only the version of the last transaction.
        return self.row("PRAGMA data_version"), self.connection.total_changes()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the guard and one write transaction, rolled back if the body raises."""
        with self.guard:
            if self.connection.in_transaction:
                yield
                return
            # IMMEDIATE: if a transaction begins as a reader and another connection then writes, SQLite
            # refuses the first write of the reader at once instead of waiting for the lock.
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise
            self._grow()

    def _grow(self) -> None:
        """Switch an index that is no longer small to large pages, unless another connection has it open."""
        if self.path is None or self._most_pages == math.inf:
            return
        pages = self.connection.execute("PRAGMA page_count").get
        if pages > self._most_pages:
            # A failed attempt is repeated once there are twice as many pages: small pages only cost time.
            is_done = enlarge(self.connection, self.path.with_suffix(ENLARGING), self.turn)
            self._most_pages = math.inf if is_done else 2 * pages

    def __enter__(self) -> Self:
        """Acquire the guard; on exit, recreate a damaged file and raise ``DamagedError``."""
        # A recall enters this many times: a generator would take three times as long.
        self.guard.acquire()
        return self

    def __exit__(self, _: object, error: BaseException | None, traceback: object) -> None:
        """Release the guard; translate an error of SQLite or of the system."""
        try:
            if error is None or not isinstance(error, (apsw.Error, OSError, UnicodeDecodeError)):
                return
            if is_damage(error):
                self.discard()
                raise DamagedError(str(error)) from error
            if isinstance(error, (apsw.BusyError, *UNUSABLE)):
                raise UnavailableError(str(error)) from error
        finally:
            if self.turn.is_waiting:
                self.turn.end()
            self.guard.release()

    def replaced(self) -> bool:
        """Return whether the file was deleted or replaced since it was opened."""
        return self.path is not None and self._inode() != self.inode

    def discard(self) -> None:
        """Replace the file with an empty one."""
        with self.guard:
            self.connection.close(force=True)
            self.epoch = next(_epochs)
            if self.path is not None:
                remove_files(self.path)
            self.connection = self._open()
            self.inode = self._inode()

    def checkpoint(self, timeout: float) -> bool:
        """Write the journal back and empty it.

        Returns False if readers keep it in use for ``timeout`` seconds, or if the disk is full or fails.
        """
        with self:
            deadline = time.monotonic() + timeout
            while self.path is not None:
                try:
                    self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
                    break
                except apsw.BusyError:
                    if time.monotonic() >= deadline:
                        return False
                except UNUSABLE:
                    return False
                except DAMAGE:
                    self.discard()  # This also removes the journal.
            return True

    def shorten_journal(self) -> bool:
        """Empty a long journal if that needs no waiting; return whether the journal is short now."""
        if self.journal_bytes() < LONG_JOURNAL:
            return True
        try:
            # This copies the pages without the write lock; later readers then do not use the journal.
            pages, copied = self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            if copied < pages:
                return False
            self.connection.set_busy_handler(None)
            self.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        except apsw.BusyError:
            return False
        finally:
            self.connection.set_busy_handler(self.turn.wait)
        return True

    def pages(self, *, release: bool = False) -> int:
        """Return the bytes of pages SQLite keeps in memory; ``release`` frees them. The guard is held."""
        with suppress(apsw.ConnectionClosedError):
            if release and self.path is not None:
                self.connection.release_memory()
            return int(self.connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0])
        return 0

    def close(self, *, soon_reopened: bool = False) -> None:
        """Close the connection.

        With ``soon_reopened``, a short journal is not written back into the database, as that would sync the
        disk. The journal of a small index is always written back, as it would take more space than the index.
        """
        with self.guard:
            with suppress(apsw.ConnectionClosedError):
                is_large = self._most_pages == math.inf
                if soon_reopened and is_large and self.journal_bytes() < _SHORT_JOURNAL:
                    self.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            self.connection.close(force=True)

    def _open(self) -> apsw.Connection:
        try:
            connection = _connect(self.path, self.language, self.turn, self.texts)
        except DAMAGE:
            if self.path is None:
                raise
            remove_files(self.path)
            connection = _connect(self.path, self.language, self.turn, self.texts)
        finally:
            self.turn.end()
        is_small = connection.execute("PRAGMA page_size").get == SMALL
        self._most_pages = MOST_SMALL if is_small else math.inf
        return connection

    def journal_bytes(self) -> int:
        """Return the length of SQLite's write-ahead log."""
        try:
            return os.stat(f"{self.path}-wal").st_size if self.path else 0  # noqa: PTH116  Each step looks.
        except OSError:
            return 0

    def _inode(self) -> int:
        try:
            return os.stat(self._file).st_ino if self.path else 0  # noqa: PTH116  Each recall looks.
        except OSError:
            return -1


def remove_files(path: Path) -> None:
    """Remove a database with its journals; a folder in its place is moved aside."""
    for suffix in ("", "-wal", "-shm", _ROLLBACK):
        _remove(Path(f"{path}{suffix}"))
    _remove(path.with_suffix(ENLARGING))


def _remove(path: Path) -> None:
    """Remove a file or a link; move a folder aside."""
    if path.is_dir() and not path.is_symlink():
        path.rename(f"{path}.{time.time_ns()}.aside")
    else:
        path.unlink(missing_ok=True)


def _remove_rollback_journal(path: Path) -> None:
    """Remove a rollback journal beside a database that is not empty.

    An index is in WAL mode from its first page on. SQLite would roll back a foreign journal, which may
    name another file to delete. SQLite removes the journal of an empty file without reading it.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size:
            _remove(Path(f"{path}{_ROLLBACK}"))


def _connect(path: Path | None, language: str, turn: Turn, texts: WaitingTexts) -> apsw.Connection:
    if path is not None and path.is_dir():
        remove_files(path)
    if path is not None:
        if is_half_enlarged(path.with_suffix(ENLARGING), turn):
            remove_files(path)
        _remove_rollback_journal(path)
    fresh = path if path is not None and not path.exists() else None
    connection = apsw.Connection(str(path) if path else ":memory:")
    try:
        if fresh is not None:
            # Not created with another descriptor: closing one ends all locks of this process on the file.
            fresh.chmod(FILE_MODE)
        _prepare_in_turn(connection, language, turn, texts, SMALL if path else LARGE)
    except BaseException:
        connection.close(force=True)
        raise
    return connection


def _prepare_in_turn(
    connection: apsw.Connection, language: str, turn: Turn, texts: WaitingTexts, page_size: int
) -> None:
    """Prepare a connection while other processes do the same.

    If two processes switch a new file to write-ahead logging at the same time, SQLite reports to
    one of them that the file is busy, without calling the busy handler: it has to try again.
    """
    while True:
        try:
            return _prepare(connection, language, turn, texts, page_size)
        except apsw.BusyError:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            if not turn.wait(int(turn.is_waiting)):
                raise


def _prepare(
    connection: apsw.Connection, language: str, turn: Turn, texts: WaitingTexts, page_size: int
) -> None:
    if connection.readonly("main"):
        raise apsw.ReadOnlyError("the index may not be written")
    connection.set_busy_handler(turn.wait)
    function = partial(connection.create_scalar_function, numargs=1, deterministic=True)
    function("words_of", lambda *row: stemmed(texts.take(*row), language), numargs=3)
    function("with_vector", with_vector, numargs=3, flags=apsw.SQLITE_INNOCUOUS)  # A trigger calls it.
    # SQLite sets a page size only in a file without tables and before write-ahead logging, so it comes first.
    _set(connection, f"page_size={page_size}", "secure_delete=ON", "temp_store=MEMORY")
    if not _is_ours(connection):
        _create(connection, language)
    _set(connection, "journal_mode=WAL", "synchronous=NORMAL")
    connection.execute("CREATE INDEX IF NOT EXISTS session_unread ON session(sid) WHERE offset!=size")
    if connection.execute("SELECT value FROM meta WHERE key='tokenizer'").get != _tokenization(language):
        raise apsw.FormatError("the index was made with another tokenizer")


def _set(connection: apsw.Connection, *pragmas: str) -> None:
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}").fetchall()


def _create(connection: apsw.Connection, language: str) -> None:
    """Create the tables. A new file needs no journal and no sync: SQLite notices if it is half written."""
    if connection.execute("PRAGMA journal_mode").get == "delete":
        _set(connection, "synchronous=OFF", "journal_mode=MEMORY")
    connection.execute("BEGIN IMMEDIATE")
    if not _is_ours(connection):
        connection.execute(TABLES + _words_table(language))
    connection.execute("COMMIT")


def _is_ours(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name='meta'").get is not None
