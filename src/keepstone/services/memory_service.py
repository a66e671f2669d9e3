"""Texts with vectors, found by similarity within a session (requirement 4).

``MemoryRepository`` stores and compares; ``MemoryService`` stands in front of it and
makes the vectors that callers leave out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from keepstone.agent import Agent
from keepstone.embed import EmbedderLike
from keepstone.errors import KeepstoneError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.home import Home
from keepstone.home import open as open_home
from keepstone.log.arguments import count_of
from keepstone.model import Entry, Record, Scope
from keepstone.recall.vectors import Vectors
from keepstone.store.reader_protocol import HNSW_FROM
from keepstone.vector import Vector

logger = logging.getLogger("keepstone.memory_service")

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

    Example:
        >>> repository = MemoryRepository(".work-agent")
        >>> memory = repository.create_memory("s1", "Use pnpm", [0.1, 0.9])
        >>> repository.query_similar_by_embedding([0.2, 0.8], "s1")[0].text
        'Use pnpm'
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT) -> None:
        """Open the home; nothing is written before the first memory."""
        self._agent = _agent_of(home, agent)
        self._vectors = self._agent.vectors()
        self._hnsw_from = HNSW_FROM

    def create_memory(
        self, session_id: str, text: str, embedding: Any, summary_text: str | None = None
    ) -> Memory:
        """Store a text with its vector, durably, and return it as it is then.

        Args:
            session_id: Any non-empty string; the session is made if need be.
            text: What to remember.
            embedding: The text's vector, a sequence or array of numbers; stored with unit length.
                The first one of an agent decides which dimension all others must have.
            summary_text: A shorter wording to keep with it.

        Raises:
            TypeError: An argument is of a wrong type; nothing was written, as with every error here.
            EmbeddingDimMismatchError: The vector has another dimension than the agent's vectors.
            InvalidEmbeddingError: It is empty, holds NaN or infinity, or only zeros.
            ValueError: The text cannot be stored.
            LockTimeoutError: Another program kept the session locked for five seconds.
            StoreError: The disk is full or failed.
        """
        session, item = self._agent.session(session_id), _item(text, summary_text)
        entry = session.add(TYPE, embedding=self._vectors.given(embedding), **item)
        return _memory(entry, entry.embedding)

    def query_similar_by_embedding(self, embedding: Any, session_id: str, limit: int = 5) -> Memories:
        """Return the session's memories whose vectors have the largest cosine with one, best first.

        Memories that are superseded, expired or not yet valid are left out.

        Args:
            embedding: The vector to compare with; its length does not matter.
            session_id: A session; a missing one has no memories.
            limit: The most memories to return.

        Raises:
            TypeError: An argument is of a wrong type.
            EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``create_memory``.
            ValueError: The limit is negative.
            StoreError: The index cannot be used now.
        """
        vector = self._vectors.check(embedding)
        session, most = self._agent.session(session_id), count_of(limit, "limit")
        scope = Scope(self._agent.slug, (session.id,))
        asked = most
        while True:
            similar = self._vectors.similar(vector, scope, asked, hnsw_from=self._hnsw_from)
            # An index that was healed in between may have named entries of other sessions.
            here = ((entry, score) for entry, score in similar if entry.session == session.id)
            found = [(entry, score) for entry, score in here if self._agent.holds(entry)]
            if len(found) >= most or len(similar) < asked:
                break
            asked *= 4  # What does not hold makes place for memories further away.
        found = found[:most]
        vectors = self._vectors.of(session.id, [entry for entry, _ in found])
        memories = (_memory(entry, vectors.get(entry.id), score) for entry, score in found)
        return Memories(memories, searched=similar.searched)


class _RepositoryOfService(MemoryRepository):
    """One in the space of a service's embedder."""

    def __init__(self, agent: Agent, vectors: Vectors, hnsw_from: int) -> None:
        self._agent = agent
        self._vectors = vectors
        self._hnsw_from = hnsw_from


class MemoryService:
    """Memories of sessions, with vectors given by callers or made by an embedder.

    A session with memories is also called a collection. With an embedder, vectors that it
    makes are kept in the index only, and made again when that is gone. Without one, each
    memory needs its vector. Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent whose memory this is. Another agent's cannot be reached from here.
        embedder: Makes vectors of texts: an object with ``id``, ``dim``, ``embed_documents`` and
            ``embed_query``, a function, a LangChain ``Embeddings``, or a name such as ``"minilm"``
            or ``"openai:MODEL"``; see ``keepstone model list``.
        dim: The dimension that vectors must have; the embedder's, or that of the first one given.
        hnsw_from: A session with so many memories, at least 1, is searched by an HNSW graph. Its first
            query is answered exactly; the graph is made after that in the background. A lower number
            gains nothing: an exact search of 50,000 takes about a millisecond.

    Raises:
        TypeError, ValueError: An argument is none of these.
        EmbeddingDimMismatchError: ``dim`` is not the embedder's dimension.

    Example:
        >>> service = MemoryService(".work-agent")
        >>> memory = service.create_memory("s1", "Use pnpm", [0.1, 0.9], summary_text="pnpm")
        >>> [(memory.text, memory.score) for memory in service.query_similar_memories([0.1, 0.9], "s1")]
        [('Use pnpm', 1.0)]
    """

    def __init__(
        self,
        home: Target = None,
        *,
        agent: str = DEFAULT_AGENT,
        embedder: EmbedderLike | None = None,
        dim: int | None = None,
        hnsw_from: int = HNSW_FROM,
    ) -> None:
        """Open the home; nothing is written before the first memory."""
        least = count_of(hnsw_from, "hnsw_from", least=1)
        self._agent = _agent_of(home, agent)
        self._vectors = self._agent.vectors(embedder, dim)
        self._repository = _RepositoryOfService(self._agent, self._vectors, least)

    @property
    def repository(self) -> MemoryRepository:
        """What stores and compares the memories, with the vectors' space of this service."""
        return self._repository

    def create_memory(
        self, session_id: str, text: str, embedding: Any = None, summary_text: str | None = None
    ) -> Memory:
        """Store a text with a vector, durably, and return it as it is then.

        Without ``embedding`` the embedder makes the vector before anything is written.
        See ``MemoryRepository.create_memory`` for the arguments and the other errors.

        Raises:
            EmbedderUnavailableError: No vector was given and there is no embedder, or it raised.
            EmbeddingDimMismatchError: The vector, or what the embedder made, has the wrong dimension.
            SpaceMismatchError: The agent's vectors are of another embedder.
        """
        if embedding is not None:
            return self._repository.create_memory(session_id, text, embedding, summary_text)
        session = self._agent.session(session_id)
        # A remote embedder must not get what the home does not keep.
        item = session.guarded(_item(text, summary_text))
        vector = self._vectors.embed(item["text"])
        entry = session.add(TYPE, **item)
        try:
            self._vectors.keep(entry, vector)
        except KeepstoneError as error:  # The memory is stored: after an error callers would store it twice.
            logger.warning("the vector of memory %s is to be made again: %s", entry.id, error)
        return _memory(entry, vector)

    def get_memories_by_session(self, session_id: str, limit: int | None = None) -> list[Memory]:
        """Return a session's memories by their timestamps, the oldest first; a limit keeps the newest.

        A missing session has none. No vector is made for this.
        """
        session = self._agent.session(session_id)
        entries = session.entries(limit=limit)
        vectors = self._vectors.of(session.id, entries)
        return [_memory(entry, vectors.get(entry.id)) for entry in entries]

    def query_similar_memories(self, embedding: Any, session_id: str, limit: int = 5) -> Memories:
        """Return the session's memories most similar to a vector, best first; ``.searched`` says how.

        With an embedder, memories that have no vector yet get theirs before. See
        ``MemoryRepository.query_similar_by_embedding`` for the arguments and errors.
        """
        return self._repository.query_similar_by_embedding(embedding, session_id, limit)

    def get_all_sessions(self) -> list[str]:
        """Return the ids of the sessions that have memories, sorted."""
        return sorted(self._agent.entry_counts())

    def collection_exists(self, name: str) -> bool:
        """Tell whether the collection has memories."""
        return self.get_collection_size(name) > 0

    def get_collection_size(self, name: str) -> int:
        """Return how many memories the collection has; 0 if it is missing."""
        return self._agent.session(name).entry_count()

    def delete_collection(self, name: str) -> int:
        """Remove every byte of a collection, mark it as dropped, and return how many memories it had.

        What was dropped never comes back, also if this is killed half-way: whoever opens the
        home next finishes it. A collection made again under that name starts empty.

        Raises:
            PurgePendingError: It is gone, but a reader elsewhere keeps old bytes; the next open finishes.
            LockTimeoutError: Another program kept the session locked for five seconds.
        """
        return self._agent.session(name).drop()

    def dropped_collections(self) -> list[str]:
        """Return the names of the collections that were deleted, sorted; also if they were made again.

        Example:
            >>> service = MemoryService("memory")
            >>> memory = service.create_memory("s1", "The deploy key rotates on Fridays", [0.6, 0.8])
            >>> service.delete_collection("s1")
            1
            >>> service.dropped_collections()
            ['s1']
        """
        return self._agent.dropped_sessions()


def _agent_of(home: Target, agent: str) -> Agent:
    return (home if isinstance(home, Home) else open_home(home)).agent(agent)


def _item(text: str, summary_text: str | None) -> Record:
    for name, value in (("text", text), ("summary_text", "" if summary_text is None else summary_text)):
        if not isinstance(value, str):
            raise TypeError(f"{name} must be a string, not {type(value).__name__}: {value!r:.80}")
    return {"text": text, "summary": summary_text}


def _memory(entry: Entry, embedding: Vector | None, score: float | None = None) -> Memory:
    return Memory(entry.id, entry.session, entry.text, entry.summary, entry.ts, embedding, score)
