"""An agent's entries as they were at an earlier time, to be searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext

from keepstone.index import Index
from keepstone.log.fold import Folded
from keepstone.log.line import entry_of
from keepstone.log.log_file import Stat
from keepstone.model import Entry, Record, Scope
from keepstone.store.protocol import Store
from keepstone.store.reader import HNSW_FROM, ROWS, Ahead, IndexReader, Similar
from keepstone.vector import Vector

FindRecords = Callable[[Sequence[str] | None], Mapping[str, Sequence[Record]]]
"""Gives the records that some sessions held at that time, or all of them (None), by session."""
FindVectors = Callable[[str, Mapping[str, Sequence[Entry]]], Mapping[str, Mapping[str, Vector]]]
"""Gives the vectors that sessions' entries have today in a space, by session and id, if their texts are the
same."""


class PastReader(IndexReader):
    """A ``Reader`` of what an agent's sessions held at a time; its index is in memory.

    A session is read when the first scope that has it is asked about.
    """

    def __init__(self, agent: str, records: FindRecords, vectors: FindVectors, language: str) -> None:
        self._agent = agent
        self._records = records
        self._vectors = vectors
        self._entries: dict[str, dict[str, Entry]] = {}
        self._filled: set[tuple[str, str]] = set()
        self._is_whole = False
        """Whether all sessions were read."""
        self._index = Index(None, language)
        self._epoch = self._index.epoch

    def _asking(self) -> AbstractContextManager[Index]:
        return nullcontext(self._index)

    def _reach(self, sessions: Sequence[str] | None) -> None:
        missing = None if sessions is None else [name for name in sessions if name not in self._entries]
        if missing == [] or self._is_whole:
            return
        self._is_whole = missing is None
        for session, records in self._records(missing).items():
            if session in self._entries:
                continue
            self._entries[session] = {
                record["id"]: entry_of(self._agent, session, record) for record in records
            }
            lines = [Folded(record, place, place, 0, pristine=True) for place, record in enumerate(records)]
            if lines:
                self._index.added(session, session, Stat(0, 0, 0), Stat(len(lines), 0, 0), lines, b"")

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
        """Give the entries that were read the vectors that the same texts have today."""
        self._reach(sessions)
        new = {
            session: list(entries.values())
            for session, entries in self._entries.items()
            if (session, space) not in self._filled
        }
        for session, found in (self._vectors(space, new) if new else {}).items():
            entries = self._entries[session]
            self._index.keep(space, [(entries[entry_id], made) for entry_id, made in found.items()])
        self._filled |= {(session, space) for session in new}

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        rows, first = self._index.rows(self._rows(keys)), self._epoch * ROWS
        return {first + number: self._entries[row.session][row.id] for number, row in rows.items()}


def vectors_today(
    store: Store, agent: str, space: str, sessions: Mapping[str, Sequence[Entry]]
) -> dict[str, dict[str, Vector]]:
    """Return the vectors of entries that have the same text today, by session and id."""
    found = {}
    for session, entries in sessions.items():
        today = {entry.id: entry.text for entry in store.entries(agent, session, None, None)}
        ids = [entry.id for entry in entries if today.get(entry.id) == entry.text]
        found[session] = store.vectors(agent, session, space, ids)
    return found
