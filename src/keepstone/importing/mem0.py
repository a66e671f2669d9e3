"""mem0: its history database, and its memories in a Qdrant or Chroma folder."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from keepstone.importing.chroma import chroma_collections, chroma_records, database_of
from keepstone.importing.inert import Object, read_pickle
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

_HISTORY = "history"
_ENTITIES = "_entities"
_ENTITY_KEYS = frozenset({"entity_type", "linked_memory_ids"})
_WHOSE = ("run_id", "agent_id", "user_id")
"""Keys that name the scope of a memory; the first key that a memory has names the session."""


def is_mem0(origin: Origin) -> bool:
    """Return whether the source has mem0's history database, or a vector store with mem0's memories."""
    if any(True for _ in _databases(origin, _is_history)) or any(
        True for _ in _databases(origin, _is_qdrant)
    ):
        return True
    if database_of(origin) is None:
        return False
    first = next((record for _, record in chroma_records(origin) if not isinstance(record, Unread)), None)
    return first is not None and {"data", "hash"} <= first.metadata.keys()


def _databases(origin: Origin, is_wanted: Any) -> Iterator[Path]:
    # SQLite cannot open a file inside of an archive.
    if origin.is_zip:
        return
    paths = [origin.path / name for name in origin.names()] if origin.is_folder else [origin.path]
    for path in paths:
        if is_sqlite(path):
            with foreign_database(path) as database:
                if is_wanted(database):
                    yield path


def _is_history(database: ForeignDatabase) -> bool:
    return _HISTORY in database.tables and {"memory_id", "new_memory", "event"} <= set(
        database.columns(_HISTORY)
    )


def _is_qdrant(database: ForeignDatabase) -> bool:
    return "points" in database.tables and database.columns("points") == ["id", "point"]


def read_mem0(origin: Origin, _: Options) -> Items:
    """Yield the memories of the vector store, then memories that are only in the history."""
    known: set[str] = set()
    for place, name, payload, vector in _stored(origin):
        if payload is None:
            yield Unread(place, name)
            continue
        # The vector store has the current text of a memory; the history only adds earlier texts.
        known.add(name)
        yield Item(_session_of(payload), _line(name, payload, vector), place)
    for path in _databases(origin, _is_history):
        with foreign_database(path) as database:
            yield from _history(database, known)
    yield from origin.refused


def _stored(origin: Origin) -> Iterator[tuple[str, str, Record | None, Any]]:
    """Yield the place, id, payload and vector of each memory.

    For an unreadable one, yield the reason as id and no payload.
    """
    paths = list(_databases(origin, _is_qdrant))
    names = frozenset(path.parent.name for path in paths)
    for path in paths:
        collection = path.parent.name
        with foreign_database(path) as database:
            for name, point in database.rows("SELECT id, point FROM points ORDER BY rowid"):
                place = f"{collection}/{path.name}: point {_plain_id(name)}"
                try:
                    found = _point(point)
                except (ValueError, TypeError) as error:
                    yield place, str(error), None, None
                    continue
                if not _is_entity(collection, names, found[1]):
                    yield place, *found
    if database_of(origin) is not None:
        names = chroma_collections(origin)
        for collection, record in chroma_records(origin):
            if isinstance(record, Unread):
                yield record.place, record.reason, None, None
            elif not _is_entity(collection, names, record.metadata):
                yield record.place, record.id, record.metadata, record.vector


def _is_entity(collection: str, collections: Collection[str], payload: Record) -> bool:
    """Return whether a point is an entity that links memories.

    Since mem0 2.2 entities have a separate collection.
    """
    base = collection.removesuffix(_ENTITIES)
    return (base != collection and base in collections) or payload.keys() >= _ENTITY_KEYS


def _point(raw: bytes) -> tuple[str, Record, Any]:
    """Return the id, payload and vector of a point that Qdrant pickled; the pickle is read as data only."""
    found = read_pickle(raw)
    state = found.state if isinstance(found, Object) else None
    keys = state.get("__dict__") if isinstance(state, dict) else None
    if not isinstance(keys, dict):
        raise ValueError("it is not a point of a known form")  # noqa: TRY004  A fault of the file.
    name, payload, vector = named(keys.get("id")), keys.get("payload"), keys.get("vector")
    if name is None or not isinstance(payload, dict):
        raise ValueError("the point has no id, or no payload")
    if isinstance(vector, dict):
        # If a point has several named vectors, the one named "" is the memory's; the others are sparse or
        # from other models.
        dense = [part for part in vector.values() if isinstance(part, list)]
        # With several dense vectors and no empty name it is unclear which one belongs to the memory.
        vector = vector.get("") or (dense[0] if len(dense) == 1 else None)
    return name, payload, vector if isinstance(vector, list) and vector else None


def _plain_id(name: object) -> str:
    """Return the readable id of a point, which Qdrant stores as a pickle in base64."""
    try:
        return str(read_pickle(base64.b64decode(str(name), validate=True)))
    except (ValueError, binascii.Error):
        return str(name)


def _session_of(payload: Record) -> str:
    return next((found for key in _WHOSE if (found := named(payload.get(key)))), "mem0")


def _line(name: str, payload: Record, vector: Any) -> Record:
    data = {key: value for key, value in payload.items() if key not in ("data", "hash")}
    line: Record = {
        "id": name,
        "ts": time_of(payload.get("created_at")),
        "type": "memory",
        "text": str(payload.get("data") or payload.get("memory") or ""),
    }
    line |= {"data": data} if data else {}
    return line if vector is None else line | {"embedding": vector}


def _history(database: ForeignDatabase, known: set[str]) -> Items:
    """Replay the history's events, and yield the memories that are not known yet."""
    statement = "SELECT DISTINCT memory_id FROM history WHERE memory_id IS NOT NULL"
    events = (
        "SELECT event, new_memory, created_at, is_deleted, {} FROM history WHERE memory_id = ? "
        "ORDER BY COALESCE(updated_at, created_at), rowid"
    )
    columns = database.columns(_HISTORY)
    events = events.format(", ".join(name if name in columns else "NULL" for name in ("role", "actor_id")))
    for (memory,) in list(database.rows(statement)):
        text = created = who = None
        is_deleted = False
        # The last text counts; a deletion counts unless a later event adds the memory again.
        for event, new, at, deleted, role, actor in database.rows(events, (memory,)):
            created = created or at
            is_deleted = event == "DELETE" or bool(deleted)
            text = new if isinstance(new, str) and new else text
            who = {key: value for key, value in (("role", role), ("actor_id", actor)) if value} or who
        name = str(memory)
        if name in known or is_deleted:
            continue
        place = f"{database.name}: memory {name}"
        if not text:
            yield Unread(place, "its history has no text")
            continue
        line: Record = {"id": name, "ts": time_of(created), "type": "memory", "text": text}
        yield Item("mem0", line | ({"data": who} if who else {}), place)
