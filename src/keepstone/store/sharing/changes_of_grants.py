"""Granting and revoking of access, and copies of entries for another agent."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from keepstone.errors import StoreError
from keepstone.log.arguments import name_of, names_of
from keepstone.log.time_words import moment_of
from keepstone.model import Entry, Record
from keepstone.store.protocol import Store
from keepstone.store.sharing.grants import READ, WRITE, DamagedGrantsError, Grant, in_force

logger = logging.getLogger("keepstone.sharing")

_NAMESPACE = uuid.UUID("6b7e1d5c-64f2-5f0e-9c3b-2f1f5b0d7a11")
"""The namespace of the ids of copies, which are computed from the ids of the originals."""
_NOT_COPIED = frozenset({"access", "modified", "batch", "deleted", "links"})


def add_grant(
    store: Store,
    agent: str,
    now: datetime,
    to: str,
    may: Literal["read", "write"],
    types: Iterable[str] | None,
    tags: Iterable[str] | None,
    until: datetime | str | None,
    by: str | None,
) -> Grant:
    """Write a grant and return it; see ``Agent.grant``."""
    if may not in (READ, WRITE):
        raise ValueError(f"may must be 'read' or 'write', not {may!r:.80}; take access away with revoke")
    if store.check_agent(to) == agent:
        raise ValueError(f"agent {agent!r} cannot grant itself access, which it has")
    grant = Grant(
        to,
        may,
        names_of(types, "types"),
        names_of(tags, "tags"),
        None if until is None else moment_of(until, now, "until", "future").astimezone(UTC),
        None if by is None else name_of(by, "by"),
        ts=now,
    )
    _write(store, agent, grant)
    return grant


def revoke(store: Store, agent: str, now: datetime, to: str) -> bool:
    """Write a revocation of an agent's grants, if it has any; return whether one was in force."""
    store.check_agent(to)
    with naming_damage(agent):
        lines = store.grants(agent)
    was_granted = any(grant.to == to for grant in in_force(lines, now))
    if was_granted or any(grant.to == to and grant.ts > now for grant in lines):
        _write(store, agent, Grant(to, "nothing", ts=now))
    return was_granted


def grants_now(store: Store, agent: str, now: datetime) -> list[Grant]:
    """Return the grants of an agent that are in force; none, with a warning, if they are damaged."""
    try:
        return in_force(store.grants(agent), now)
    except DamagedGrantsError as error:
        logger.warning("the grants of agent %s are damaged and grant nothing: %s", agent, error)
        return []


def copy_of(entry: Entry) -> Record:
    """Return the record of a copy for another agent: the entry's content, and a link to it.

    The copy's id is computed from the entry's, so that an entry is not copied twice.
    """
    kept = {key: value for key, value in entry.line.items() if key not in _NOT_COPIED}
    link = {"rel": "copy_of", "to": entry.id, "session": entry.session, "agent": entry.agent}
    return kept | {"id": str(uuid.uuid5(_NAMESPACE, json.dumps(entry.key))), "links": [link]}


def _write(store: Store, agent: str, grant: Grant) -> None:
    with naming_damage(agent):
        store.add_grant(agent, grant)


@contextmanager
def naming_damage(agent: str) -> Iterator[None]:
    """Raise an error that names the agent and the remedy if the agent's grants are damaged."""
    try:
        yield
    except DamagedGrantsError as error:
        raise StoreError(
            f"the grants of agent {agent!r} are damaged, so they grant nothing, and none was written: "
            f"{error}; correct the line that keepstone doctor names"
        ) from error
