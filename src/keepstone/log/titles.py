"""The title of a session: a patch without an entry in its log, which readers of entries ignore."""

from __future__ import annotations

from keepstone.log.line import is_put
from keepstone.model import Record

TITLE_ID = "keepstone:session"
"""The id of the lines that give a session its title."""


def is_title(record: Record) -> bool:
    """Return whether a line sets the session's title, in the key ``summary``; null removes the title."""
    return record.get("id") == TITLE_ID and "summary" in record and not is_put(record)


def title_of(record: Record) -> str | None:
    """Return the title in a title line; None if the line removes the title."""
    title = record["summary"]
    return title if isinstance(title, str) and title.strip() else None
