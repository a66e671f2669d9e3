"""supermemory: saved JSON responses of its API that list documents and memories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.json_text import documents, first_records
from keepstone.importing.origin import Origin
from keepstone.model import Record

_LISTS = ("documents", "memories", "memoryEntries", "results", "items")
_MARKS = ("containerTags", "spaceContainerTag", "memoryEntries", "isLatest", "customId", "spaceId", "system")
_DEEPEST = 10
"""Maximum nesting of lists that are searched."""
_DOCUMENT = ("title", "url", "summary", "metadata", "customId", "source")
_SNAKE = re.compile(r"_([a-z])")


def is_supermemory(origin: Origin) -> bool:
    """Return whether the source has documents or memories in the form of supermemory's API."""
    return any(
        _kind(record) and any(mark in record for mark in _MARKS)
        for _, record in first_records(origin, _records)
    )


def read_supermemory(origin: Origin, _options: Options) -> Items:
    """Yield documents and memories that are not forgotten, with one session for each container tag.

    A replaced memory is valid until its newer version was created.
    """
    # A memory names its predecessor, so the end of a memory is known only after all have been read.
    replaced: dict[str, str | None] = {}
    for _, record in _records(origin):
        if _kind(record) == "memory" and (parent := named(record.get("parentMemoryId"))):
            replaced.setdefault(parent, _time(record, "createdAt"))
    for place, record in _records(origin):
        kind, name = _kind(record), named(record.get("id"))
        if kind == "" or record.get("isForgotten"):
            continue
        if name is None:
            yield Unread(place, f"the {kind} has no id")
            continue
        line = _memory(record, replaced) if kind == "memory" else _document(record)
        if line is None:
            yield Unread(place, f"the {kind} has no text")
            continue
        user = named(record.get("userId"))
        owner = {"user_id": user} if user else {}
        yield Item(_session_of(record, origin), {"id": name, **line}, place, owner=owner)


def _records(origin: Origin) -> Iterator[tuple[str, Record]]:
    for place, found in documents(origin, {}):
        yield from _within(place, found, {})


def _within(place: str, value: Any, document: Record, depth: int = 0) -> Iterator[tuple[str, Record]]:
    """Yield an object, then the objects in its lists; add the document's id to its memories."""
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for number, item in enumerate(value, 1):
            yield from _within(f"{place}, {number}", item, document, depth + 1)
    elif isinstance(value, dict):
        # supermemory's Python client uses snake case for names that are in camel case in the API.
        record = {_SNAKE.sub(lambda found: found[1].upper(), key): part for key, part in value.items()}
        kind = _kind(record)
        if kind == "memory" and document:
            record["documentId"] = document["id"]
            record.setdefault("containerTags", document.get("containerTags"))
        if kind:
            yield place, record
        for key in _LISTS:
            if isinstance(record.get(key), list):
                yield from _within(
                    f"{place}, {key}", record[key], record if kind == "document" else document, depth + 1
                )


def _kind(record: Record) -> str:
    """Return ``memory`` or ``document``; empty for any other record."""
    if isinstance(record.get("memory"), str):
        return "memory"
    if record.get("id") and ("memoryEntries" in record or {"type", "metadata"} <= record.keys()):
        return "document"
    return ""


def _session_of(record: Record, origin: Origin) -> str:
    tags = record.get("containerTags")
    first = tags[0] if isinstance(tags, list) and tags else None
    named_by = (
        record.get("spaceContainerTag"),
        first,
        _system(record).get("namespace"),
        record.get("spaceId"),
    )
    return next((found for name in named_by if (found := named(name))), origin.name)


def _document(record: Record) -> Record | None:
    text = record.get("content") or record.get("summary") or record.get("title")
    if not text:
        return None
    data = {
        key: record[key] for key in _DOCUMENT if record.get(key) not in (None, "", {}) and record[key] != text
    }
    line: Record = {"ts": _time(record, "createdAt"), "type": "document", "text": str(text), "data": data}
    given = record.get("containerTags")
    tags = [str(tag) for tag in given] if isinstance(given, list) else []
    return line | ({"tags": tags} if tags else {})


def _memory(record: Record, replaced: dict[str, str | None]) -> Record | None:
    if not record["memory"]:
        return None
    name = str(record.get("id"))
    kept = ("version", "isStatic", "isInference", "metadata")
    data = {key: record[key] for key in kept if record.get(key) not in (None, False, {})}
    line: Record = {
        "ts": _time(record, "createdAt"),
        "type": "memory",
        "text": record["memory"],
        "data": data,
    }
    if record.get("isStatic"):
        line["pinned"] = True
    relations = record.get("memoryRelations")
    links = [
        {"to": str(target), "rel": str(rel)}
        for target, rel in (relations.items() if isinstance(relations, dict) else ())
    ]
    if document := named(record.get("documentId")):
        links.append({"to": document, "rel": "derived_from"})
    # A version that is not the latest ended when the next one was created or, if that time is unknown, at its
    # own last change.
    ends = replaced.get(name) or (_time(record, "updatedAt") if record.get("isLatest") is False else None)
    times = {"valid_to": ends, "expires": time_of(record.get("forgetAfter"))}
    line |= {key: value for key, value in times.items() if value is not None}
    return line | ({"links": links} if links else {})


def _time(record: Record, key: str) -> str | None:
    """Return a time of a record; since version 5 of the API, times are below ``system``."""
    inner = _system(record)
    snake = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key)
    return time_of(record.get(key)) or time_of(inner.get(key)) or time_of(inner.get(snake))


def _system(record: Record) -> Record:
    found = record.get("system")
    return found if isinstance(found, dict) else {}
