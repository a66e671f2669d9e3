"""The page size of an index: small pages in a small index, large ones from some hundred kilobytes on.

Each table and each of its indexes takes a page at least, 35 in all: with large pages an index of one entry
would take 280 KB. With small ones longer rows are spread over many pages, which a large index pays for.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from keepstone.filesystem.confine import FILE_MODE
from keepstone.index.turn import Turn

SMALL, LARGE = 512, 8192
"""Bytes. Of vectors of 384 numbers five fit into a large page; into one of half that size only two, and a
quarter of it is left free."""

MOST_SMALL = 512
"""Small pages from which on an index gets large ones."""


ENLARGING = ".enlarging"
"""Suffix of the file that says, beside an index, that its pages are being enlarged."""


def enlarge(connection: apsw.Connection, mark: Path, turn: Turn) -> bool:
    """Give an index large pages; False if another connection has it open, or waits for it.

    SQLite changes the page size only outside write-ahead logging. ``mark`` is a file that is there until it
    is done: an index with a mark but without a process that holds the lock of ``turn`` is half written.

    Raises:
        apsw.Error: The disk is full or refuses; the index is as it was.
    """
    if not turn.take():
        return False
    # Nobody is waited for: ``Database`` tries again once the index has twice as many pages.
    connection.set_busy_handler(None)
    try:
        mark.touch(FILE_MODE)
        # The lock is kept between the steps, so that no other connection comes between them.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
        # SQLite answers with the mode that holds now, which is another one if a second connection is open.
        if connection.execute("PRAGMA journal_mode=DELETE").get != "delete":
            return False
        connection.execute(f"PRAGMA page_size={LARGE}").fetchall()
        connection.execute("VACUUM")
    except apsw.BusyError:
        return False
    finally:
        connection.execute("PRAGMA locking_mode=NORMAL").fetchall()
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        # SQLite returns the exclusive lock at the next access after the mode was set, not at once.
        connection.execute("SELECT 1 FROM meta").fetchall()
        mark.unlink(missing_ok=True)
        connection.set_busy_handler(turn.wait)
        turn.end()
    return True


def is_half_enlarged(mark: Path, turn: Turn) -> bool:
    """Return whether a killed process left an index half enlarged; wait for one that still enlarges it.

    If so, ``turn`` has the lock until its end.

    Raises:
        apsw.BusyError: Another process did not finish in time.
    """
    while mark.exists():
        if turn.take():
            # The process that enlarged the pages may have finished between the look and the lock.
            return mark.exists()
        if not turn.wait(int(turn.is_waiting)):
            raise apsw.BusyError("another process enlarges the pages of the index")
    return False
