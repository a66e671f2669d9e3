"""The SQLite file of an index: its schema, how it is opened, and when it is thrown away."""

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
"""Part of the index's path, so that versions lie side by side and do not undo one another."""


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
    """Return the recorded way of cutting and stemming words; an index with another one is rebuilt."""
    # As a digest: the characters that some scripts add would take four pages of a small index.
    return sha256(" ".join((*tokenizer_of(language), stemming_of(language))).encode()).hexdigest()


DAMAGE = (
    *(apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.MismatchError),
    *(apsw.ConstraintError, apsw.SQLError, UnicodeDecodeError),
)
"""Errors of SQLite for a file that is not, or is no longer, one of ours; see ``is_damage``."""

_LIMITS = (
    "Expression tree is too large",
    "too many SQL variables",
    "parser stack overflow",
    "too many terms",
)
"""How the messages begin with which SQLite refuses a statement that is too large for it."""

UNUSABLE = (
    *(apsw.CantOpenError, apsw.ReadOnlyError, apsw.PermissionsError, apsw.FullError),
    *(apsw.IOError, apsw.ConnectionClosedError, OSError),
)
"""Its errors if the disk refuses, or the index was closed during the call."""

BUSY = (apsw.BusyError,)
"""Its error if another process keeps the file for too long."""


def is_damage(error: BaseException) -> bool:
    """Return whether an error means that the file is damaged; one beyond SQLite's limits is not damage."""
    return isinstance(error, DAMAGE) and not str(error).startswith(_LIMITS)


_SHORT_JOURNAL = 1 << 20
"""Bytes of a journal that the next open reads in less time than writing it back takes now."""

LONG_JOURNAL = 32 << 20
"""Bytes of a journal from which on long work rests until it can be emptied. SQLite writes it back from 8 MB
on, but starts it over only at a moment without readers, which does not come while readers overlap."""

_epochs = count(1)
"""Numbers the files that this process opens or begins, so that rows of two of them are never confused."""


class DamagedError(Exception):
    """The index was damaged and is empty now: catch up and ask again."""


class UnavailableError(Exception):
    """The index cannot be used now: it is busy, or the disk is full or refuses."""


class Database:
    """One connection, shared between threads under ``guard``; every use holds the guard.

    A fork waits until nothing goes on here, and the child closes its copies of the connection's files. SQLite
    keeps the locks of a process in its memory: a child that has those of its parent would wait forever.
    """

    def __init__(self, path: Path | None, language: str = ENGLISH) -> None:
        self.path, self._file = path, str(path)
        self.language = language
        """The language of words in Latin letters, see ``keepstone.text.tokenizer``."""
        self.epoch = next(_epochs)
        """Changes whenever the file is replaced by an empty one: rows then stand for other entries."""
        self.guard = threading.RLock()
        hold_over_forks(self.guard)
        self.turn = Turn(path)
        self._most_pages = math.inf
        """Pages from which on the index gets large ones; infinite if it has them."""
        self.texts = WaitingTexts()
        self.has_hidden: bool | None = None
        """Whether any row may be hidden, see ``keepstone.index.hidden_rows``; None if nobody looked."""
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
        # data_version changes with writes of other connections, total_changes with those of this one. The
        # pragma looks at the file; apsw's data_version() is only the version of the last transaction.
        return self.row("PRAGMA data_version"), self.connection.total_changes()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Hold the guard and one write transaction, rolled back if the body raises."""
        with self.guard:
            if self.connection.in_transaction:
                yield
                return
            # IMMEDIATE: a transaction that begins as a reader may find that another connection wrote since,
            # and SQLite then refuses its first write at once instead of waiting for the lock.
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
        """Give an index that is no longer small large pages, unless another connection has it open."""
        if self.path is None or self._most_pages == math.inf:
            return
        pages = self.connection.execute("PRAGMA page_count").get
        if pages > self._most_pages:
            # A failed try is repeated once there are twice as many pages: small ones only cost time.
            is_done = enlarge(self.connection, self.path.with_suffix(ENLARGING), self.turn)
            self._most_pages = math.inf if is_done else 2 * pages

    def __enter__(self) -> Self:
        """Hold the guard; on the way out a damaged file is recreated, and raises ``DamagedError``."""
        # Entered many times a recall: a generator would take three times as long.
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
        """Return whether the file was deleted or exchanged since it was opened."""
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

        False if readers kept it in use for ``timeout`` seconds, or if the disk is full or refuses.
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
                    self.discard()  # And with it all that was to be emptied.
            return True

    def shorten_journal(self) -> bool:
        """Empty a long journal unless that means waiting for anyone; return whether it is short now."""
        if self.journal_bytes() < LONG_JOURNAL:
            return True
        try:
            # Copies the pages without the write lock; later readers do not use the journal then.
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
        """Close the connection; if it is ``soon_reopened``, leave a short journal: writing it back syncs.

        That of a small index is written back, for it would take more room than the index.
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
        """Return the length of SQLite's journal."""
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

    An index is in WAL mode from its first page on. SQLite would roll back a stranger's journal, which
    may name another file to delete. That of an empty file it removes unread.
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
            # Not made by a descriptor of our own: closing one ends all locks of this process on the file.
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

    Where two switch a new file to write-ahead logging at one moment, SQLite tells one that
    the file is busy and does not ask the busy handler: it has to try again.
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
    # A page size is only taken by a file without tables, and never in write-ahead logging: it comes first.
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
    """Make the tables; a new file needs neither a journal nor a sync: SQLite sees if it is half written."""
    if connection.execute("PRAGMA journal_mode").get == "delete":
        _set(connection, "synchronous=OFF", "journal_mode=MEMORY")
    connection.execute("BEGIN IMMEDIATE")
    if not _is_ours(connection):
        connection.execute(TABLES + _words_table(language))
    connection.execute("COMMIT")


def _is_ours(connection: apsw.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_schema WHERE name='meta'").get is not None
