"""Lists of an agent's own entries together with entries that other agents share with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from heapq import merge
from itertools import islice

from keepstone.model import Entry, Scope
from keepstone.store.paging import Page, decode, encode, pages
from keepstone.store.protocol import Store
from keepstone.store.sharing.granted_store import Reach, granted

_KIND = "shared"
_STREAMED = 1_000
"""Number of entries that an iterator fetches from each store at a time."""


class SharedLists:
    """The entries that a scope selects from one agent and from others that share theirs.

    Every call checks the grants; an iterator checks them again for each entry that it returns.
    """

    def __init__(self, store: Store, scope: Scope, reaches: Sequence[Reach]) -> None:
        self._reaches = {reach.of: reach for reach in reaches}
        self._parts = [(store, scope)]
        self._parts += [(granted(reach), replace(scope, agent=reach.of)) for reach in reaches]

    def select(self, limit: int, cursor: str | None, *, newest_first: bool) -> Page[Entry]:
        """Return a page of all entries in order of time, then of agents; see ``Store.select``.

        Raises:
            ValueError: The cursor belongs to another list.
            NotGrantedError: An agent shares nothing.
        """
        places = self._places(cursor)
        found = [
            Page[Entry]() if at is None else store.select(scope, limit, at or None, newest_first=newest_first)
            for (store, scope), at in zip(self._parts, places, strict=True)
        ]
        taken = [*islice(_by_time(found, newest_first=newest_first), limit)]
        counts = Counter(entry.agent for entry in taken)
        following: list[str | None] = []
        for (store, scope), page, at in zip(self._parts, found, places, strict=True):
            count = counts[scope.agent]
            if 0 < count < len(page):  # Only the part itself can make a cursor after its last entry.
                page = store.select(scope, count, at or None, newest_first=newest_first)  # noqa: PLW2901
            following.append(page.next if count == len(page) else at)
        is_last = not limit or all(at is None for at in following)
        return Page(taken, None if is_last else encode(_KIND, self._agents(), following))

    def count(self) -> int:
        """Return the total number of entries."""
        return sum(store.select_count(scope) for store, scope in self._parts)

    def entries(self, *, newest_first: bool) -> Iterator[Entry]:
        """Yield all entries in order of time."""
        streams = [
            pages(partial(_page, store, scope, newest_first=newest_first)) for store, scope in self._parts
        ]
        for entry in _by_time(streams, newest_first=newest_first):
            reach = self._reaches.get(entry.agent)
            if reach is None or reach.check().covers_entry(entry):
                yield entry

    def _agents(self) -> list[str]:
        return [scope.agent for _, scope in self._parts]

    def _places(self, cursor: str | None) -> list[str | None]:
        """Return each part's cursor; "" is its beginning, and None means that it has no more entries."""
        if cursor is None:
            return [""] * len(self._parts)
        kind, agents, places = decode(cursor, str, list, list)
        are_places = all(place is None or isinstance(place, str) for place in places)
        if kind != _KIND or agents != self._agents() or len(places) != len(agents) or not are_places:
            raise ValueError(f"{cursor!r:.80} is a cursor of other agents' entries: give the same shared=")
        return [*places]


def _page(store: Store, scope: Scope, cursor: str | None, *, newest_first: bool) -> Page[Entry]:
    return store.select(scope, _STREAMED, cursor, newest_first=newest_first)


def _by_time(parts: Sequence[Iterator[Entry] | Page[Entry]], *, newest_first: bool) -> Iterator[Entry]:
    def moment(entry: Entry) -> datetime:
        return entry.ts

    return merge(*parts, key=moment, reverse=newest_first)
