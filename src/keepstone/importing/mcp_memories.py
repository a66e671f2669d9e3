"""The MCP reference memory server's graph, and the database of ``mcp-memory-service``."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import islice
from typing import Any

from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.json_text import objects
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

_GRAPH = ("entity", "relation")
_LINES = (".json", ".jsonl")
_MEMORIES = "memories"
_VECTORS = "memory_embeddings"


def is_memory_graph(origin: Origin) -> bool:
    """Return whether a file begins with entities or relations of the reference server."""
    if origin.is_folder or origin.is_zip or not origin.path.name.lower().endswith(_LINES):
        return False
    with origin.open(origin.path.name) as file:
        first = [line for _, line in islice(objects(file), 3)]
    return bool(first) and all(
        # The file has no signature, so the first three lines must all fit.
        line is not None and line.get("type") in _GRAPH and {"name", "from"} & line.keys()
        for line in first
    )


def read_memory_graph(origin: Origin, _: Options) -> Items:
    """Yield one entry for each entity, with its observations as text and its relations as links."""
    for name in origin.names(*_LINES):
        # A file is read twice, as relations may come before or after their source entity.
        links = _relations(origin, name)
        known: set[str] = set()
        with origin.open(name) as file:
            for number, line in objects(file):
                place = f"{name}:{number}"
                if line is None:
                    yield Unread(place, "the line is not a JSON object")
                elif line.get("type") == "entity":
                    item = _entity(line, links)
                    if item is None:
                        yield Unread(place, "the entity has no name")
                        continue
                    known.add(item["id"])
                    yield Item(origin.name, item, place)
                elif line.get("type") != "relation":
                    yield Unread(place, f"neither entity nor relation: {line.get('type')!r:.80}")
        for source in sorted(links.keys() - known):
            # A link is stored in its source's entry.
            yield Unread(name, f"relations from {source!r:.80}, which is not an entity")


def _relations(origin: Origin, name: str) -> dict[str, list[Record]]:
    links: dict[str, list[Record]] = defaultdict(list)
    with origin.open(name) as file:
        for _, line in objects(file):
            if line is not None and line.get("type") == "relation":
                source, target = named(line.get("from")), named(line.get("to"))
                if source and target:
                    links[source].append({"to": target, "rel": str(line.get("relationType") or "related")})
    return links


def _entity(line: Record, links: dict[str, list[Record]]) -> Record | None:
    name = named(line.get("name"))
    if name is None:
        return None
    given = line.get("observations") or []
    observations = [str(observation) for observation in (given if isinstance(given, list) else [given])]
    data = {"name": name, "entityType": line.get("entityType"), "observations": observations}
    item: Record = {"id": name, "type": "entity", "text": "\n".join(observations) or name, "data": data}
    return item | ({"links": links[name]} if name in links else {})


def is_memory_service(origin: Origin) -> bool:
    """Return whether a file is a database of ``mcp-memory-service``."""
    if origin.is_folder or not is_sqlite(origin.path):
        return False
    with foreign_database(origin.path) as database:
        return _MEMORIES in database.tables and "content_hash" in database.columns(_MEMORIES)


def read_memory_service(origin: Origin, _: Options) -> Items:
    """Yield the memories that are not deleted, with their tags, times, metadata and vectors."""
    with foreign_database(origin.path) as database:
        vectors = _Vectors(database)
        for row in database.records(_MEMORIES, "id"):
            place = f"{database.name}: {_MEMORIES} {row['id']}"
            # mcp-memory-service keeps tombstones of deleted memories for its synchronization between devices.
            if row.get("deleted_at") is not None:
                continue
            if not isinstance(row["content"], str):
                yield Unread(place, "its content is not text")
                continue
            line: Record = {
                "id": named(row["content_hash"]),
                "ts": time_of(row.get("created_at")) or time_of(row.get("created_at_iso")),
                "type": named(row.get("memory_type")) or "note",
                "text": row["content"],
            }
            if metadata := _metadata(row.get("metadata")):
                line["data"] = metadata
            if tags := [tag.strip() for tag in str(row.get("tags") or "").split(",") if tag.strip()]:
                line["tags"] = tags
            if (vector := vectors.get(row["id"])) is not None:
                line["embedding"] = vector
            yield Item("mcp-memory-service", line, place)


def _metadata(value: Any) -> Record:
    try:
        found = json.loads(value) if isinstance(value, str) else None
    except (ValueError, RecursionError):
        return {"metadata": value}
    return found if isinstance(found, dict) else {}


class _Vectors:
    """The vectors of sqlite-vec, read from its shadow tables: chunks of consecutive float32 vectors."""

    def __init__(self, database: ForeignDatabase) -> None:
        self._database = database
        # The virtual table over them is not read, as that would run the code of an extension.
        self._chunks = f"{_VECTORS}_vector_chunks00"
        self._is_there = {self._chunks, f"{_VECTORS}_rowids", f"{_VECTORS}_chunks"} <= database.tables
        self._chunk: tuple[int, Any] = (-1, None)

    def get(self, row: Any) -> Any:
        """Return the vector of a memory, None if there is none."""
        if not self._is_there:
            return None
        place = f'SELECT chunk_id, chunk_offset FROM "{_VECTORS}_rowids" WHERE rowid = ?'  # noqa: S608
        for chunk, offset in self._database.rows(place, (row,)):
            if chunk != self._chunk[0]:
                # Rows are read chunk by chunk, so the last chunk is cached; it has 1,024 vectors by default.
                self._chunk = chunk, self._load(chunk)
            # The offset is untrusted, and may be outside of the chunk.
            rows = self._chunk[1]
            return rows[offset] if rows is not None and 0 <= offset < len(rows) else None
        return None

    def _load(self, chunk: int) -> Any:
        """Return the vectors of a chunk as rows, None if they are not float32."""
        import numpy as np

        statement = (
            f'SELECT c.size, v.vectors FROM "{_VECTORS}_chunks" c JOIN "{self._chunks}" v '  # noqa: S608
            "ON v.rowid = c.chunk_id WHERE c.chunk_id = ?"
        )
        for size, raw in self._database.rows(statement, (chunk,)):
            if size and len(raw) % (4 * size) == 0:
                return np.frombuffer(raw, "<f4").reshape(size, -1)
        return None
