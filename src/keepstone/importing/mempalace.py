"""MemPalace: the drawers of a palace, in Chroma or SQLite, and the facts of its knowledge graph."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keepstone.importing.chroma import FILE, chroma_records, database_of
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import foreign_database, is_sqlite
from keepstone.model import Record

_DRAWERS = "mempalace_drawers"
_EXACT = "sqlite_exact.sqlite3"
_GRAPH = "knowledge_graph.sqlite3"
_DOCUMENT = "chroma:document"


def is_mempalace(origin: Origin) -> bool:
    """Return whether a folder is a palace or contains one."""
    if not origin.is_folder:
        return False
    if _files(origin, _EXACT) or _files(origin, _GRAPH):
        return True
    path = database_of(origin)
    if path is None:
        return False
    with foreign_database(path) as database:
        # ``rows`` is a generator: without the table the query is not run.
        found = database.rows("SELECT 1 FROM collections WHERE name LIKE 'mempalace%' LIMIT 1")
        return "collections" in database.tables and any(True for _ in found)


def _files(origin: Origin, name: str) -> list[Path]:
    return [path for path in origin.near(name) if is_sqlite(path)]


def read_mempalace(origin: Origin, _: Options) -> Items:
    """Yield the drawers, with one session for each wing and room, and the facts."""
    if _files(origin, FILE):
        for collection, record in chroma_records(origin):
            if isinstance(record, Unread):
                yield record
            # Databases and tenants of Chroma may come before the name of the collection.
            elif collection.rpartition("/")[2] == _DRAWERS:  # Others derive from the drawers.
                text = record.metadata.pop(_DOCUMENT, None)
                yield _drawer(record.id, text, record.metadata, record.vector, record.created, record.place)
    for path in _files(origin, _EXACT):
        yield from _exact(path)
    for path in _files(origin, _GRAPH):
        yield from _facts(path)


def _drawer(name: str, text: Any, metadata: Record, vector: Any, created: Any, place: str) -> Item:
    wing, room = named(metadata.get("wing")) or "palace", named(metadata.get("room"))
    moment = time_of(metadata.get("filed_at")) or time_of(created)
    line: Record = {"id": name, "ts": moment, "type": "drawer", "text": str(text or "")}
    line |= {"data": metadata} if metadata else {}
    line |= {} if vector is None else {"embedding": vector}
    return Item(f"{wing}/{room}" if room else wing, line, place)


def _exact(path: Path) -> Items:
    import numpy as np

    statement = (
        "SELECT d.id, d.document, d.metadata_json, d.embedding, d.created_at FROM documents d "
        "JOIN collections c ON c.id = d.collection_id WHERE c.name = ? ORDER BY d.rowid"
    )
    with foreign_database(path) as database:
        for name, text, metadata, vector, created in database.rows(statement, (_DRAWERS,)):
            place = f"{database.name}: {name}"
            try:
                found = json.loads(metadata or "{}")
            except (ValueError, RecursionError) as error:
                yield Unread(place, f"its metadata is not JSON: {error}")
                continue
            # A vector whose length is not a multiple of 4 bytes is damaged; its drawer is imported without
            # it.
            floats = np.frombuffer(vector, "<f4") if vector and len(vector) % 4 == 0 else None
            yield _drawer(str(name), text, found if isinstance(found, dict) else {}, floats, created, place)


def _facts(path: Path) -> Items:
    with foreign_database(path) as database:
        if "triples" not in database.tables:
            return
        # Triples refer to entities by id; the id of a missing entity is used as its name.
        names = {row["id"]: row["name"] for row in database.records("entities")}
        for row in database.records("triples"):
            parts = [
                names.get(row["subject"], row["subject"]),
                row["predicate"],
                names.get(row["object"], row["object"]),
            ]
            data = {"subject": parts[0], "predicate": parts[1], "object": parts[2]}
            line: Record = {
                "id": str(row["id"]),
                "ts": time_of(row.get("extracted_at")),
                "type": "fact",
                "text": " ".join(str(part).replace("_", " ") for part in parts),
                "data": data
                | ({"confidence": row["confidence"]} if row.get("confidence") is not None else {}),
            }
            for key in ("valid_from", "valid_to"):
                if (moment := time_of(row.get(key))) is not None:
                    line[key] = moment
            yield Item("knowledge-graph", line, f"{database.name}: {row['id']}")
