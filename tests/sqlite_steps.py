"""The work that SQLite does, as steps of its virtual machine: the same on every machine."""

from __future__ import annotations

from collections.abc import Callable

import apsw

from keepstone.index.database import Database


def steps(database: Database, act: Callable[[], object]) -> int:
    """Return how many steps the statements take that an act runs to their end."""
    taken = 0

    def note(event: dict[str, dict[str, int]]) -> None:
        nonlocal taken
        taken += event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]

    database.connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note, id="steps")
    try:
        act()
    finally:
        database.connection.trace_v2(0, None, id="steps")
    return taken
