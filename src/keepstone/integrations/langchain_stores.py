"""LangChain stores: bytes by key, and documents by vector similarity."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.importing.langgraph_names import id_of, key_of
from keepstone.integrations.homes import (
    clock_of,
    found_in,
    in_thread,
    needs,
    opened_agent,
    opened_home,
    opened_session,
    plain_errors,
    revise,
    write_in_thread,
)
from keepstone.integrations.texts import STATE
from keepstone.log.arguments import new_id, now
from keepstone.model import Record
from keepstone.services.memory_repository import Memory, MemoryRepository, Target, text_given
from keepstone.session import Session
from keepstone.store.protocol import LiveSession

with needs("langchain"):
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.stores import ByteStore
    from langchain_core.vectorstores import VectorStore
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

_BYTES, _DOCUMENT = "bytes", "document"


class KeepstoneByteStore(ByteStore):
    """Bytes by key, for ``CacheBackedEmbeddings``, ``create_kv_docstore`` or direct use.

    Each key is an entry of one session. No search returns these entries.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        name: The name of the session. Stores of different names have different keys.

    Methods raise ``TimeoutError`` if another process keeps the session locked, and ``OSError`` if the disk
    fails.

    Examples:
        >>> store = KeepstoneByteStore(".work-agent")
        >>> store.mset([("logo", b"PNG")])
        >>> store.mget(["logo", "icon"])
        [b'PNG', None]
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT, name: str = "bytes") -> None:
        """Open the home. Nothing is written before the first value."""
        self._agent = opened_agent(home, agent)
        self._session = opened_session(self._agent, name)

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the value of each key; None for a missing key."""
        with plain_errors():
            return [self._value(key) for key in keys]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set the values of keys: all of them, or none."""
        items: dict[str, Record] = {}
        for key, value in key_value_pairs:
            data = {"base64": base64.b64encode(value).decode()}
            items[key] = {"id": id_of(key), "type": _BYTES, "data": data, **STATE}
        if items:
            with plain_errors():
                self._session.put_many(items.values())

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete keys and their values. Missing keys are ignored."""
        with plain_errors():
            _delete(self._session, now(clock_of(self._agent)), map(id_of, keys))

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Yield the keys, or those that begin with a prefix, in the order in which they were first set."""
        with plain_errors():
            found = [key_of(record["id"]) for record in self._session.records() if record["type"] == _BYTES]
        yield from (key for key in found if key.startswith(prefix or ""))

    async def amget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return values like ``mget``, without blocking the event loop."""
        return await in_thread(self.mget, keys)

    async def amset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Set values like ``mset``, without blocking the event loop."""
        await write_in_thread(self.mset, key_value_pairs)

    async def amdelete(self, keys: Sequence[str]) -> None:
        """Delete keys like ``mdelete``, without blocking the event loop."""
        await write_in_thread(self.mdelete, keys)

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Yield keys like ``yield_keys``, reading them in a thread."""
        for key in await in_thread(lambda: [*self.yield_keys(prefix=prefix)]):
            yield key

    def _value(self, key: str) -> bytes | None:
        entry = found_in(self._session, id_of(key))
        if entry is None or entry.type != _BYTES:
            return None
        return base64.b64decode(entry.data["base64"])


class KeepstoneVectorStore(VectorStore):
    """Documents by vector similarity, in a session that every other interface searches, too.

    A document is an entry of type ``document``: its content is the text, and its metadata is the payload.
    Like LangChain's stores, searches compare the vectors of the session only; ``KeepstoneRetriever`` searches
    all of an agent's memory, by words too.

    Args:
        embedding: The embedder for documents and questions.
        home: What ``keepstone.open`` takes, or a Home. All vectors of an agent have the same dimension.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        name: The name of the session. Stores of different names have different documents.

    Methods raise ``TimeoutError`` if another process keeps the session locked, ``OSError`` if the disk fails,
    and ``ValueError`` for values that cannot be stored and for vectors whose dimension is not the agent's.

    Examples:
        >>> from langchain_core.embeddings import DeterministicFakeEmbedding
        >>> store = KeepstoneVectorStore(DeterministicFakeEmbedding(size=8), ".work-agent")
        >>> store.add_texts(["Ada takes the ferry"], [{"by": "Ada"}], ids=["1"])
        ['1']
        >>> store.similarity_search("Ada takes the ferry", k=1)[0].metadata
        {'by': 'Ada'}
    """

    def __init__(
        self,
        embedding: Embeddings,
        home: Target = None,
        *,
        agent: str = DEFAULT_AGENT,
        name: str = "documents",
    ) -> None:
        """Open the home. Nothing is written before the first document."""
        self._embedding = embedding
        with plain_errors():
            opened = opened_home(home)
            self._repository = MemoryRepository(opened, agent=agent)
            self._clock = clock_of(opened.agent(agent))
            self._session = opened_session(opened.agent(agent), name)

    @property
    def embeddings(self) -> Embeddings:
        """The embedder for documents and questions."""
        return self._embedding

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_kwargs: Any,
    ) -> list[str]:
        """Add texts, or replace texts with the same ids: all of them, or none. Return their ids.

        Args:
            texts: The contents of the documents.
            metadatas: JSON objects, one for each text.
            ids: The ids of the documents; None for a new id.
        """
        items = _documents([*texts], metadatas, ids)
        return self._put(items, self._embedding.embed_documents([item["text"] for item in items]))

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_kwargs: Any,
    ) -> list[str]:
        """Add texts like ``add_texts``, without blocking the event loop."""
        items = _documents([*texts], metadatas, ids)
        vectors = await self._embedding.aembed_documents([item["text"] for item in items])
        return await write_in_thread(self._put, items, vectors)

    def delete(self, ids: Sequence[str] | None = None, **_kwargs: Any) -> bool:
        """Delete the documents with these ids, or all if ``ids`` is None. Unknown ids are ignored."""
        with plain_errors():
            if ids is None:
                ids = [record["id"] for record in self._session.records() if record["type"] == _DOCUMENT]
            _delete(self._session, now(self._clock), ids)
        return True

    async def adelete(self, ids: Sequence[str] | None = None, **_kwargs: Any) -> bool:
        """Delete documents like ``delete``, without blocking the event loop."""
        return await write_in_thread(self.delete, ids)

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents with these ids, in their order; unknown ids are left out."""
        with plain_errors():
            entries = [found_in(self._session, entry_id) for entry_id in ids]
        return [
            Document(id=entry.id, page_content=text_given(entry), metadata=dict(entry.data))
            for entry in entries
            if entry is not None
        ]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return documents like ``get_by_ids``, without blocking the event loop."""
        return await in_thread(self.get_by_ids, ids)

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return the k documents most similar to a text; see ``similarity_search_with_score``."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Return documents like ``similarity_search``, without blocking the event loop."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002  LangChain's name.
        **_kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return the k documents most similar to a text, each with its cosine, best first.

        Args:
            query: The text.
            k: Maximum number of documents.
            filter: Values that the metadata must have, in the format of ``where`` in ``Agent.recall``.
        """
        return self._scored(self._embedding.embed_query(query), k, filter)

    async def asimilarity_search_with_score(
        self,
        query: str,
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **_kwargs: Any,
    ) -> list[tuple[Document, float]]:
        """Return documents like ``similarity_search_with_score``, without blocking the event loop."""
        return await in_thread(self._scored, await self._embedding.aembed_query(query), k, filter)

    def similarity_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **_kwargs: Any,
    ) -> list[Document]:
        """Return the k documents most similar to a vector, best first."""
        return [document for document, _ in self._scored(embedding, k, filter)]

    async def asimilarity_search_by_vector(
        self, embedding: list[float], k: int = 4, **kwargs: Any
    ) -> list[Document]:
        """Return documents like ``similarity_search_by_vector``, without blocking the event loop."""
        return await in_thread(self.similarity_search_by_vector, embedding, k, **kwargs)

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return k documents that are similar to a text and not to each other."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, **kwargs)

    async def amax_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **kwargs: Any
    ) -> list[Document]:
        """Return documents like ``max_marginal_relevance_search``, without blocking the event loop."""
        vector = await self._embedding.aembed_query(query)
        search = self.max_marginal_relevance_search_by_vector
        return await in_thread(search, vector, k, fetch_k, lambda_mult, **kwargs)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002
        **_kwargs: Any,
    ) -> list[Document]:
        """Return k documents that are similar to a vector and not to each other.

        Args:
            embedding: The vector.
            k: Maximum number of documents.
            fetch_k: Number of most similar documents from which the k documents are chosen.
            lambda_mult: From 0 for the greatest diversity to 1 for the greatest similarity to the vector.
            filter: Values that the metadata must have, in the format of ``where`` in ``Agent.recall``.
        """
        found = self._similar(embedding, fetch_k, filter)
        # All memories found have a vector, so that both lists have the same indices.
        vectors = [memory.embedding.tolist() for memory in found if memory.embedding is not None]
        chosen = maximal_marginal_relevance(np.asarray(embedding), vectors, lambda_mult, k)
        return [_document(found[place]) for place in chosen]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **kwargs: Any,
    ) -> KeepstoneVectorStore:
        """Create a store and add texts to it; the other arguments are those of the class."""
        store = cls(embedding, **kwargs)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return _relevance

    def _put(self, items: Sequence[Record], vectors: Sequence[Sequence[float]]) -> list[str]:
        with plain_errors():
            put = [{**item, "embedding": vector} for item, vector in zip(items, vectors, strict=True)]
            return [entry.id for entry in self._session.put_many(put)] if put else []

    def _scored(
        self, vector: Sequence[float], k: int, where: Mapping[str, Any] | None
    ) -> list[tuple[Document, float]]:
        return [(_document(memory), memory.score or 0.0) for memory in self._similar(vector, k, where)]

    def _similar(self, vector: Sequence[float], k: int, where: Mapping[str, Any] | None) -> Sequence[Memory]:
        with plain_errors():
            return self._repository.query_similar_by_embedding(vector, self._session.id, k, where)


def _documents(
    texts: Sequence[str],
    metadatas: Sequence[Mapping[str, Any]] | None,
    ids: Sequence[str | None] | None,
) -> list[Record]:
    """Return the entries of documents.

    Raises:
        ValueError: The number of metadata or ids is not the number of texts.
    """
    for name, given in (("metadatas", metadatas), ("ids", ids)):
        if given is not None and len(given) != len(texts):
            raise ValueError(
                f"{name} must have one item for each text, not {len(given)} for {len(texts)} texts"
            )
    return [
        {
            "id": (ids[number] if ids else None) or new_id(),
            "type": _DOCUMENT,
            "text": text,
            "data": dict(metadatas[number]) if metadatas else {},
        }
        for number, text in enumerate(texts)
    ]


def _document(memory: Memory) -> Document:
    return Document(id=memory.id, page_content=memory.text, metadata=memory.metadata)


def _relevance(cosine: float) -> float:
    return min(1.0, max(0.0, cosine))


def _delete(session: Session, ts: str, ids: Iterable[str]) -> None:
    """Delete the entries of a session with these ids; unknown ids are ignored."""
    wanted = [*dict.fromkeys(ids)]

    def deleted(live: LiveSession) -> list[Record]:
        return [
            {"id": entry_id, "ts": ts, "deleted": True}
            for entry_id in wanted
            if live.get(entry_id) is not None
        ]

    revise(session, deleted, wanted, create=False)
