"""All pairs of entries that repeat or contradict one another, for a review and for the doctor."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime

from keepstone.log.arguments import Clock
from keepstone.log.line import instant
from keepstone.model import CHAT, Conflict, ConflictingPair, Entry, Finding, Scope
from keepstone.recall.conflicts import conflicts_of
from keepstone.store.protocol import Store
from keepstone.store.validity import is_valid

_PAGE = 200
"""Number of entries read at a time."""
_EXAMINED = 500
"""Number of an agent's newest entries, chat aside, that ``findings`` examines."""
_SHOWN = 5
"""Maximum number of pairs that a finding names."""


def pairs(
    store: Store,
    agent: str,
    clock: Clock,
    since: datetime | None = None,
    kinds: Collection[str] | None = None,
) -> Iterator[ConflictingPair]:
    """Yield each pair of an agent's currently valid entries that are in conflict, once.

    Conflicts of chat entries are not searched for. With ``since``, at least one entry of each pair
    was made at that time or later.
    """
    now, seen = instant(clock(), "the clock's time"), set[frozenset[tuple[str, str]]]()
    scope, cursor = Scope(agent, since=since, valid_at=now), None
    while True:
        page = store.select(scope, _PAGE, cursor, newest_first=True)
        for entry in page:
            for conflict in () if entry.type in CHAT else conflicts_of(store, entry, clock):
                # An unordered pair, as each of the two entries finds the other.
                key = frozenset(((entry.session, entry.id), (conflict.session, conflict.id)))
                if key not in seen and (kinds is None or conflict.kind in kinds):
                    seen.add(key)
                    other = _other(store, agent, conflict)
                    if other is not None:
                        yield ConflictingPair(entry, other, conflict.kind)
        cursor = page.next
        if cursor is None:
            return


def _other(store: Store, agent: str, conflict: Conflict) -> Entry | None:
    found = store.select(
        Scope(agent, sessions=(conflict.session,), ids=(conflict.id,)), 1, None, newest_first=False
    )
    return next(iter(found), None)


def findings(store: Store, clock: Clock) -> Iterator[Finding]:
    """Yield the contradictions and duplicates of each agent's newest entries, except chat."""
    now = instant(clock(), "the clock's time")
    for agent in store.agents():
        pairs: dict[str, set[tuple[str, str]]] = {"contradiction": set(), "duplicate": set()}
        for entry in _newest(store, agent):
            for conflict in conflicts_of(store, entry, clock) if is_valid(entry.line, now) else ():
                first, second = sorted((f"{entry.session}/{entry.id}", f"{conflict.session}/{conflict.id}"))
                pairs[conflict.kind].add((first, second))
        if found := pairs["contradiction"]:
            yield Finding(
                "warning",
                agent,
                f"{len(found)} pair(s) of entries that contradict one another: {_named(found)}",
                "keepstone supersede OLD_ID TEXT, or delete the one that is wrong",
                "recall returns both",
                agent,
            )
        if found := pairs["duplicate"]:
            yield Finding(
                "ok",
                agent,
                f"{len(found)} pair(s) of entries that say the same: {_named(found)}",
                "keepstone delete ID",
                "recall returns both",
                agent,
            )


def _newest(store: Store, agent: str) -> Iterator[Entry]:
    left = _EXAMINED
    for info in store.sessions(agent):
        for entry in reversed(store.entries(agent, info.id, left, None)):
            if entry.type not in CHAT:
                left -= 1
                yield entry
        if left <= 0:
            return


def _named(pairs: set[tuple[str, str]]) -> str:
    shown = [f"{first} and {second}" for first, second in sorted(pairs)[:_SHOWN]]
    return "; ".join(shown) + ("; …" if len(pairs) > _SHOWN else "")
