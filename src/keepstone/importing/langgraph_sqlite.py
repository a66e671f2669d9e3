"""LangGraph's SQLite files: items of its store, and messages of its checkpoints."""

from __future__ import annotations

import json

from keepstone.importing.item import Item, Items, Options, Unread, time_of
from keepstone.importing.langgraph_names import TYPE, id_of, kept_vectors, kept_with, session_id
from keepstone.importing.langgraph_threads import has_threads, read_threads
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

_STORE, _VECTORS = "store", "store_vectors"


def is_langgraph(origin: Origin) -> bool:
    """Return whether a file is a database of LangGraph's store or checkpoints."""
    if origin.is_folder or not is_sqlite(origin.path):
        return False
    with foreign_database(origin.path) as database:
        return _has_store(database) or has_threads(database)


def _has_store(database: ForeignDatabase) -> bool:
    return _STORE in database.tables and {"prefix", "key", "value"} <= set(database.columns(_STORE))


def read_langgraph(origin: Origin, _: Options) -> Items:
    """Yield the store's items in the form of keepstone's LangGraph adapter, and each thread's messages."""
    with foreign_database(origin.path) as database:
        if _has_store(database):
            yield from _items(database)
        if has_threads(database):
            yield from read_threads(database)


def _items(database: ForeignDatabase) -> Items:
    has_vectors = _VECTORS in database.tables
    for row in database.records(_STORE, "prefix, created_at, key"):
        prefix, key = str(row["prefix"]), str(row["key"])
        place = f"{database.name}: {_STORE} {prefix}/{key}"
        try:
            value = json.loads(row["value"])
        except (ValueError, TypeError, RecursionError) as error:
            yield Unread(place, f"its value is not JSON: {error}")
            continue
        # LangGraph joins labels with dots, and its ``put`` refuses labels with a dot, so splitting is exact.
        namespace = tuple(prefix.split(".")) if prefix else ()
        # LangGraph declares values as mappings, but the SQLite column accepts any JSON.
        data = value if isinstance(value, dict) else {"value": value}
        line: Record = {"id": id_of(key), "ts": time_of(row.get("created_at")), "type": TYPE, "data": data}
        line |= kept_with(namespace) | _times(row)
        if not data:
            line["text"] = "{}"  # An entry needs a text or a non-empty payload.
        if has_vectors and (vectors := _vectors(database, prefix, key)):
            line["vectors"] = vectors
        yield Item(session_id(namespace), line, place, owner={"namespace": namespace})


def _times(row: Record) -> Record:
    """Return the time of an item's last update, if any, and its time to live."""
    made, put = time_of(row.get("created_at")), time_of(row.get("updated_at"))
    expires, minutes = time_of(row.get("expires_at")), row.get("ttl_minutes")
    found: Record = {}
    if expires is not None:
        found["expires"] = expires
        if isinstance(minutes, int | float) and minutes > 0:
            found |= {"ttl": minutes, "updated_at": put or made}
    if put is not None and put != made:
        found["updated_at"] = put
    return found


def _vectors(database: ForeignDatabase, prefix: str, key: str) -> Record:
    """Return the vectors of an item's fields; empty if there are none or their dimensions differ."""
    statement = f"SELECT embedding FROM {_VECTORS} WHERE prefix = ? AND key = ? ORDER BY field_name"  # noqa: S608
    found = [blob for (blob,) in database.rows(statement, (prefix, key)) if isinstance(blob, bytes)]
    # Vectors of different dimensions are from different models, and the database does not store which.
    sizes = {len(blob) for blob in found}
    if len(sizes) != 1 or sizes == {0} or len(found[0]) % 4:
        return {}
    return kept_vectors(len(found[0]) // 4, b"".join(found))
