"""Helpers of the checks: records to store, calls to read them back, and two assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

from keepstone.errors import StoreError
from keepstone.log.line import format_time
from keepstone.model import Entry, Record, Scope
from keepstone.store.protocol import Store
from keepstone.store.reader import Reader
from keepstone.testing.clock import START

Factory = Callable[[], AbstractContextManager[Store]]
"""A function that opens an empty store."""
Check = Callable[[Factory], None]
"""A function that raises ``AssertionError`` if a store breaks one part of the contract."""

AGENT = "default"
OTHER = "other"


def time_at(minute: int) -> str:
    """Return the time N minutes after ``START``, in the format of a log."""
    return format_time(START + timedelta(minutes=minute))


def record(
    entry_id: str,
    content: str,
    *,
    minute: int = 0,
    kind: str = "note",
    data: Record | None = None,
    **keys: Any,
) -> Record:
    """Return a record that a store can append."""
    head = {"id": entry_id, "ts": time_at(minute), "type": kind}
    return head | {"data": {"content": content} if data is None else data} | keys


def amend(store: Store, session: str, record: Record) -> Entry:
    """Write a record as a put or patch of the live entry with its id."""
    return store.modify(AGENT, session, record["id"], lambda _: record)


def tombstone(entry_id: str) -> Record:
    """Return the patch that deletes an entry."""
    return {"id": entry_id, "deleted": True, "ts": time_at(8)}


def ids_of(entries: Iterable[Entry]) -> list[str]:
    """Return the ids of entries, in their order."""
    return [entry.id for entry in entries]


def search(
    store: Store, terms: Sequence[str], agent: str = AGENT, limit: int = 50, **scope: Any
) -> list[str]:
    """Return the ids of the entries that a search finds, the best first."""
    with store.reader(agent) as reader:
        return load(reader, [found.key for found in reader.search(terms, Scope(agent, **scope), limit)])


def load(reader: Reader, keys: Sequence[int]) -> list[str]:
    """Return the ids of the entries with these keys, without removed entries."""
    loaded = reader.load(keys)
    return [loaded[key].id for key in keys if key in loaded]


def rebuild(store: Store, progress: Callable[[int, int], None] | None = None) -> bool:
    """Rebuild a store's index from its sessions; return whether the store supports it."""
    if is_unsupported("rebuild", lambda: store.maintenance.rebuild(None)):
        return False
    same(store.maintenance.rebuild(progress), len(store.sessions(AGENT)), "every session was read")
    return True


def is_unsupported(operation: str, act: Callable[[], object]) -> bool:
    """Run an optional operation; return whether the store lacks it, and check that the error names it."""
    try:
        act()
    # A missing operation raises StoreError with its name; a failed operation raises it without.
    except StoreError as error:
        same([f"no {operation}" in str(error)], [True], f"the error names {operation}")
        return True
    return False


def same(found: object, expected: object, what: str) -> None:
    """Raise ``AssertionError`` with both values unless they are equal."""
    if found != expected:
        raise AssertionError(f"{what}: expected {expected!r}, found {found!r}")


def raises(error: type[Exception], act: Callable[[], object]) -> None:
    """Raise ``AssertionError`` unless the call raises this error."""
    try:
        result = act()
    except error:
        return
    raise AssertionError(f"expected {error.__name__}, found {result!r}")
