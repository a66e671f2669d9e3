"""The page size of an index: small pages up to a size of 256 KiB, large pages above.

Each table and each of its indexes takes at least one page, 35 in all: with large pages, an index of one entry
would take 280 KB. With small pages, longer rows are spread over many pages, which slows a large index down.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from keepstone.filesystem.confine import FILE_MODE
from keepstone.index.turn import Turn

SMALL, LARGE = 512, 8192
"""Page sizes in bytes. Five vectors of 384 numbers fit into a large page; into one of half that size only two
fit, which leaves a quarter of it free."""

MOST_SMALL = 512
"""Number of small pages above which an index gets large pages."""


ENLARGING = ".enlarging"
"""Suffix of the file beside an index that marks that its pages are being enlarged."""


def enlarge(connection: apsw.Connection, mark: Path, turn: Turn) -> bool:
    """Switch an index to large pages; False if another connection has it open, or waits for it.

    SQLite changes the page size only outside write-ahead logging. The file ``mark`` exists until the change
    is done: an index with a mark but without a process that holds the lock of ``turn`` is half written.

    Raises:
        apsw.Error: The disk is full or fails; the index is unchanged.
    """
    if not turn.take():
        return False
    # Do not wait for others: ``Database`` tries again once the index has twice as many pages.
    connection.set_busy_handler(None)
    try:
        mark.touch(FILE_MODE)
        # The lock is kept between the steps, so that no other connection comes between them.
        connection.execute("PRAGMA locking_mode=EXCLUSIVE").fetchall()
        # SQLite returns the mode in effect, which is not the requested one if a second connection is open.
        if connection.execute("PRAGMA journal_mode=DELETE").get != "delete":
            return False
        connection.execute(f"PRAGMA page_size={LARGE}").fetchall()
        connection.execute("VACUUM")
    except apsw.BusyError:
        return False
    finally:
        connection.execute("PRAGMA locking_mode=NORMAL").fetchall()
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        # SQLite releases the exclusive lock at the next access after the mode was set, not at once.
        connection.execute("SELECT 1 FROM meta").fetchall()
        mark.unlink(missing_ok=True)
        connection.set_busy_handler(turn.wait)
        turn.end()
    return True


def is_half_enlarged(mark: Path, turn: Turn) -> bool:
    """Return whether a killed process left an index half enlarged; wait for a process that enlarges it.

    If True, ``turn`` holds the lock until ``turn.end``.

    Raises:
        apsw.BusyError: Another process did not finish in time.
    """
    while mark.exists():
        if turn.take():
            # The process that enlarged the pages may have finished between the check and the lock.
            return mark.exists()
        if not turn.wait(int(turn.is_waiting)):
            raise apsw.BusyError("another process enlarges the pages of the index")
    return False
