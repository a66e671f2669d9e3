"""An agent's entries as they were at an earlier time, to be searched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from keepstone.index import Index
from keepstone.log.fold import Folded
from keepstone.log.log_file import Stat
from keepstone.model import Entry, Record, Scope
from keepstone.store.agent_logs import entry_of
from keepstone.store.protocol import HNSW_FROM, Candidate, Similar
from keepstone.vector import Vector

FindVectors = Callable[[str, str, Sequence[Entry]], Mapping[str, Vector]]
"""Gives the vectors that a session's entries have today in a space, by id, if their texts are the same."""


class Past:
    """A ``Searchable`` of the records that some sessions of an agent held; its index is in memory."""

    def __init__(self, agent: str, sessions: Mapping[str, Sequence[Record]], vectors: FindVectors) -> None:
        self._vectors = vectors
        self._filled: set[str] = set()
        self._entries = {
            session: {record["id"]: entry_of(agent, session, record) for record in records}
            for session, records in sessions.items()
        }
        self._index = Index(None)
        for session, records in sessions.items():
            lines = [Folded(record, place, place, 0, pristine=True) for place, record in enumerate(records)]
            if lines:
                self._index.added(session, session, Stat(0, 0, 0), Stat(len(lines), 0, 0), lines, b"")

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> list[Candidate]:
        """Return entries in scope that hold any of the words, best first."""
        return [Candidate(*row) for row in self._index.ranked(terms, scope, limit)] if terms else []

    def similar(
        self,
        vector: Vector,
        space: str,
        scope: Scope,
        limit: int,
        hnsw_from: int = HNSW_FROM,  # noqa: ARG002
    ) -> Similar:
        """Return the entries in scope whose vectors of a space are nearest, best first."""
        if space not in self._filled:
            self._filled.add(space)
            for session, entries in self._entries.items():
                found = self._vectors(session, space, list(entries.values()))
                self._index.keep(space, [(entries[entry_id], vector) for entry_id, vector in found.items()])
        return Similar(Candidate(*row) for row in self._index.nearest(vector, space, scope, limit))

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return keys with the other entries in scope at most ``reach`` places from them."""
        return self._index.neighbours(keys, reach, scope) if keys else []

    def cosines(self, vector: Vector, space: str, agent: str, keys: Sequence[int]) -> dict[int, float]:  # noqa: ARG002
        """Return how near the vectors of entries are to one; those without a vector are left out."""
        return self._index.cosines(vector, space, keys)

    def heads(self, agent: str, keys: Sequence[int]) -> dict[int, tuple[str, datetime]]:  # noqa: ARG002
        """Return how the texts of entries begin, and when they were made."""
        return self._index.heads(keys)

    def load(self, agent: str, keys: Sequence[int]) -> dict[int, Entry]:  # noqa: ARG002  The protocol's.
        """Return the entries that candidates name."""
        rows = self._index.rows(keys)
        return {key: self._entries[row.session][row.id] for key, row in rows.items()}
