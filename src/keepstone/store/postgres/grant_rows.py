"""Grants as rows, and the settings by which row-level security enforces them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.sharing.grants import Grant

_ALL = 'SELECT "to", may, types, tags, until, by, ts FROM grants WHERE agent = %s ORDER BY place'
_FORGET_LATER = 'DELETE FROM grants WHERE agent = %s AND "to" = %s AND ts > %s'
_COLUMNS = 'agent, "to", may, types, tags, until, by, ts'
_ADD = f"INSERT INTO grants ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
FORGET_RECEIVED = 'DELETE FROM grants WHERE "to" = %s'
"""Removes the grants that an agent received from other agents."""
POLICIES = (
    "entries granted_reading",
    "entries granted_adding",
    "entries granted_changing",
    "lines granted_reading",
)
"""The row-level security policies that read the grants, each preceded by the name of its table."""


def grants(connections: Connections, agent: str) -> list[Grant]:
    """Return an agent's grants in the order of writing."""
    return [_grant_of(row) for row in connections.read(agent, _ALL, (agent,))]


def add(connections: Connections, agent: str, grant: Grant, *, drop_later: bool) -> None:
    """Add a grant; with ``drop_later``, remove later grants to the same agent first."""
    types, tags = _stored(grant.types), _stored(grant.tags)
    by = None if grant.by is None else stored(grant.by)
    connections.read_all(
        agent,
        [
            ("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (agent,)),
            *([(_FORGET_LATER, (agent, grant.to, grant.ts))] if drop_later else []),
            (_ADD, (agent, grant.to, grant.may, types, tags, grant.until, by, grant.ts)),
        ],
    )


def _grant_of(row: Sequence[Any]) -> Grant:
    to, may, types, tags, until, by, ts = row
    by = None if by is None else shown(by)
    return Grant(to, may, _shown(types), _shown(tags), _utc(until), by, ts=ts.astimezone(UTC))


def _stored(names: Sequence[str] | None) -> list[str] | None:
    return None if names is None else [*map(stored, names)]


def _shown(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(map(shown, names))


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.astimezone(UTC)
