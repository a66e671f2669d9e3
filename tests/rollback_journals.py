"""Rollback journals of SQLite as a stranger may lay them beside a database."""

from __future__ import annotations

import struct
from pathlib import Path

_MAGIC = bytes.fromhex("d9d505f920a163d7")


def lay_beside(database: Path, super_journal: Path, pages: int = 1) -> Path:
    """Write a hot journal that cuts a database down to ``pages`` and names a file as super-journal.

    SQLite before 3.54.1 deletes the file so named.
    """
    size = int.from_bytes(database.read_bytes()[16:18], "big")
    head = (_MAGIC + struct.pack(">IIIII", 0, 1, pages, 512, size)).ljust(512, b"\0")
    name = str(super_journal).encode()
    lock_page = 0x40000000 // size + 1
    tail = struct.pack(">I", lock_page) + name + struct.pack(">II", len(name), sum(name)) + _MAGIC
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(head + tail)
    return journal
