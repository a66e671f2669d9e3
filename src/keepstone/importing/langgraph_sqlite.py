"""LangGraph's SQLite files: items of its store, and messages of its checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from keepstone.importing.inert import Object, read_msgpack
from keepstone.importing.item import Item, Items, Options, Unread, message, named, time_of
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

_STORE, _VECTORS, _CHECKPOINTS = "store", "store_vectors", "checkpoints"
_MADE_OF_KEYS = (2, 4, 5)
"""Extensions of an object with its keys: constructor with keywords, pydantic 1 and pydantic 2."""
_NO_CONTENT = frozenset({"type", "id", "additional_kwargs", "response_metadata", "example"})


def is_langgraph(origin: Origin) -> bool:
    """Tell whether a file is a database of LangGraph's store or checkpoints."""
    if origin.is_folder or not is_sqlite(origin.path):
        return False
    with foreign_database(origin.path) as database:
        return _has_store(database) or _has_checkpoints(database)


def _has_store(database: ForeignDatabase) -> bool:
    return _STORE in database.tables and {"prefix", "key", "value"} <= set(database.columns(_STORE))


def _has_checkpoints(database: ForeignDatabase) -> bool:
    return _CHECKPOINTS in database.tables and "thread_id" in database.columns(_CHECKPOINTS)


def read_langgraph(origin: Origin, _: Options) -> Items:
    """Yield the items of the store, a session for each namespace, and the messages of each thread."""
    with foreign_database(origin.path) as database:
        if _has_store(database):
            yield from _items(database)
        if _has_checkpoints(database):
            yield from _threads(database)


def _items(database: ForeignDatabase) -> Items:
    has_vectors = _VECTORS in database.tables
    for row in database.records(_STORE, "prefix, created_at, key"):
        place = f"{database.name}: {_STORE} {row['prefix']}/{row['key']}"
        try:
            value = json.loads(row["value"])
        except (ValueError, TypeError, RecursionError) as error:
            yield Unread(place, f"its value is not JSON: {error}")
            continue
        data = value if isinstance(value, dict) else {"value": value}
        line: Record = {
            "id": str(row["key"]),
            "ts": time_of(row.get("created_at")),
            "type": "item",
            "data": data or {"value": {}},
        }
        if (expires := time_of(row.get("expires_at"))) is not None:
            line["expires"] = expires
        if has_vectors and (vector := _vector(database, row["prefix"], row["key"])) is not None:
            line["embedding"] = vector
        yield Item(str(row["prefix"]) or "store", line, place)


def _vector(database: ForeignDatabase, prefix: str, key: str) -> Any:
    """Return the vector of an item; None if it has none, or several, of different fields."""
    statement = f"SELECT embedding FROM {_VECTORS} WHERE prefix = ? AND key = ? LIMIT 2"  # noqa: S608
    found = [blob for (blob,) in database.rows(statement, (prefix, key))]
    if len(found) != 1 or not isinstance(found[0], bytes) or not found[0] or len(found[0]) % 4:
        return None
    import numpy as np

    return np.frombuffer(found[0], "<f4")


def _threads(database: ForeignDatabase) -> Items:
    threads = database.rows(f"SELECT DISTINCT thread_id, checkpoint_ns FROM {_CHECKPOINTS} ORDER BY 1, 2")  # noqa: S608
    for thread, namespace in threads:
        session = f"{thread}/{namespace}" if namespace else str(thread)
        first_seen: dict[str, str | None] = {}
        last: list[Item | Unread] = []
        for found in _checkpoints(database, thread, namespace, session):
            last = found
            for item in found:
                if isinstance(item, Item):
                    # A message is as old as the first checkpoint that has it.
                    moment = first_seen.setdefault(item.line["id"], item.line["ts"])
                    item.line["ts"] = moment
        yield from last


def _checkpoints(
    database: ForeignDatabase, thread: str, namespace: str, session: str
) -> Iterator[list[Item | Unread]]:
    """Yield the messages of each checkpoint of a thread, the oldest first."""
    statement = (
        f"SELECT checkpoint_id, type, checkpoint FROM {_CHECKPOINTS} "  # noqa: S608
        "WHERE thread_id = ? AND checkpoint_ns = ? ORDER BY checkpoint_id"
    )
    for number, kind, blob in database.rows(statement, (thread, namespace)):
        place = f"{database.name}: checkpoint {number} of thread {thread}"
        try:
            state = _decoded(kind, blob)
        except (ValueError, TypeError, RecursionError) as error:
            yield [Unread(place, str(error))]
            continue
        values = state.get("channel_values") if isinstance(state, dict) else None
        messages = values.get("messages") if isinstance(values, dict) else None
        moment = time_of(state.get("ts")) if isinstance(state, dict) else None
        yield [
            _message(one, f"{number}-{place_in}", moment, session, f"{place}, message {place_in}")
            for place_in, one in enumerate(messages if isinstance(messages, list) else [], 1)
        ]


def _decoded(kind: Any, blob: Any) -> Any:
    if kind == "json":
        return json.loads(blob)
    if kind == "msgpack":
        return read_msgpack(blob)
    raise ValueError(f"it is stored as {kind!r:.40}, which is not read, as it can run code")


def _message(one: Any, name: str, moment: str | None, session: str, place: str) -> Item | Unread:
    keys = _keys_of(one)
    if keys is None:
        return Unread(place, "it is an object of an unknown class, which is not made")
    role = keys.get("role") or keys.get("type")
    more = {key: value for key, value in keys.items() if key not in _NO_CONTENT and _is_json(value) and value}
    content = more.pop("content", "")
    more.pop("role", None)
    line = {"id": named(keys.get("id")) or name, "ts": moment} | message(role, content, **more)
    return Item(session, line, place)


def _keys_of(one: Any) -> Record | None:
    """Return the keys of a message, which an extension says beside its module and class."""
    if isinstance(one, Object) and one.name in _MADE_OF_KEYS:
        said = read_msgpack(one.args)
        one = said[2] if isinstance(said, list) and len(said) > 2 else None  # noqa: PLR2004  module, class, keys.
    if not isinstance(one, dict):
        return None
    if one.get("type") == "constructor" and isinstance(one.get("kwargs"), dict):  # LangChain's JSON form.
        return dict(one["kwargs"])
    return one


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float)
