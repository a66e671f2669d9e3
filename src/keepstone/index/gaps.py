"""Zeroing the gaps in an index's pages, where SQLite leaves copies of content that it moved elsewhere.

With ``secure_delete`` SQLite overwrites deleted rows. If a row grows beyond its page, other rows move to
another page, and their old bytes may stay between the page's list of cells and the first cell. No row has
these bytes, so no deletion finds them. A page's type is its first byte; pages without a type begin with 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from keepstone.index.database import Database

if TYPE_CHECKING:
    from collections.abc import Iterator

_AT_ONCE = 1 << 20
"""Number of bytes read at a time: a multiple of each page size."""
_HEADERS = {2: 12, 5: 12, 10: 8, 13: 8}
"""The length of a page's header, by its type: branches and leaves of indexes and tables."""
_FIRST = 100
"""Bytes before the header of the first page: the header of the file."""


def zero_gaps(database: Database) -> bool:
    """Fill the gaps of all pages with zeros; False if others wrote since the journal was emptied.

    Others cannot write pages at the same time: they need the lock held here, or pages in the journal.
    """
    if database.path is None:
        return True
    with database.writing():
        if database.journal_bytes():
            return False
        # Opened by SQLite's VFS: closing any other descriptor ends all locks of this process on the file.
        flags = apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READWRITE
        file = apsw.VFSFile("", str(database.path), [flags, 0])
        try:
            page_size = int(database.connection.execute("PRAGMA page_size").get)
            found = list(_gaps(file, page_size))
            for at, length in found:
                file.xWrite(bytes(length), at)
            if found:
                file.xSync(apsw.SQLITE_SYNC_NORMAL)
                # This change makes every connection read its pages again, so that none writes an old gap.
                database.execute("UPDATE meta SET value=value+1 WHERE key='purges'")
        finally:
            file.xClose()
    if found:
        database.connection.release_memory()
    return True


def _gaps(file: apsw.VFSFile, page_size: int) -> Iterator[tuple[int, int]]:
    """Yield offset and length of each gap that has a byte other than zero."""
    size = file.xFileSize()
    for begin in range(0, size, _AT_ONCE):
        block = file.xRead(min(_AT_ONCE, size - begin), begin)
        for page in range(0, len(block), page_size):
            at = page + (_FIRST if begin + page == 0 else 0)
            header = _HEADERS.get(block[at])
            if header is None:
                continue
            # SQLite's header of a page has the number of cells at byte 3 and the start of their content at
            # byte 5; after the header come two bytes for each cell. A start of 0 would mean 65,536, which is
            # beyond the end of any page used here.
            cells = int.from_bytes(block[at + 3 : at + 5], "big")
            content = page + int.from_bytes(block[at + 5 : at + 7], "big")
            first = at + header + 2 * cells
            if first < content <= page + page_size and block[first:content].strip(b"\0"):
                yield begin + first, content - first
