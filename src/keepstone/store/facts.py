"""Facts by key: entries of type ``fact`` whose payload has a ``key`` and a ``value``.

The valid entry with a key has the current value. Setting another value supersedes that entry, so that the
history keeps all values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from keepstone.log.line import format_time
from keepstone.log.where import conditions_of, same
from keepstone.model import SUPERSEDES, Comparison, Entry, Record
from keepstone.store.protocol import LiveSession, Revision
from keepstone.store.supersede import superseding
from keepstone.store.validity import is_valid

FACT = "fact"
"""The type of a fact."""
DEFAULT_SESSION = "facts"


def with_key(key: str) -> Sequence[Comparison]:
    """Return the conditions on the payload of a fact with a key."""
    return conditions_of({"key": key, "value": {"exists": True}})


def is_fact(entry: Entry) -> bool:
    """Return whether an entry is a fact with a key."""
    return entry.type == FACT and isinstance(entry.data.get("key"), str) and "value" in entry.data


def setting(record: Record, clock: Callable[[], datetime], kept: Callable[[Entry], object]) -> Revision:
    """Return the revision that sets a fact to the value of a record.

    If the valid fact has this value already, nothing changes, and ``kept`` is called with that fact. The
    record gets the time of the revision, so that the times of concurrent writers follow the order of their
    writes.
    """
    key, value = record["data"]["key"], record["data"]["value"]

    def revise(session: LiveSession) -> Sequence[Record]:
        now = clock()
        new = record | {"ts": format_time(now)}
        found = [entry for entry in session.select(FACT, with_key(key)) if is_valid(entry.line, now)]
        # A replaced entry is still valid for now if the clock of another process is ahead.
        replaced = {target for _, target in session.links(SUPERSEDES)} if found else ()
        found = [entry for entry in found if entry.id not in replaced]
        old = max(found, key=lambda entry: entry.ts, default=None)
        if old is None:
            return [new]
        if same(old.data["value"], value):
            kept(old)
            return []
        return superseding(old.id, new, new["ts"], has_type=True)(session)

    return revise
