"""Grants: lines with which an agent lets others read or write its memory.

Everything here fails closed: if one line cannot be parsed, all lines of the agent grant nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Literal, cast

from keepstone.errors import KeepstoneError, StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.log.line import format_time, read_time
from keepstone.model import Entry, Scope

READ, WRITE, NOTHING = "read", "write", "nothing"
MOST_BYTES = 1 << 20
"""Maximum bytes of a grants file; a longer file counts as damaged."""

_KEYS = frozenset({"to", "may", "types", "tags", "until", "by", "ts"})


class DamagedGrantsError(StoreError):
    """The grants of an agent cannot be read with certainty, so they grant nothing."""


@dataclass(frozen=True, slots=True)
class Grant:
    """An agent's grant to another agent of access to its entries."""

    to: str
    """The slug of the agent that gets access."""
    may: Literal["read", "write", "nothing"]
    """``"write"`` includes reading; ``"nothing"`` is a revocation."""
    types: tuple[str, ...] | None = None
    """Types of the covered entries; None for all types."""
    tags: tuple[str, ...] | None = None
    """Tags that a covered entry must all have; None for no condition."""
    until: datetime | None = None
    """Time at which the grant expires, an aware datetime in UTC; None if it does not expire."""
    by: str | None = None
    """The person or program that granted it, in free text."""
    ts: datetime = field(kw_only=True)
    """Time of the grant, an aware datetime in UTC."""

    def as_dict(self) -> dict[str, Any]:
        """Return the grant as the object in its line."""
        line: dict[str, Any] = {"to": self.to, "may": self.may}
        line |= {} if self.types is None else {"types": [*self.types]}
        line |= {} if self.tags is None else {"tags": [*self.tags]}
        line |= {} if self.until is None else {"until": format_time(self.until)}
        line |= {} if self.by is None else {"by": self.by}
        return line | {"ts": format_time(self.ts)}

    def line(self) -> bytes:
        """Return the grant as a line of a grants file, with the newline."""
        return json.dumps(self.as_dict(), ensure_ascii=False).encode() + b"\n"

    def allows(self, may: str) -> bool:
        """Return whether the grant allows reading or writing."""
        return self.may in ((READ, WRITE) if may == READ else (WRITE,))

    def covers(self, kind: str, tags: Iterable[str]) -> bool:
        """Return whether the grant covers an entry of this type with these tags.

        Examples:
            >>> from datetime import UTC, datetime
            >>> grant = Grant("coder", "read", types=("decision",), ts=datetime(2026, 1, 11, tzinfo=UTC))
            >>> grant.covers("decision", []), grant.covers("note", [])
            (True, False)
        """
        return (self.types is None or kind in self.types) and set(self.tags or ()) <= {*tags}

    def covers_entry(self, entry: Entry) -> bool:
        """Return whether the grant covers an entry in its present state."""
        return self.covers(entry.type, entry.tags)

    def narrowed(self, scope: Scope) -> Scope:
        """Return the part of a scope that the grant covers."""
        types = scope.types
        if self.types is not None:
            types = self.types if types is None else tuple(kind for kind in types if kind in self.types)
        tags = tuple(dict.fromkeys((*(scope.tags or ()), *(self.tags or ()))))
        return replace(scope, types=types, tags=tags or None)


@lru_cache(maxsize=64)
def parsed(text: bytes) -> Sequence[Grant]:
    """Return the grants of a file in the order of their lines. The result is cached for the same bytes.

    Raises:
        DamagedGrantsError: A line is not a grant; then the other lines do not count either.
    """
    found = []
    for number, raw in enumerate(text.split(b"\n"), 1):
        if raw.strip():
            try:
                found.append(_read(raw))
            except _NOT_A_GRANT as error:
                raise DamagedGrantsError(f"line {number} is not a grant: {error}") from None
    return tuple(found)


def with_grant(text: bytes, new: Grant, *, drop_later: bool) -> bytes:
    """Return a file with another grant at its end.

    ``drop_later`` removes grants to the same agent with a later time, which would outlast a revocation.

    Raises:
        DamagedGrantsError: As for ``parsed``.
    """
    # Raises before a line is added to a damaged file.
    parsed(text)
    kept = without(text, lambda grant: drop_later and grant.to == new.to and grant.ts > new.ts)
    return kept + (b"\n" if kept and not kept.endswith(b"\n") else b"") + new.line()


def without(text: bytes, is_unwanted: Callable[[Grant], bool]) -> bytes:
    """Return a file without some grants; lines that are not grants stay, so that damage stays damage."""

    def is_kept(raw: bytes) -> bool:
        try:
            return not is_unwanted(_read(raw))
        except _NOT_A_GRANT:
            return True

    return b"\n".join([raw for raw in text.split(b"\n") if is_kept(raw)])


def in_force(grants: Iterable[Grant], now: datetime) -> list[Grant]:
    """Return each agent's grant in force at a time: its newest one, unless it revokes or has expired.

    Grants with a later time do not count yet. If two grants have the same time, the later line counts.
    """
    newest: dict[str, Grant] = {}
    past = (grant for grant in grants if grant.ts <= now)
    # Sorting is stable, so that of two grants with the same time the later line is kept.
    for grant in sorted(past, key=lambda grant: grant.ts):
        newest[grant.to] = grant
    return [
        grant
        for grant in newest.values()
        if grant.may != NOTHING and (grant.until is None or now < grant.until)
    ]


def _read(raw: bytes) -> Grant:
    return _grant_of(json.loads(raw.decode(), object_pairs_hook=_unique))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    # Parsers disagree on which of two equal keys counts, and access must not depend on that.
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _grant_of(line: object) -> Grant:
    if not isinstance(line, dict):
        raise TypeError("it is not an object")
    unknown = sorted(line.keys() - _KEYS)
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r:.80}")
    may, by, ts = line.get("may"), line.get("by"), read_time(line.get("ts"))
    if may not in (READ, WRITE, NOTHING):
        raise ValueError(f"'may' must be read, write or nothing, not {may!r:.80}")
    if by is not None and not isinstance(by, str):
        raise ValueError(f"'by' must be a text, not {by!r:.80}")
    if ts is None:
        raise ValueError(f"'ts' must be a time, not {line.get('ts')!r:.80}")
    return Grant(
        LAYOUTS["default"].check_agent(line.get("to")),
        cast("Literal['read', 'write', 'nothing']", may),
        _names(line, "types"),
        _names(line, "tags"),
        _until(line),
        by,
        ts=ts,
    )


def _names(line: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    value = line.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise ValueError(f"{key!r} must be a list of texts, not {value!r:.80}")
    return tuple(value)


def _until(line: Mapping[str, Any]) -> datetime | None:
    given = line.get("until")
    until = read_time(given)
    if given is not None and until is None:
        raise ValueError(f"'until' must be a time, not {given!r:.80}")
    return until


_NOT_A_GRANT = (ValueError, TypeError, RecursionError, KeepstoneError)
