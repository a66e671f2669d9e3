"""Memories: texts with vectors given by callers, found by similarity in a session (requirement 4)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from keepstone.agent import Agent
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.home import Home
from keepstone.home import open as open_home
from keepstone.log.arguments import count_of
from keepstone.log.where import conditions_of
from keepstone.model import Entry, Record, Scope
from keepstone.store.reader import HNSW_FROM
from keepstone.vector import Vector

TYPE = "memory"
"""The type of the entries that hold memories."""

Target = str | os.PathLike[str] | Home | None
"""A home: what ``keepstone.open`` takes, or an open home."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One text of a session, as the memory service returns it."""

    id: str
    session_id: str
    text: str
    summary_text: str | None
    timestamp: datetime
    """The time when the memory was made: an aware datetime in UTC."""
    embedding: Vector | None = field(compare=False, repr=False)
    """The vector: float32 of shape ``(dim,)`` and unit length; None if it was neither given nor made yet."""
    score: float | None = None
    """The cosine with the vector of the query, from -1 to 1; None outside a query."""
    metadata: Record = field(default_factory=dict, hash=False)
    """The metadata given with the memory, for filters."""


class Memories(list[Memory]):
    """The memories most similar to a vector, best first.

    Attributes:
        searched: The kind of search: ``"exact"`` if every vector of the session was compared, or ``"hnsw"``
            if an HNSW graph selected the vectors to compare.
    """

    def __init__(self, memories: Iterable[Memory] = (), *, searched: str = "exact") -> None:
        super().__init__(memories)
        self.searched = searched


class MemoryRepository:
    """Memories with vectors that callers give.

    Each memory is an entry of its session's log. Each live entry of a session is a memory, whichever
    interface wrote it. Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.

    Examples:
        >>> repository = MemoryRepository(".work-agent")
        >>> memory = repository.create_memory("s1", "Use pnpm", [0.1, 0.9])
        >>> repository.query_similar_by_embedding([0.2, 0.8], "s1")[0].text
        'Use pnpm'
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home. Nothing is written before the first memory."""
        self._agent = agent_of(home, agent)
        self._vectors = self._agent.vectors()
        self._hnsw_from = HNSW_FROM

    def create_memory(
        self,
        session_id: str,
        text: str,
        embedding: Any,
        summary_text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store a text with its vector durably, and return the memory.

        Args:
            session_id: Any non-empty string; a missing session is created.
            text: The text to store.
            embedding: The text's vector, a sequence or array of numbers; stored with unit length. An agent's
                first vector sets the dimension of all its vectors.
            summary_text: A shorter wording to store with the text.
            metadata: A JSON object to store with the text; ``where`` filters by its values.

        Raises:
            TypeError: An argument has the wrong type. Nothing was written, as for all these errors.
            EmbeddingDimMismatchError: The vector has another dimension than the agent's vectors.
            InvalidEmbeddingError: The vector is empty, or contains NaN, infinity or only zeros.
            ValueError: The text cannot be stored.
            LockTimeoutError: Another process held the session's lock for five seconds.
            StoreError: The disk is full or failed.
        """
        session, item = self._agent.session(session_id), item_of(text, summary_text, metadata)
        entry = session.add(TYPE, embedding=self._vectors.given(embedding), **item)
        return memory_of(entry, entry.embedding)

    def query_similar_by_embedding(
        self, embedding: Any, session_id: str, limit: int = 5, where: Mapping[str, Any] | None = None
    ) -> Memories:
        """Return the memories of a session whose vectors are most similar to a vector, best first.

        Memories that are superseded, expired or not yet valid are left out.

        Args:
            embedding: The vector to compare with, of any length.
            session_id: The session; a missing session has no memories.
            limit: Maximum number of memories to return.
            where: Only memories whose metadata has these values, in the format of ``Agent.recall``:
                ``{"user.city": "Zürich", "score": {"gte": 3}}``.

        Raises:
            TypeError: An argument has the wrong type.
            EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``create_memory``.
            ValueError: The limit is negative, or ``where`` has an unknown operator.
            StoreError: The index cannot be used now.
        """
        vector = self._vectors.check(embedding)
        session, most = self._agent.session(session_id), count_of(limit, "limit")
        conditions = conditions_of(where)
        scope = Scope(self._agent.slug, (session.id,))
        count = most
        # Filters apply after the vector search, which is repeated with a larger limit until enough memories
        # pass.
        while True:
            similar = self._vectors.similar(vector, scope, count, hnsw_from=self._hnsw_from)
            # If the index is repaired during the search, the result may hold entries of other sessions.
            in_session = ((entry, score) for entry, score in similar if entry.session == session.id)
            found = [
                (entry, score)
                for entry, score in in_session
                if self._agent.holds(entry) and all(condition.matches(entry.line) for condition in conditions)
            ]
            if len(found) >= most or len(similar) < count:
                break
            count *= 4  # Filtered memories make room for less similar ones.
        found = found[:most]
        vectors = self._vectors.of(session.id, [entry for entry, _ in found])
        memories = (memory_of(entry, vectors.get(entry.id), score) for entry, score in found)
        return Memories(memories, searched=similar.searched)


def agent_of(home: Target, agent: str) -> Agent:
    """Return an agent of a home; open the home if it is not open."""
    return (home if isinstance(home, Home) else open_home(home)).agent(agent)


def item_of(text: Any, summary_text: Any, metadata: Any = None) -> Record:
    """Check a memory's arguments, and return the content of its log line; TypeError if one is invalid."""
    for name, value in (("text", text), ("summary_text", "" if summary_text is None else summary_text)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {type(value).__name__}: {value!r:.80}")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a mapping, not {type(metadata).__name__}: {metadata!r:.80}")
    data = {} if metadata is None else {"data": metadata}
    return {"text": text, "summary": summary_text, **data}


def text_given(entry: Entry) -> str:
    """Return an entry's text as it was given, else the text that is indexed."""
    text = entry.line.get("text")
    return text if isinstance(text, str) else entry.text


def memory_of(entry: Entry, embedding: Vector | None, score: float | None = None) -> Memory:
    """Return an entry as a memory."""
    data = entry.line.get("data")
    metadata = dict(data) if isinstance(data, dict) else {}
    text = text_given(entry)
    return Memory(entry.id, entry.session, text, entry.summary, entry.ts, embedding, score, metadata)
