"""``MemoryService`` and ``MemoryRepository``: vector search within a session (requirement 4).

``MemoryRepository`` stores and searches vectors; ``MemoryService`` wraps it and embeds texts that come
without a vector.
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
"""The entry type of memories."""

Target = str | os.PathLike[str] | Home | None
"""A home: what ``keepstone.open`` takes, or an open one."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory: a text of a session."""

    id: str
    session_id: str
    text: str
    summary_text: str | None
    timestamp: datetime
    """When it was created: an aware datetime in UTC."""
    embedding: Vector | None = field(compare=False, repr=False)
    """float32 of shape ``(dim,)`` and unit length; None if it was neither given nor made yet."""
    score: float | None = None
    """The cosine with the query's vector, from -1 to 1; None outside a query."""


class Memories(list[Memory]):
    """The memories most similar to a vector, best first.

    Attributes:
        searched: How they were found: ``"exact"`` by a scan of all vectors, or ``"hnsw"`` by an HNSW graph.
    """

    def __init__(self, memories: Iterable[Memory] = (), *, searched: str = "exact") -> None:
        super().__init__(memories)
        self.searched = searched


class MemoryRepository:
    """Memories with vectors given by the caller.

    Each memory is an entry of its session's log, and each live entry of a session is a memory,
    whatever API wrote it. Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.

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
        """Store a text with its vector durably, and return the memory.

        Args:
            session_id: Any non-empty string; a missing session is created.
            text: The text to remember.
            embedding: The text's vector, a sequence or array of numbers; stored with unit length.
                The first one of an agent sets the dimension of all others.
            summary_text: A summary to store with it.

        Raises:
            TypeError: An argument has a wrong type. After any error nothing was written.
            EmbeddingDimMismatchError: The vector's dimension differs from the agent's vectors.
            InvalidEmbeddingError: The vector is empty, has NaN or infinity, or only zeros.
            ValueError: The text cannot be stored.
            LockTimeoutError: Another process held the session's lock for five seconds.
            StoreError: The disk is full or failed.
        """
        session, item = self._agent.session(session_id), _item(text, summary_text)
        entry = session.add(TYPE, embedding=self._vectors.given(embedding), **item)
        return _memory(entry, entry.embedding)

    def query_similar_by_embedding(self, embedding: Any, session_id: str, limit: int = 5) -> Memories:
        """Return the session's memories with the largest cosines, best first.

        Memories that are superseded, expired or not yet valid are left out.

        Args:
            embedding: The query's vector, of any length.
            session_id: The session; a missing one has no memories.
            limit: Maximum number of memories.

        Raises:
            TypeError: An argument has a wrong type.
            EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``create_memory``.
            ValueError: The limit is negative.
            StoreError: The index is unavailable.
        """
        vector = self._vectors.check(embedding)
        session, most = self._agent.session(session_id), count_of(limit, "limit")
        scope = Scope(self._agent.slug, (session.id,))
        asked = most
        while True:
            similar = self._vectors.similar(vector, scope, asked, hnsw_from=self._hnsw_from)
            # After the index was rebuilt, keys may name entries of other sessions.
            here = ((entry, score) for entry, score in similar if entry.session == session.id)
            found = [(entry, score) for entry, score in here if self._agent.holds(entry)]
            if len(found) >= most or len(similar) < asked:
                break
            asked *= 4  # Entries that are not valid now leave room for less similar ones.
        found = found[:most]
        vectors = self._vectors.of(session.id, [entry for entry, _ in found])
        memories = (_memory(entry, vectors.get(entry.id), score) for entry, score in found)
        return Memories(memories, searched=similar.searched)


class _RepositoryOfService(MemoryRepository):
    """A repository in the space of a service's embedder."""

    def __init__(self, agent: Agent, vectors: Vectors, hnsw_from: int) -> None:
        self._agent = agent
        self._vectors = vectors
        self._hnsw_from = hnsw_from


class MemoryService:
    """Memories of sessions, with vectors given by callers or made by an embedder.

    A session with memories is also called a collection. Vectors made by an embedder are stored in
    the index only, and made again if it is lost. Without an embedder each memory needs a vector.
    Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.
        embedder: The embedder: an object with ``id``, ``dim``, ``embed_documents`` and
            ``embed_query``, a function, a LangChain ``Embeddings``, or a name such as ``"minilm"``
            or ``"openai:MODEL"``; see ``keepstone model list``.
        dim: The required dimension; default: the embedder's, or that of the first given vector.
        hnsw_from: Number of memories, at least 1, from which a session is searched by an HNSW graph.
            The first query is an exact scan; the graph is then built in the background. Lower numbers
            gain nothing: an exact scan of 50,000 vectors takes about a millisecond.

    Raises:
        TypeError, ValueError: An argument is invalid.
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
        """The repository, in this service's space."""
        return self._repository

    def create_memory(
        self, session_id: str, text: str, embedding: Any = None, summary_text: str | None = None
    ) -> Memory:
        """Store a text with a vector durably, and return the memory.

        Without ``embedding`` the text is embedded before anything is written.
        See ``MemoryRepository.create_memory`` for the arguments and the other errors.

        Raises:
            EmbedderUnavailableError: No vector was given, and there is no embedder or it failed.
            EmbeddingDimMismatchError: The given or computed vector has a wrong dimension.
            SpaceMismatchError: The agent's vectors are from another embedder.
        """
        if embedding is not None:
            return self._repository.create_memory(session_id, text, embedding, summary_text)
        session = self._agent.session(session_id)
        # Mask secrets first, so that a remote embedder does not get them.
        item = session.guarded(_item(text, summary_text))
        vector = self._vectors.embed(item["text"])
        entry = session.add(TYPE, **item)
        try:
            self._vectors.keep(entry, vector)
        except KeepstoneError as error:  # The memory is stored; raising would make callers store it twice.
            logger.warning("cannot store the vector of memory %s, it will be made again: %s", entry.id, error)
        return _memory(entry, vector)

    def get_memories_by_session(self, session_id: str, limit: int | None = None) -> list[Memory]:
        """Return a session's memories by timestamp, oldest first; a limit keeps the newest.

        A missing session has none. Nothing is embedded for this.
        """
        session = self._agent.session(session_id)
        entries = session.entries(limit=limit)
        vectors = self._vectors.of(session.id, entries)
        return [_memory(entry, vectors.get(entry.id)) for entry in entries]

    def query_similar_memories(self, embedding: Any, session_id: str, limit: int = 5) -> Memories:
        """Return the session's memories most similar to a vector, best first; ``.searched`` tells how.

        With an embedder, pending memories are embedded first. See
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

        If the process is killed during this, the next open of the home completes the removal. A new
        collection of that name starts empty.

        Raises:
            PurgePendingError: A reader keeps old index bytes; the next open completes the removal.
            LockTimeoutError: Another process held the session's lock for five seconds.
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
