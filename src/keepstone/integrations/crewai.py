"""CrewAI: a storage backend of its unified memory that stores records in one session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Self, TypeVar

from keepstone.errors import EntryNotFoundError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import (
    in_thread,
    opened_agent,
    opened_session,
    plain_errors,
    write_in_thread,
)
from keepstone.model import Record
from keepstone.services.memory_repository import Target
from keepstone.vector import Vector, decode, encode, unit

try:
    from crewai.memory.storage.backend import EmbeddingDimensionMismatchError
    from crewai.memory.types import MemoryRecord, ScopeInfo
except ImportError as error:  # No extra exists: CrewAI's dependencies conflict with other extras.
    raise ImportError(f"the adapter needs CrewAI: pip install crewai; {error}", name=error.name) from error

T = TypeVar("T")

_TYPE = "memory"
_SPACE = "crewai"
"""The prefix of the vector spaces for CrewAI's embedder: its vectors are compared only with each other."""
_MOST = 10_000
"""Maximum number of ids in one deletion."""


class KeepstoneStorage:
    """Storage of CrewAI's memory: ``Memory(storage=KeepstoneStorage("memory"))``.

    Implements ``StorageBackend``. Each record is an entry with its content as the text, so that every other
    interface recalls it by its words. Searches compare CrewAI's own vectors in an exact scan, and return
    cosines. Scopes are compared by whole parts: ``/crew`` does not contain ``/crews``. Deleted records are
    hidden; ``Agent.purge`` removes their bytes.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        session: The session that holds the records.
    """

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT, session: str = "crewai") -> None:
        """Open the home. Nothing is written before the first record."""
        self._agent = opened_agent(home, agent)
        self._session = opened_session(self._agent, session)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return the storage itself, because copies of a crew share its memory."""
        return self

    @plain_errors()
    def save(self, records: list[MemoryRecord]) -> None:
        """Add or replace records: all of them, or none.

        Raises:
            EmbeddingDimensionMismatchError: A vector's dimension differs from that of the stored vectors.
        """
        vectors = [_vector(record.embedding) for record in records]
        dims = [*self._dim(), *(len(vector) for vector in vectors if vector is not None)]
        # Check before anything is written: a session with vectors of two dimensions could not be searched.
        for dim in dims:
            if dim != dims[0]:
                raise EmbeddingDimensionMismatchError(dims[0], dim)
        self._session.put_many(_item(record, vector) for record, vector in zip(records, vectors, strict=True))

    def update(self, record: MemoryRecord) -> None:
        """Replace the record with the same id."""
        self.save([record])

    @plain_errors()
    def touch_records(self, record_ids: list[str]) -> None:
        """Set the last access time of records to now."""
        # CrewAI's own times are in UTC without a time zone. Python cannot compare them with times that have
        # one.
        now = datetime.now(UTC).replace(tzinfo=None).isoformat()
        wanted = set(record_ids)
        touched = [
            line | {"data": line["data"] | {"last_accessed": now}}
            for line in self._lines()
            if line["id"] in wanted
        ]
        self._session.put_many({key: line[key] for key in ("id", "type", "text", "data")} for line in touched)

    @plain_errors()
    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records most similar to a vector, best first, with their cosines from 0 to 1.

        Raises:
            EmbeddingDimensionMismatchError: The vector's dimension differs from that of the stored vectors.
        """
        wanted = _vector(query_embedding)
        scored = []
        for line in self._matching(scope_prefix, categories, metadata_filter):
            vector = _vector_of(line)
            if vector is not None and wanted is not None and len(vector) != len(wanted):
                raise EmbeddingDimensionMismatchError(len(vector), len(wanted))
            cosine = 0.0 if vector is None or wanted is None else float(vector @ wanted)
            score = min(max(cosine, 0.0), 1.0)
            if score >= min_score:
                scored.append((score, line))
        # Sort by the score alone: lines are mappings, which cannot be compared. Lines of equal scores keep
        # their order.
        scored.sort(key=lambda pair: -pair[0])
        return [(_record(line), score) for score, line in scored[:limit]]

    @plain_errors()
    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Delete the records that meet all given criteria; without criteria, all. Return their number."""
        before = None if older_than is None else _aware(older_than)
        wanted = None if record_ids is None else set(record_ids)
        ids = [
            line["id"]
            for line in self._matching(scope_prefix, categories, metadata_filter)
            if (wanted is None or line["id"] in wanted) and (before is None or _created(line) < before)
        ]
        return sum(
            self._agent.delete_where(
                ids=ids[at : at + _MOST],
                types=[_TYPE],
                # Check again, as an id may have been given to another entry after the listing.
                where={"scope": {"exists": True}},
                include_superseded=True,
            )
            for at in range(0, len(ids), _MOST)
        )

    @plain_errors()
    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record; None if it is missing."""
        try:
            line = self._agent.get(record_id, self._session.id).as_dict()
        except EntryNotFoundError:
            return None
        return _record(line) if _is_record(line) else None

    @plain_errors()
    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """Return the records of a scope, newest first."""
        if limit <= 0 or offset < 0:
            return []
        lines = sorted(self._matching(scope_prefix), key=_created, reverse=True)
        return [_record(line) for line in lines[offset : offset + limit]]

    @plain_errors()
    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return the number of records of a scope, their categories and times, and the child scopes."""
        lines = [*self._matching(scope)]
        times = [datetime.fromisoformat(line["data"]["created_at"]) for line in lines]
        return ScopeInfo(
            path=_path(scope) or "/",
            record_count=len(lines),
            categories=sorted({name for line in lines for name in line["data"]["categories"]}),
            oldest_record=min(times, key=_aware, default=None),
            newest_record=max(times, key=_aware, default=None),
            child_scopes=_children(scope, lines),
        )

    @plain_errors()
    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the sorted scopes directly below a scope."""
        return _children(parent, self._matching(parent))

    @plain_errors()
    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return the number of a scope's records in each category."""
        names = (name for line in self._matching(scope_prefix) for name in line["data"]["categories"])
        return dict(Counter(names))

    @plain_errors()
    def count(self, scope_prefix: str | None = None) -> int:
        """Return the number of records in a scope and the scopes below it."""
        return sum(1 for _ in self._matching(scope_prefix))

    @plain_errors()
    def reset(self, scope_prefix: str | None = None) -> None:
        """Remove every byte of the records of a scope, or of all records."""
        self._session.purge_many([line["id"] for line in self._matching(scope_prefix)])

    async def asave(self, records: list[MemoryRecord]) -> None:
        """Add or replace records; see ``save``."""
        await write_in_thread(self.save, records)

    async def asearch(
        self, query_embedding: list[float], *args: Any, **keys: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the records most similar to a vector; see ``search``."""
        return await in_thread(self.search, query_embedding, *args, **keys)

    async def adelete(self, *args: Any, **keys: Any) -> int:
        """Delete records; see ``delete``."""
        return await write_in_thread(self.delete, *args, **keys)

    def _lines(self) -> Iterator[Record]:
        """Return the log lines of the records, which must not be changed."""
        return filter(_is_record, self._session.records())

    def _dim(self) -> list[int]:
        """Return the dimension of the stored vectors as a list; empty if no vector is stored."""
        return next(([len(vector)] for line in self._lines() if (vector := _vector_of(line)) is not None), [])

    def _matching(
        self,
        scope: str | None = None,
        categories: Sequence[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Iterator[Record]:
        path = _path(scope)
        for line in self._lines():
            data = line["data"]
            if path and not f"{_path(data['scope'])}/".startswith(f"{path}/"):
                continue
            if categories and not set(categories) & set(data["categories"]):
                continue
            if all(
                key in data["metadata"] and data["metadata"][key] == value
                for key, value in (metadata or {}).items()
            ):
                yield line


def _is_record(line: Record) -> bool:
    data = line.get("data")
    return line["type"] == _TYPE and isinstance(data, dict) and "scope" in data and "text" in line


def _path(scope: str | None) -> str:
    """Return a scope with a leading slash and without a final slash; empty for the root."""
    parts = (scope or "").strip("/")
    return f"/{parts}" if parts else ""


def _children(scope: str, lines: Any) -> list[str]:
    prefix = f"{_path(scope)}/"
    paths = {_path(line["data"]["scope"]) for line in lines}
    below = {path.removeprefix(prefix).split("/")[0] for path in paths if path.startswith(prefix)}
    return sorted(prefix + name for name in below if name)


def _vector(embedding: Sequence[float] | None) -> Vector | None:
    """Return a vector of unit length; None for no vector, and for zeros, which mean no vector in CrewAI."""
    return unit(embedding) if embedding is not None and any(embedding) else None


def _vector_of(line: Record) -> Vector | None:
    found = decode(line.get("embedding"))
    return None if found is None else found[1]


def _item(record: MemoryRecord, vector: Vector | None) -> Record:
    data = record.model_dump(mode="json", exclude={"id", "content"})
    embedding = {} if vector is None else {"embedding": encode(f"{_SPACE}:{len(vector)}", vector)}
    return {
        "id": record.id,
        "ts": _aware(record.created_at),
        "type": _TYPE,
        "text": record.content,
        "data": data,
        **embedding,
    }


def _record(line: Record) -> MemoryRecord:
    vector = _vector_of(line)
    return MemoryRecord.model_validate(
        line["data"]
        | {
            "id": line["id"],
            "content": line["text"],
            "embedding": None if vector is None else vector.tolist(),
        }
    )


def _created(line: Record) -> datetime:
    return _aware(datetime.fromisoformat(line["data"]["created_at"]))


def _aware(moment: datetime) -> datetime:
    """Return a time with a time zone; CrewAI's times without a time zone are in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
