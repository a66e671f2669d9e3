"""Memories of sessions; an embedder makes the vectors that callers do not give (requirement 4).

``MemoryService`` uses ``MemoryRepository`` to store and compare memories.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from keepstone.agent import Agent
from keepstone.embed import EmbedderLike
from keepstone.errors import EmbedderUnavailableError, EntryNotFoundError, KeepstoneError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.log.arguments import count_of, name_of
from keepstone.log.line import text_of
from keepstone.model import Entry, Record
from keepstone.recall.vectors import Vectors
from keepstone.services.memory_repository import (
    TYPE,
    Memories,
    Memory,
    MemoryRepository,
    Target,
    agent_of,
    item_of,
    memory_of,
    text_given,
)
from keepstone.store.reader import HNSW_FROM
from keepstone.vector import Vector

logger = logging.getLogger("keepstone.memory_service")


class _RepositoryOfService(MemoryRepository):
    """A repository in the space of a service's embedder."""

    def __init__(self, agent: Agent, vectors: Vectors, hnsw_from: int) -> None:
        self._agent = agent
        self._vectors = vectors
        self._hnsw_from = hnsw_from


class MemoryService:
    """Memories of sessions, with vectors given by callers or made by an embedder.

    A session with memories is also called a collection. Vectors made by an embedder are stored in the index
    only, and made again if the index is lost. Without an embedder, callers must give a vector for each
    memory. Safe to share between threads and processes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent. Memory of other agents cannot be accessed.
        embedder: The embedder: an object with ``id``, ``dim``, ``embed_documents`` and
            ``embed_query``, a function, a LangChain ``Embeddings``, or a name such as ``"minilm"``
            or ``"openai:MODEL"``; see ``keepstone model list``.
        dim: The required dimension; default: the embedder's, or that of the first given vector.
        hnsw_from: Number of memories, at least 1, from which a session is searched by an HNSW graph.
            The first query is an exact scan; the graph is then built in the background. Lower numbers are no
            faster: an exact scan of 50,000 vectors takes about a millisecond.

    Raises:
        TypeError, ValueError: An argument is invalid.
        EmbeddingDimMismatchError: ``dim`` is not the embedder's dimension.

    Examples:
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
        """Open the home. Nothing is written before the first memory."""
        least = count_of(hnsw_from, "hnsw_from", least=1)
        self._agent = agent_of(home, agent)
        self._vectors = self._agent.vectors(embedder, dim)
        self._repository = _RepositoryOfService(self._agent, self._vectors, least)

    @property
    def repository(self) -> MemoryRepository:
        """The repository of this service, in the vector space of its embedder."""
        return self._repository

    def create_memory(
        self,
        session_id: str,
        text: str,
        embedding: Any = None,
        summary_text: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Memory:
        """Store a text with a vector durably, and return the memory.

        Without ``embedding``, the text is embedded before anything is written. See
        ``MemoryRepository.create_memory`` for the arguments and the other errors.

        Raises:
            EmbedderUnavailableError: No vector was given, and there is no embedder or it failed.
            EmbeddingDimMismatchError: The given or computed vector has a wrong dimension.
            SpaceMismatchError: The agent's vectors are from another embedder.
        """
        item = {"text": text, "embedding": embedding, "summary_text": summary_text, "metadata": metadata}
        return self.create_memories(session_id, [item])[0]

    def create_memories(self, session_id: str, items: Iterable[Mapping[str, Any]]) -> list[Memory]:
        """Store many memories with one write, all of them or none, and return them.

        Each item is a mapping with the arguments of ``create_memory``: ``text``, and optionally
        ``embedding``, ``summary_text`` and ``metadata``. Errors are those of ``create_memory``.

        Examples:
            >>> service = MemoryService(".work-agent")
            >>> memories = service.create_memories(
            ...     "s1", [{"text": "Use pnpm", "embedding": [0.1, 0.9], "metadata": {"team": "web"}}]
            ... )
            >>> memories[0].metadata
            {'team': 'web'}
        """
        session = self._agent.session(session_id)
        # A remote embedder must not get a text that the home refuses to store.
        given = [_arguments(item) for item in items]
        lines = [session.guarded({"type": TYPE} | item_of(**keys)) for _, keys in given]
        # Make all vectors before anything is written, so that an embedder that fails leaves no memory without
        # its vector.
        vectors = self._made(
            [line for line, (embedding, _) in zip(lines, given, strict=True) if embedding is None]
        )
        for line, (embedding, _) in zip(lines, given, strict=True):
            if embedding is not None:
                line["embedding"] = self._vectors.given(embedding)
        entries = session.add_many(lines)
        made = [
            (entry, next(vectors))
            for entry, (vector, _) in zip(entries, given, strict=True)
            if vector is None
        ]
        self._keep(made)
        kept = {entry.id: vector for entry, vector in made}
        return [memory_of(entry, kept.get(entry.id, entry.embedding)) for entry in entries]

    def update_memory(
        self,
        id: str,  # noqa: A002
        text: str | None = None,
        embedding: Any = None,
        summary_text: str | None = None,
    ) -> Memory:
        """Change the text, vector or summary of a memory durably, and return it. Values not given stay.

        A new text without ``embedding`` gets its vector from the embedder before anything is written.

        Raises:
            EntryNotFoundError: There is no such memory.
            AmbiguousIdError: Several sessions have a memory with this id.
            ValueError: No change is given.
            EmbedderUnavailableError, EmbeddingDimMismatchError, SpaceMismatchError: As for ``create_memory``.
        """
        entry = self._agent.get(id)
        keys: Record = (
            {}
            if text is None and embedding is None and summary_text is None
            else item_of(text_given(entry) if text is None else text, summary_text, entry.line.get("data"))
        )
        session = self._agent.session(entry.session)
        # Mask secrets before the text is embedded, as a remote embedder gets the text.
        keys = {key: value for key, value in session.guarded(keys).items() if value is not None}
        if embedding is not None:
            keys["embedding"] = self._vectors.given(embedding)
        made = self._made([keys] if text is not None and embedding is None else [])
        # Leave out the old text and payload: they were only checked together with the new summary, and
        # another writer may have changed them in the meantime.
        if text is None:
            keys = {key: value for key, value in keys.items() if key not in ("text", "data")}
        entry = session.update(id, **keys)
        self._keep([(entry, vector) for vector in made])
        return memory_of(entry, self._vectors.of(entry.session, [entry]).get(id))

    def delete_memory(self, id: str) -> bool:  # noqa: A002
        """Delete a memory: hide it like ``Agent.delete``; False if no memory has this id.

        Raises:
            AmbiguousIdError: Several sessions have a memory with this id.
        """
        try:
            self._agent.delete(id)
        except EntryNotFoundError:
            return False
        return True

    def _made(self, lines: Sequence[Record]) -> Iterator[Vector]:
        """Return the vectors for new lines."""
        return iter(self._vectors.embed([text_of(line) for line in lines]) if lines else ())

    def _keep(self, made: Sequence[tuple[Entry, Vector]]) -> None:
        try:
            self._vectors.keep(made)
        except KeepstoneError as error:  # The memory is stored; after an error, callers would store it twice.
            ids = ", ".join(entry.id for entry, _ in made)
            logger.warning("the vectors of memories %.200s are to be made again: %s", ids, error)

    def get_memories_by_session(self, session_id: str, limit: int | None = None) -> list[Memory]:
        """Return a session's memories, oldest first; with a limit, only the newest.

        A missing session has none. Nothing is embedded for this.
        """
        session = self._agent.session(session_id)
        entries = session.entries(limit=limit, include_superseded=True)
        vectors = self._vectors.of(session.id, entries)
        return [memory_of(entry, vectors.get(entry.id)) for entry in entries]

    def query_similar_memories(
        self, embedding: Any, session_id: str, limit: int = 5, where: Mapping[str, Any] | None = None
    ) -> Memories:
        """Return the memories of a session most similar to a vector or a text, best first.

        ``searched`` of the result is the kind of search. ``embedding`` is a vector, or a text to embed. With
        an embedder, memories without a vector are embedded first. See
        ``MemoryRepository.query_similar_by_embedding`` for the other arguments and errors.

        Raises:
            EmbedderUnavailableError: A text was given, and there is no embedder or it failed.
        """
        if isinstance(embedding, str):
            text = name_of(embedding, "the text to compare with")
            embedding, _, reason = self._vectors.query(text, None)
            if embedding is None:
                raise EmbedderUnavailableError(
                    f"there is no embedder to make a vector of the text ({reason}): pass a vector, or open "
                    "the service with embedder="
                )
        return self._repository.query_similar_by_embedding(embedding, session_id, limit, where)

    def get_all_sessions(self) -> list[str]:
        """Return the ids of the sessions that have memories, sorted."""
        return sorted(self._agent.entry_counts())

    def collection_exists(self, name: str) -> bool:
        """Return whether the collection has memories."""
        return self.get_collection_size(name) > 0

    def get_collection_size(self, name: str) -> int:
        """Return the number of memories in the collection; 0 if it is missing."""
        return self._agent.session(name).entry_count()

    def delete_collection(self, name: str) -> int:
        """Remove every byte of a collection, mark it as dropped, and return its number of memories.

        If the process is killed during the call, the next open of the home completes the removal. A new
        collection with this name starts empty.

        Raises:
            PurgePendingError: A reader keeps old index bytes; the next open completes the removal.
            LockTimeoutError: Another process held the session's lock for five seconds.
        """
        return self._agent.session(name).drop()

    def dropped_collections(self) -> list[str]:
        """Return the sorted names of deleted collections, including names that are in use again.

        Examples:
            >>> service = MemoryService("memory")
            >>> memory = service.create_memory("s1", "The deploy key rotates on Fridays", [0.6, 0.8])
            >>> service.delete_collection("s1")
            1
            >>> service.dropped_collections()
            ['s1']
        """
        return self._agent.dropped_sessions()


def _arguments(item: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the vector and the other arguments of a new memory."""
    if not isinstance(item, Mapping):
        raise TypeError(f"an item must be a mapping, not {type(item).__name__}: {item!r:.80}")
    known = ("text", "embedding", "summary_text", "metadata")
    if unknown := [key for key in item if key not in known]:
        raise TypeError(f"an item has the unknown key {unknown[0]!r:.80}; use {', '.join(known)}")
    if "text" not in item:
        raise ValueError(f"an item has no text: {dict(item)!r:.80}")
    keys = {name: item.get(name) for name in ("text", "summary_text", "metadata")}
    return item.get("embedding"), keys
