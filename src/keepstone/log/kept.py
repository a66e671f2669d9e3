"""Copies of damaged parts of logs, or of whole logs, made before a repair, in the folder of archives.

The name of a copy is the log's name, the time and ``.original``. A copy belongs to its session: a purge
removes the lines of purged entries from copies, too.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from keepstone.errors import StoreError
from keepstone.filesystem.atomic import sync_file, write_all
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE

_CHUNK = 1 << 20


def keep_part(folder: Folder, log_name: str, source: int, begin: int, end: int) -> str:
    """Copy the bytes of a log from ``begin`` to ``end`` and sync the copy; return its name.

    Raises:
        StoreError: The disk is full or failed; no copy was made.
    """
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%fZ")
    name = f"{log_name.rpartition('/')[2]}.{stamp}.original"
    folder.make_folder(ARCHIVE)
    # O_EXCL: a copy is never written over an earlier one.
    target = folder.open(f"{ARCHIVE}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        while begin < end and (chunk := os.pread(source, min(_CHUNK, end - begin), begin)):
            write_all(target, chunk)
            begin += len(chunk)
        sync_file(target)
    # Half a copy must not be taken for a whole one later.
    except StoreError:
        folder.unlink(f"{ARCHIVE}/{name}")
        raise
    finally:
        os.close(target)
    # The caller cuts these bytes off next, so the name of the copy has to be on disk first.
    folder.sync(ARCHIVE)
    return name
