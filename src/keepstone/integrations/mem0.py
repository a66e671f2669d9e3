"""mem0: a vector store that stores memories as entries of a session.

Importing this module registers ``keepstone`` as a vector store provider. mem0 has no public registry for
this.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import found_in, opened_home, opened_session, plain_errors
from keepstone.log.arguments import new_id
from keepstone.model import Entry, Record
from keepstone.services.memory_repository import MemoryRepository, Target

try:
    from mem0.configs.vector_stores import __name__ as _configs
    from mem0.utils.factory import VectorStoreFactory
    from mem0.vector_stores.base import VectorStoreBase
    from mem0.vector_stores.configs import VectorStoreConfig
    from pydantic import BaseModel
except ImportError as error:  # No extra exists: mem0's dependencies conflict with other extras.
    raise ImportError(f"the adapter needs mem0: pip install mem0ai; {error}", name=error.name) from error

Names = list[str]
_PROVIDER = "keepstone"
_MEMORY, _ENTITY = "memory", "entity"
_LOGIC: Mapping[str, Callable[[Any], bool]] = {"$and": all, "AND": all, "$or": any, "OR": any}
_NOT = ("$not", "NOT")


class KeepstoneConfig(BaseModel):
    """The ``config`` of the provider ``keepstone``."""

    collection_name: str = "mem0"
    embedding_model_dims: int | None = None
    home: str | None = None
    agent: str = DEFAULT_AGENT


@dataclass(slots=True)
class Stored:
    """A memory in the form that mem0's stores return."""

    id: str
    score: float | None
    payload: Record


class KeepstoneVectorStore(VectorStoreBase):
    """A vector store for mem0: each collection is a session, and each memory is an entry.

    Args:
        collection_name: The session.
        embedding_model_dims: The dimension of the vectors; default: that of the first vector.
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
    """

    def __init__(
        self,
        collection_name: str = "mem0",
        embedding_model_dims: int | None = None,
        home: Target = None,
        agent: str = DEFAULT_AGENT,
    ) -> None:
        """Open the home. Nothing is written before the first memory."""
        self.collection_name = collection_name
        self.embedding_model_dims = embedding_model_dims
        with plain_errors():
            opened = opened_home(home)
            self._agent = opened.agent(agent)
            self._session = opened_session(self._agent, collection_name)
            self._repository = MemoryRepository(opened, agent=agent)

    def create_col(self, name: str, vector_size: int, distance: str = "cosine") -> None:
        """Do nothing: the first memory creates the collection."""

    def insert(
        self,
        vectors: Sequence[Sequence[float]],
        payloads: Sequence[Record] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Add memories, or replace memories with the same ids: all of them, or none."""
        items = [
            self._item(ids[number] if ids else new_id(), payloads[number] if payloads else {}, [*vector])
            for number, vector in enumerate(vectors)
        ]
        if items:
            with plain_errors():
                self._session.put_many(items)

    def search(
        self,
        query: str,  # noqa: ARG002  mem0 passes the vector of the query, too.
        vectors: Sequence[float],
        top_k: int = 5,
        filters: Mapping[str, Any] | None = None,
    ) -> list[Stored]:
        """Return the memories most similar to a vector, with the cosine of each as the score."""
        asked = top_k
        with plain_errors():
            while True:
                similar = self._repository.query_similar_by_embedding(vectors, self._session.id, asked)
                passing = [
                    Stored(memory.id, max(0.0, memory.score or 0.0), {**memory.metadata, "data": memory.text})
                    for memory in similar
                ]
                found = [stored for stored in passing if _passes(stored.payload, filters)]
                # If fewer were returned than requested, there are no more.
                if len(found) >= top_k or len(similar) < asked:
                    return found[:top_k]
                asked *= 4  # Filtered memories make room for less similar ones.

    def delete(self, vector_id: str) -> None:
        """Delete a memory; do nothing if it is missing."""
        with plain_errors():
            if found_in(self._session, vector_id) is not None:
                self._session.delete(vector_id)

    def update(
        self, vector_id: str, vector: Sequence[float] | None = None, payload: Record | None = None
    ) -> None:
        """Replace the vector, the payload or both of a memory."""
        with plain_errors():
            entry = found_in(self._session, vector_id)
            if entry is None:
                raise ValueError(f"collection {self.collection_name!r:.80} has no memory {vector_id!r:.80}")
            kept = entry.embedding if vector is None else [*vector]
            self._session.put(self._item(vector_id, _payload(entry) if payload is None else payload, kept))

    def get(self, vector_id: str) -> Stored | None:
        """Return a memory; None if it is missing."""
        with plain_errors():
            entry = found_in(self._session, vector_id)
        return None if entry is None else Stored(entry.id, None, _payload(entry))

    def list(self, filters: Mapping[str, Any] | None = None, top_k: int | None = None) -> list[list[Stored]]:
        """Return the memories that pass filters, oldest first, in an outer list as mem0's stores do."""
        with plain_errors():
            entries = self._session.entries(types=[_MEMORY, _ENTITY])
        found = [Stored(entry.id, None, _payload(entry)) for entry in entries]
        return [[stored for stored in found if _passes(stored.payload, filters)][:top_k]]

    def list_cols(self) -> Names:
        """Return the ids of the agent's sessions."""
        with plain_errors():
            return sorted(info.id for info in self._agent.sessions())

    def delete_col(self) -> None:
        """Remove every byte of the collection."""
        with plain_errors():
            self._session.remove()

    def col_info(self) -> dict[str, Any]:
        """Return the collection's name and number of memories."""
        with plain_errors():
            return {"name": self.collection_name, "count": self._session.entry_count()}

    def reset(self) -> None:
        """Remove every byte of the collection."""
        self.delete_col()

    def _item(self, name: str, payload: Mapping[str, Any], vector: Any) -> Record:
        data = {key: value for key, value in payload.items() if key != "data"}
        # mem0 creates a second store for entities, and derives its name from that of the first.
        kind = _ENTITY if self.collection_name.endswith("_entities") else _MEMORY
        item: Record = {"id": name, "type": kind, "text": str(payload.get("data") or ""), "data": data}
        return item if vector is None else item | {"embedding": vector}


def _payload(entry: Entry) -> Record:
    text = entry.line.get("text")
    return {**entry.data, "data": text if isinstance(text, str) else entry.text}


def _passes(payload: Mapping[str, Any], filters: Mapping[str, Any] | None) -> bool:
    """Return whether a payload passes mem0's filters: values, operators, ``AND``, ``OR`` and ``NOT``.

    Raises:
        ValueError: An operator is unknown.
    """
    for key, wanted in (filters or {}).items():
        if key in _LOGIC:
            if not _LOGIC[key](_passes(payload, part) for part in wanted):
                return False
        elif key in _NOT:
            if any(_passes(payload, part) for part in wanted):
                return False
        elif not _matches(payload.get(key), wanted):
            return False
    return True


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return all(_compared(operator, value, operand) for operator, operand in wanted.items())
    if isinstance(wanted, list):
        return value in wanted
    return wanted in ("*", value)


def _compared(operator: str, value: Any, wanted: Any) -> bool:
    compare: Mapping[str, Callable[[], bool]] = {
        "eq": lambda: value == wanted,
        "ne": lambda: value != wanted,
        "in": lambda: value in wanted,
        "nin": lambda: value not in wanted,
        "gt": lambda: _ordered(value, wanted) and value > wanted,
        "gte": lambda: _ordered(value, wanted) and value >= wanted,
        "lt": lambda: _ordered(value, wanted) and value < wanted,
        "lte": lambda: _ordered(value, wanted) and value <= wanted,
        "contains": lambda: str(wanted) in str(value or ""),
        "icontains": lambda: str(wanted).lower() in str(value or "").lower(),
    }
    if operator not in compare:
        raise ValueError(f"unknown operator {operator!r:.80}; use one of {', '.join(compare)}")
    return compare[operator]()


def _ordered(value: Any, wanted: Any) -> bool:
    """Return whether two values can be ordered: two numbers, or two strings."""
    numbers = (int, float)
    return (isinstance(value, numbers) and isinstance(wanted, numbers)) or (
        isinstance(value, str) and isinstance(wanted, str)
    )


def _register() -> None:
    """Register ``provider: keepstone`` in mem0's configuration and factory."""
    # mem0 imports a provider's configuration from a module in mem0's own package. Only an entry in
    # ``sys.modules`` can add such a module.
    module = ModuleType(f"{_configs}.{_PROVIDER}")
    vars(module)["KeepstoneConfig"] = KeepstoneConfig
    sys.modules[module.__name__] = module
    # The mapping is a private attribute of a pydantic model; all instances share its default.
    configs = VectorStoreConfig.__private_attributes__["_provider_configs"].default
    configs[_PROVIDER] = "KeepstoneConfig"
    VectorStoreFactory.provider_to_class[_PROVIDER] = f"{__name__}.KeepstoneVectorStore"


_register()
