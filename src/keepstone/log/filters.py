"""The filters of lists and recalls, checked and brought into a scope."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

from keepstone.log.arguments import names_of
from keepstone.log.line import instant
from keepstone.log.where import conditions_of
from keepstone.model import Scope


class Filters(TypedDict, total=False):
    """Which entries a list is of: those that pass all filters that are given."""

    types: Iterable[str] | None
    """Entries of these types."""
    tags: Iterable[str] | None
    """Entries that carry all of these tags."""
    where: Mapping[str, Any] | None
    """Entries with these values, as for ``Agent.recall``."""
    since: datetime | str | None
    """Entries made at this time or later: an aware datetime, RFC 3339, or a date."""
    until: datetime | str | None
    """Entries made before this time."""
    ids: Iterable[str] | None
    """Entries with these ids."""
    valid_only: bool
    """Entries that hold now: from ``valid_from`` on, before ``valid_to`` and ``expires``."""


def scope_of(
    agent: str,
    now: datetime | None = None,
    *,
    sessions: Iterable[str] | None = None,
    types: Iterable[str] | None = None,
    tags: Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    ids: Iterable[str] | None = None,
    valid_only: bool = False,
) -> Scope:
    """Return the scope that filters describe; TypeError or ValueError for what is no filter."""
    return Scope(
        agent,
        names_of(sessions, "sessions"),
        names_of(types, "types"),
        names_of(tags, "tags") or None,
        () if where is None else conditions_of(where),
        None if since is None else instant(since, "since"),
        None if until is None else instant(until, "until"),
        names_of(ids, "ids"),
        now if valid_only else None,
    )
