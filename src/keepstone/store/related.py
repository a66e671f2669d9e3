"""The walk along links from one entry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice

from keepstone.log.line import links_of
from keepstone.model import Entry
from keepstone.store.protocol import Store

MOST_RELATED = 1_000
"""Maximum number of related entries; the walk raises if there are more."""


def related(store: Store, first: Entry, rel: str | None, depth: int) -> list[Entry]:
    """Return the entries linked with ``first``, in either direction, nearest first; see ``Agent.related``."""
    found = {first.id: first}
    edge = [first]
    while edge and depth:
        near = {entry.id: entry for entry in _linked(store, edge, rel, found)}
        found |= near
        edge = list(near.values())
        depth -= 1
        if len(found) > MOST_RELATED + 1:
            raise ValueError(
                f"more than {MOST_RELATED:,} entries are related to {first.id!r:.80}; "
                "use a smaller depth, or name a relation with rel"
            )
    return [entry for key, entry in found.items() if key != first.id]


def _linked(store: Store, edge: Sequence[Entry], rel: str | None, known: Collection[str]) -> Iterator[Entry]:
    """Yield unknown entries that are linked with any entry of ``edge``, in either direction."""
    agent = edge[0].agent
    targets = dict.fromkeys(
        link["to"]
        for entry in edge
        for link in links_of(entry.line)
        if rel in (None, link.get("rel")) and link["to"] not in known
    )
    for target in islice(targets, MOST_RELATED + 1):
        yield from store.find(agent, target, None)
    ids = [entry.id for entry in edge]
    # Known entries may come first in the store's result, so ask for that many more.
    inward = store.linked(agent, ids, rel, MOST_RELATED + 1 + len(known))
    yield from (entry for entry in inward if entry.id not in known)
