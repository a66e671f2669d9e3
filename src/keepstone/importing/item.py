"""Results of a reader of a foreign memory: items to store, and places that it could not read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from keepstone.log.line import EPOCH, format_time, read_time
from keepstone.model import Record

_MILLISECONDS_FROM = 1e11
"""Numbers from here on count milliseconds; as seconds they would be after the year 5138."""
_MICROSECONDS_FROM = 1e14
"""Numbers from here on count microseconds; as milliseconds they would be after the year 5138."""


@dataclass(frozen=True, slots=True)
class Item:
    """One record of a source."""

    session: str
    line: Record
    """The keys of a log line.

    A missing ``id`` is derived from the content; a missing ``ts`` is copied from the previous item.
    """
    place: str
    """The record's place in the source, as shown to users."""
    exported: bool = False
    """Whether ``keepstone export`` wrote the record.

    It is then a complete log line, possibly without content.
    """
    owner: Mapping[str, Any] = field(default_factory=dict)
    """The owner that the source names outside of the line: ``user_id`` or ``namespace``."""


@dataclass(frozen=True, slots=True)
class Unread:
    """A place in a source that was not imported, and the reason."""

    place: str
    reason: str


Items: TypeAlias = Iterator[Item | Unread]


@dataclass(frozen=True, slots=True)
class Options:
    """Options for reading a source."""

    mapping: Mapping[str, str] = field(default_factory=dict)
    """The column of each field, for tables and JSON lines."""
    branches: bool = False
    """Read all branches of a conversation, not only the current one."""


def time_of(value: object) -> str | None:
    """Return a foreign time as RFC 3339, None if the value is not a time.

    A number counts seconds since 1970; large numbers count milliseconds or microseconds. A text without a
    time zone is UTC.

    Examples:
        >>> time_of(1768141860.12), time_of("2026-01-11 14:31:00")
        ('2026-01-11T14:31:00.120000Z', '2026-01-11T14:31:00.000000Z')
    """
    # Python counts a Boolean as the number 0 or 1, which would be a time in 1970.
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, str):
        moment = read_time(value.strip()) or _offset_form(value.strip())
        if moment is None:
            return _number_time(value)
        return format_time(moment)
    if isinstance(value, datetime):
        return format_time(value if value.tzinfo else value.replace(tzinfo=UTC))
    return _seconds(value) if isinstance(value, int | float) else None


def _offset_form(text: str) -> datetime | None:
    """Parse a time with a space before its offset or zone, a form that logs do not use."""
    head, _, offset = text.rpartition(" ")
    if head and offset[:1] in "+-":
        return read_time(head + offset)
    return read_time(head) if head and offset in ("UTC", "GMT", "Z") else None


def _number_time(text: str) -> str | None:
    try:
        return _seconds(float(text))
    except ValueError:
        return None


def _seconds(value: float) -> str | None:
    if abs(value) >= _MICROSECONDS_FROM:
        value /= 1e6
    elif abs(value) >= _MILLISECONDS_FROM:
        value /= 1e3
    try:
        return format_time(EPOCH + timedelta(seconds=value))
    except (OverflowError, ValueError):
        return None


def message(role: object, content: Any, **more: Any) -> Record:
    """Return the ``type`` and ``data`` of a chat message.

    Keys of ``more`` whose value is None are left out.
    """
    data = {"role": _ROLES.get(role, role) if isinstance(role, str) else "user", "content": content}
    return {
        "type": "message",
        "data": data | {key: value for key, value in more.items() if value is not None},
    }


_ROLES = {"human": "user", "ai": "assistant", "bot": "assistant", "model": "assistant"}


def content_digest(line: Record) -> str:
    """Return an id derived from a record's content, for sources whose records have no id."""
    # The vector is left out, so that imports with and without vectors give a record the same id.
    said = {key: value for key, value in line.items() if key != "embedding"}
    coded = json.dumps(said, sort_keys=True, default=str).encode()
    return hashlib.sha256(coded).hexdigest()[:32]


def named(value: object) -> str | None:
    """Return a text or a number as an id or name; None for anything else, and for an empty text."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None
