"""Search of an agent's entries as they were at an earlier time.

An in-memory index of the entries of that time has the same reader as the current index, so that a recall
works the same way for both (docs/decisions/0015-one-reader-pins-one-state-of-the-index.md).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import deepcopy
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from keepstone.filesystem.fork import reset_in_child
from keepstone.index import Index
from keepstone.log.line import entry_of
from keepstone.log.log_file import Stat
from keepstone.model import Entry, Record, Scope
from keepstone.store.protocol import Store
from keepstone.store.reader import HNSW_FROM, ROWS, Ahead, IndexReader, Similar
from keepstone.vector import Vector

FindRecords = Callable[[Sequence[str] | None], Mapping[str, Sequence[Record]]]
"""Returns the records that some sessions, or all of them (None), had at that time, by session."""
FindVectors = Callable[[str, Mapping[str, Sequence[Entry]]], Mapping[str, Mapping[str, Vector]]]
"""Returns the current vectors in a space of the entries whose text is unchanged, by session and id."""


class PastReader(IndexReader):
    """A ``Reader`` of an agent's sessions as they were at a time; its index is in memory.

    A session is read when a scope first includes it.
    """

    def __init__(self, agent: str, records: FindRecords, vectors: FindVectors, language: str) -> None:
        self._agent = agent
        self._records = records
        self._vectors = vectors
        self._by_session: dict[str, dict[str, Record]] = {}
        """The entries of each session that was read, by (time, place)."""
        self._indexed: set[str] = set()
        self._filled: set[tuple[str, str]] = set()
        self._is_whole = False
        """Whether all sessions were read."""
        self._index = Index(None, language)
        self._epoch = self._index.epoch

    def _pinned_index(self) -> AbstractContextManager[Index]:
        return nullcontext(self._index)

    def records(self, session: str) -> Sequence[Record]:
        """Return the entries of a session by (time, place); the caller must not change these objects."""
        self._read([session])
        return list(self._by_session.get(session, {}).values())

    def renew(self, new: Sequence[str]) -> None:
        """Update the reader for its next use with ``new`` sessions, and with vectors made later."""
        if self._is_whole and new:
            self._take(self._records(new))
        for session, space in self._filled:
            rows = self._index.rows(self._index.pending(space, Scope(self._agent, (session,))))
            self._give(space, {session: [row.id for row in rows.values()]} if rows else {})

    def _read(self, sessions: Sequence[str] | None) -> None:
        missing = None if sessions is None else [name for name in sessions if name not in self._by_session]
        if missing == [] or self._is_whole:
            return
        self._is_whole = missing is None
        self._take(self._records(missing))

    def _take(self, found: Mapping[str, Sequence[Record]]) -> None:
        for session, records in found.items():
            if session not in self._by_session:
                self._by_session[session] = {record["id"]: record for record in records}

    def _reach(self, sessions: Sequence[str] | None) -> None:
        self._read(sessions)
        for session in self._by_session.keys() - self._indexed:
            self._indexed.add(session)
            records = list(self._by_session[session].values())
            if records:
                # These two states are made up, as there is no file: the index only checks that the first is
                # its own state, here an empty log.
                self._index.added(session, session, Stat(0, 0, 0), Stat(len(records), 0, 0), records, b"")

    def similar(
        self,
        vector: Vector,
        space: str,
        scope: Scope,
        limit: int,
        hnsw_from: int = HNSW_FROM,
        *,
        ahead: Ahead | None = None,
    ) -> Similar:
        self._fill(space, scope.sessions)
        return super().similar(vector, space, scope, limit, hnsw_from, ahead=ahead)

    def cosines(self, vector: Vector, space: str, keys: Sequence[int]) -> dict[int, float]:
        self._fill(space, ())
        return super().cosines(vector, space, keys)

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        self._fill(space, scope.sessions)
        return super().pending(space, scope, limit, cursor, newest_first=newest_first, keys=keys)

    def pending_count(self, space: str, scope: Scope) -> int:
        self._fill(space, scope.sessions)
        return super().pending_count(space, scope)

    def _fill(self, space: str, sessions: Sequence[str] | None) -> None:
        """Add the current vectors of unchanged texts to all entries that were read."""
        self._reach(sessions)
        new = [session for session in self._by_session if (session, space) not in self._filled]
        self._give(space, {session: list(self._by_session[session]) for session in new})
        self._filled |= {(session, space) for session in new}

    def _give(self, space: str, ids: Mapping[str, Sequence[str]]) -> None:
        """Add the current vectors of unchanged texts to these entries."""
        wanted = {
            session: [self._entry(session, entry_id) for entry_id in listed]
            for session, listed in ids.items()
        }
        for session, found in (self._vectors(space, wanted) if wanted else {}).items():
            made = [(self._entry(session, entry_id), vector) for entry_id, vector in found.items()]
            self._index.keep(space, made)

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        rows, first = self._index.rows(self._rows(keys)), self._epoch * ROWS
        return {first + number: self._entry(row.session, row.id) for number, row in rows.items()}

    def _entry(self, session: str, entry_id: str) -> Entry:
        # A copy, as a caller may change it.
        return entry_of(self._agent, session, deepcopy(self._by_session[session][entry_id]))


class States(Protocol):
    """The states of the sessions that a kept reader has read."""

    @property
    def size(self) -> int:
        """Number of bytes that were read."""

    def unread(self) -> Sequence[str]:
        """Return the sessions that were not read."""


S = TypeVar("S", bound=States)

MOST_KEPT, MOST_BYTES = 4, 8 << 20
"""Maximum number of kept readers, and of bytes in their lines: a tenth of the memory that they use."""


class KeptReaders(Generic[S]):
    """Cache of the last used readers of the past, for the next question about the same moment.

    A reader belongs to one thread at a time: another thread with the same moment makes its own reader.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Drop all readers: in a forked child the indexes of the parent are closed."""
        self._guard = threading.Lock()
        self._kept: OrderedDict[tuple[str, datetime], tuple[PastReader, S]] = OrderedDict()
        self._forgotten = 0

    @contextmanager
    def using(
        self,
        agent: str,
        moment: datetime,
        make: Callable[[], tuple[PastReader, S]],
        are_current: Callable[[S], bool],
    ) -> Iterator[PastReader]:
        """Lease a reader of an agent at a moment inside a ``with``: the cached one if it is current."""
        with self._guard:
            kept, before = self._kept.pop((agent, moment), None), self._forgotten
        if kept is not None and are_current(kept[1]):
            reader, states = kept
            reader.renew(states.unread())
        else:
            reader, states = make()
        yield reader
        with self._guard:
            # Do not keep the reader after an erasure during the lease: it may still hold erased entries.
            if self._forgotten == before:
                self._kept[agent, moment] = reader, states
            while (
                len(self._kept) > MOST_KEPT
                or sum(states.size for _, states in self._kept.values()) > MOST_BYTES
            ):
                self._kept.popitem(last=False)

    def forget(self, agent: str) -> None:
        """Drop the readers of an agent after an erasure; readers in use are not kept either."""
        with self._guard:
            self._forgotten += 1
            for key in [key for key in self._kept if key[0] == agent]:
                del self._kept[key]


_FEW = 100
"""Maximum number of entries that are read one by one."""


def vectors_today(
    store: Store, agent: str, space: str, sessions: Mapping[str, Sequence[Entry]]
) -> dict[str, dict[str, Vector]]:
    """Return the current vectors of past entries whose text is unchanged, by session and id."""
    found = {}
    for session, entries in sessions.items():
        made = store.vectors(agent, session, space, [entry.id for entry in entries])
        texts = _texts(store, agent, session, list(made))
        same = {entry.id for entry in entries if texts.get(entry.id) == entry.text}
        found[session] = {entry_id: vector for entry_id, vector in made.items() if entry_id in same}
    return found


def _texts(store: Store, agent: str, session: str, ids: Sequence[str]) -> dict[str, str]:
    """Return the current texts of entries, possibly with those of other entries."""
    if len(ids) <= _FEW:
        today = [entry for entry_id in ids for entry in store.find(agent, entry_id, session)]
    else:
        today = store.entries(agent, session, None, None)
    return {entry.id: entry.text for entry in today}
