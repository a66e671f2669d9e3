"""Texts with the vectors that callers give, found by similarity within a session (requirement 4)."""

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
"""The type of the entries that memories are written as."""

Target = str | os.PathLike[str] | Home | None
"""A home: what ``keepstone.open`` takes, or an open one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One text of a session, as the memory service gives it out."""

    id: str
    session_id: str
    text: str
    summary_text: str | None
    timestamp: datetime
    """When it was made: an aware datetime in UTC."""
    embedding: Vector | None = field(compare=False, repr=False)
    """float32 of shape ``(dim,)`` and unit length; None if it was neither given nor made yet."""
    score: float | None = None
    """The cosine with the vector that was asked for, from -1 to 1; None outside a query."""
    metadata: Record = field(default_factory=dict, hash=False)
    """The metadata given with it, for filters."""


class Memories(list[Memory]):
    """The memories most similar to a vector, best first.

    Attributes:
        searched: How they were found: ``"exact"``, every vector of the session was compared, or ``"hnsw"``,
            an HNSW graph chose the vectors to compare.
    """

    def __init__(self, memories: Iterable[Memory] = (), *, searched: str = "exact") -> None:
        super().__init__(memories)
        self.searched = searched


class MemoryRepository:
    """Memories with the vectors that their callers give.

    Each memory is an entry of its session's log, and each live entry of a session is a
    memory, whichever way in wrote it. Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent whose memory this is. Another agent's cannot be reached from here.

    Examples:
        >>> repository = MemoryRepository(".work-agent")
        >>> memory = repository.create_memory("s1", "Use pnpm", [0.1, 0.9])
        >>> repository.query_similar_by_embedding([0.2, 0.8], "s1")[0].text
        'Use pnpm'
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home; nothing is written before the first memory."""
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
        """Store a text with its vector, durably, and return it as it is then.

        Args:
            session_id: Any non-empty string; the session is made if need be.
            text: What to remember.
            embedding: The text's vector, a sequence or array of numbers; stored with unit length.
                The first one of an agent decides which dimension all others must have.
            summary_text: A shorter wording to keep with it.
            metadata: A JSON object to keep with it, which ``where`` filters by.

        Raises:
            TypeError: An argument is of a wrong type; nothing was written, as with every error here.
            EmbeddingDimMismatchError: The vector has another dimension than the agent's vectors.
            InvalidEmbeddingError: It is empty, holds NaN or infinity, or only zeros.
            ValueError: The text cannot be stored.
            LockTimeoutError: Another program kept the session locked for five seconds.
            StoreError: The disk is full or failed.
        """
        session, item = self._agent.session(session_id), item_of(text, summary_text, metadata)
        entry = session.add(TYPE, embedding=self._vectors.given(embedding), **item)
        return memory_of(entry, entry.embedding)

    def query_similar_by_embedding(
        self, embedding: Any, session_id: str, limit: int = 5, where: Mapping[str, Any] | None = None
    ) -> Memories:
        """Return the session's memories whose vectors have the largest cosine with one, best first.

        Memories that are superseded, expired or not yet valid are left out.

        Args:
            embedding: The vector to compare with; its length does not matter.
            session_id: A session; a missing one has no memories.
            limit: The most memories to return.
            where: Only memories whose metadata has these values, as for ``Agent.recall``:
                ``{"user.city": "Zürich", "score": {"gte": 3}}``.

        Raises:
            TypeError: An argument is of a wrong type.
            EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``create_memory``.
            ValueError: The limit is negative, or ``where`` has an unknown operator.
            StoreError: The index cannot be used now.
        """
        vector = self._vectors.check(embedding)
        session, most = self._agent.session(session_id), count_of(limit, "limit")
        conditions = conditions_of(where)
        scope = Scope(self._agent.slug, (session.id,))
        count = most
        # Filters apply after the search by vectors, which is repeated with more until a page is full.
        while True:
            similar = self._vectors.similar(vector, scope, count, hnsw_from=self._hnsw_from)
            # An index that was healed in between may have named entries of other sessions.
            in_session = ((entry, score) for entry, score in similar if entry.session == session.id)
            found = [
                (entry, score)
                for entry, score in in_session
                if self._agent.holds(entry) and all(condition.matches(entry.line) for condition in conditions)
            ]
            if len(found) >= most or len(similar) < count:
                break
            count *= 4  # Memories that are left out make room for others further away.
        found = found[:most]
        vectors = self._vectors.of(session.id, [entry for entry, _ in found])
        memories = (memory_of(entry, vectors.get(entry.id), score) for entry, score in found)
        return Memories(memories, searched=similar.searched)


def agent_of(home: Target, agent: str) -> Agent:
    """Return an agent of a home, which is opened if need be."""
    return (home if isinstance(home, Home) else open_home(home)).agent(agent)


def item_of(text: Any, summary_text: Any, metadata: Any = None) -> Record:
    """Return the content of a memory's line; raise TypeError if it has none."""
    for name, value in (("text", text), ("summary_text", "" if summary_text is None else summary_text)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {type(value).__name__}: {value!r:.80}")
    if metadata is not None and not isinstance(metadata, Mapping):
        raise TypeError(f"metadata must be a mapping, not {type(metadata).__name__}: {metadata!r:.80}")
    data = {} if metadata is None else {"data": metadata}
    return {"text": text, "summary": summary_text, **data}


def text_given(entry: Entry) -> str:
    """Return a memory's text as it was given; of another kind of entry the text that is indexed."""
    text = entry.line.get("text")
    return text if isinstance(text, str) else entry.text


def memory_of(entry: Entry, embedding: Vector | None, score: float | None = None) -> Memory:
    """Return an entry as a memory."""
    data = entry.line.get("data")
    metadata = dict(data) if isinstance(data, dict) else {}
    text = text_given(entry)
    return Memory(entry.id, entry.session, text, entry.summary, entry.ts, embedding, score, metadata)
