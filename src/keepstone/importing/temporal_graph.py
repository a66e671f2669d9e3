"""Graphiti and Zep: facts with validity times, entities, episodes and messages, as JSON.

Facts are JSON dumps of Graphiti's ``EntityEdge`` and Zep's ``EntityEdge`` and ``Edge``; entities and episodes
are dumps of their classes. Lines of ``apoc.export.json`` from a Neo4j database are also read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keepstone.importing.item import Item, Items, Options, Unread, message, named, time_of
from keepstone.importing.json_text import documents, first_records
from keepstone.importing.origin import Origin
from keepstone.model import Record

_FACT = (
    "valid_at",
    "invalid_at",
    "expired_at",
    "episodes",
    "episode_uuids",
    "source_node_uuid",
    "source_uuid",
)
_APOC = ("node", "relationship")
_OF_ZEP = ("graph_uuid", "user_uuid", "thread_uuid", "thread_id", "processed", "episode_uuids", "uuid_")
_VECTORS = ("fact_embedding", "name_embedding")
_KNOWN = {"uuid", "uuid_", "fact", "summary", "content", "created_at", "valid_at", "invalid_at", "expired_at"}
_DEEPEST = 10
"""Maximum nesting of lists that are searched."""


def is_graphiti(origin: Origin) -> bool:
    """Return whether the source has facts, entities or episodes of Graphiti."""
    return any("group_id" in record and _kind(record) != "" for _, record in first_records(origin, _records))


def is_zep(origin: Origin) -> bool:
    """Return whether the source has facts, entities, episodes or messages in the form of Zep's clients."""
    return any(
        "group_id" not in record
        and _kind(record) != ""
        and (_kind(record) == "fact" or any(key in record for key in _OF_ZEP))
        for _, record in first_records(origin, _records)
    )


def read_graphiti(origin: Origin, _: Options) -> Items:
    """Yield facts, entities and episodes, with one session for each group."""
    yield from _items(origin)


def read_zep(origin: Origin, _: Options) -> Items:
    """Yield facts, entities, episodes and messages, with one session for each thread, user or graph."""
    yield from _items(origin)


def _items(origin: Origin) -> Items:
    # Collect the names of entities first, as a fact only has the ids of the entities that it connects.
    names: dict[str, str] = {}
    for _, record in _records(origin):
        if _kind(record) == "entity" and (uuid := _uuid(record)):
            names[uuid] = str(record.get("name") or "")
    for place, record in _records(origin):
        kind = _kind(record)
        uuid = _uuid(record)
        if kind == "":
            if record.get("_unread"):
                yield Unread(place, "the line is not a JSON object")
            continue
        if uuid is None:
            yield Unread(place, f"the {kind} has no uuid")
            continue
        make = {"fact": _fact, "entity": _entity, "episode": _episode}[kind]
        line = make(record, names)
        if line is None:
            yield Unread(place, f"the {kind} has no text")
            continue
        yield Item(_session_of(record, origin), {"id": uuid, **line}, place, owner=_owner(record))


def _records(origin: Origin) -> Iterator[tuple[str, Record]]:
    """Yield the objects of all files, including those in lists."""
    for place, found in documents(origin, {"_unread": True}):
        yield from _within(place, found)


def _within(place: str, value: Any, depth: int = 0) -> Iterator[tuple[str, Record]]:
    """Yield an object, or the objects in its lists if it is only a wrapper."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _within(f"{place}, {number}", item, depth + 1)
    elif isinstance(value, dict):
        # APOC wraps each node and each relationship, and has Graphiti's keys below ``properties``.
        if value.get("type") in _APOC and isinstance(value.get("properties"), dict):
            yield place, {**value["properties"], "labels": value.get("labels") or []}
            return
        lists = {key: item for key, item in value.items() if isinstance(item, list) and _has_objects(item)}
        # A fact, entity or episode may itself have lists of objects, which are not records.
        if _kind(value) or not lists:
            yield place, value
            return
        # A response of the API may name the records' group, user or thread only once, outside of the list.
        shared = {key: value[key] for key in ("group_id", "user_id", "thread_id") if key in value}
        for key, item in lists.items():
            for inner, record in _within(f"{place}, {key}", item, depth + 1):
                yield inner, {**shared, **record}


def _has_objects(value: list[Any]) -> bool:
    return any(isinstance(item, dict) for item in value)


def _kind(record: Record) -> str:
    """Return ``fact``, ``episode`` or ``entity``; empty for any other record."""
    # The order matters: facts of Graphiti have a name like entities, and episodes may have one.
    if isinstance(record.get("fact"), str) and any(key in record for key in _FACT):
        return "fact"
    if isinstance(record.get("content"), str) and _uuid(record) is not None:
        return "episode"
    if isinstance(record.get("name"), str) and "summary" in record and _uuid(record) is not None:
        return "entity"
    return ""


def _uuid(record: Record) -> str | None:
    return named(record.get("uuid")) or named(record.get("uuid_"))


def _session_of(record: Record, origin: Origin) -> str:
    keys = ("thread_id", "thread_uuid", "group_id", "user_id", "user_uuid", "graph_uuid")
    return next((found for key in keys if (found := named(record.get(key)))), origin.name)


def _owner(record: Record) -> Record:
    user = named(record.get("user_id")) or named(record.get("user_uuid"))
    group = named(record.get("group_id"))
    return ({"user_id": user} if user else {}) | ({"namespace": (group,)} if group else {})


def _fact(record: Record, names: dict[str, str]) -> Record | None:
    if not record["fact"]:
        return None
    data = _rest(record)
    for end in ("source", "target"):
        uuid = named(record.get(f"{end}_node_uuid")) or named(record.get(f"{end}_uuid"))
        if uuid and names.get(uuid):
            data[f"{end}_node_name"] = names[uuid]
    episodes = record.get("episodes") or record.get("episode_uuids") or []
    line: Record = {
        "ts": time_of(record.get("created_at")),
        "type": "fact",
        "text": record["fact"],
        "data": {"relation": data.pop("name", None), **data},
    }
    sources = map(named, episodes if isinstance(episodes, list) else [])
    links = [{"to": episode, "rel": "derived_from"} for episode in sources if episode]
    # If the time at which a fact stopped being true is unknown, it ends when it was found to be outdated.
    times = {
        "valid_from": time_of(record.get("valid_at")),
        "valid_to": time_of(record.get("invalid_at")) or time_of(record.get("expired_at")),
    }
    return line | _given(times) | ({"links": links} if links else {}) | _vector(record)


def _entity(record: Record, _: dict[str, str]) -> Record | None:
    text = record.get("summary") or record["name"]
    if not text:
        return None
    ts = time_of(record.get("created_at"))
    return {"ts": ts, "type": "entity", "text": str(text), "data": _rest(record)} | _vector(record)


def _episode(record: Record, _: dict[str, str]) -> Record | None:
    if not record["content"]:
        return None
    moments = ("reference_time", "valid_at", "created_at")
    ts = next((found for key in moments if (found := time_of(record.get(key)))), None)
    # Zep's messages are episodes with a role.
    if isinstance(record.get("role"), str):
        name = record.get("name") or record.get("role_name")
        return {"ts": ts, **message(record["role"], record["content"], name=name)}
    return {"ts": ts, "type": "episode", "text": record["content"], "data": _rest(record)}


def _rest(record: Record) -> Record:
    left = _KNOWN | {*_VECTORS, "episodes", "episode_uuids", "labels" if not record.get("labels") else ""}
    return {key: value for key, value in record.items() if key not in left and value not in (None, {}, [])}


def _given(times: Record) -> Record:
    return {key: value for key, value in times.items() if value is not None}


def _vector(record: Record) -> Record:
    found = next((record[key] for key in _VECTORS if isinstance(record.get(key), list) and record[key]), None)
    return {} if found is None else {"embedding": found}
