"""Messages of LangGraph's threads, from the checkpoints of ``SqliteSaver``.

A checkpoint has all messages of its thread, unless they are in a ``DeltaChannel``, of which only some
checkpoints have a snapshot. Then the messages are those of the nearest ancestor with a snapshot, changed by
the writes to the channel at each checkpoint since then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from keepstone.importing.inert import Object, read_msgpack
from keepstone.importing.item import Item, Items, Unread, message, named, time_of
from keepstone.importing.sqlite_file import ForeignDatabase
from keepstone.model import Record

_CHECKPOINTS, _WRITES, _CHANNEL = "checkpoints", "writes", "messages"
_MADE_OF_KEYS = (2, 4, 5)
"""Msgpack extensions for an object and its keys: constructor with keywords, pydantic 1 and pydantic 2."""
_SNAPSHOT = 7
"""Msgpack extension for a snapshot of a DeltaChannel."""
_NO_CONTENT = frozenset({"type", "id", "additional_kwargs", "response_metadata", "example"})
_REPLACE, _REMOVE_ALL = "__overwrite__", "__remove_all__"
_ROLE_AND_CONTENT = 2


class _Said(NamedTuple):
    """A message as it is stored, and where it was first seen."""

    value: Any
    name: str
    """The id to use if the message has none."""
    ts: str | None
    place: str


@dataclass(slots=True)
class _Checkpoint:
    id: str
    parent: str | None
    place: str
    ts: str | None = None
    messages: list[Any] | None = None
    """All messages of the thread; None if the checkpoint does not have them."""
    has_channel: bool = False


def has_threads(database: ForeignDatabase) -> bool:
    """Return whether a database has checkpoints."""
    return _CHECKPOINTS in database.tables and "thread_id" in database.columns(_CHECKPOINTS)


def read_threads(database: ForeignDatabase) -> Items:
    """Yield the messages of each thread in the state of its newest checkpoint."""
    threads = database.rows(f"SELECT DISTINCT thread_id, checkpoint_ns FROM {_CHECKPOINTS} ORDER BY 1, 2")  # noqa: S608
    for thread, namespace in threads:
        yield from _Thread(database, thread, namespace).items()


class _Thread:
    def __init__(self, database: ForeignDatabase, thread: str, namespace: str) -> None:
        self._database = database
        self._key = (thread, namespace)
        self._session = f"{thread}/{namespace}" if namespace else str(thread)
        # Messages have no time; the time of the oldest checkpoint with a message is used.
        self._first_seen: dict[str, str | None] = {}
        self._owner: Record = {}

    def items(self) -> Items:
        """Yield the messages, each with the time of the first checkpoint that has it."""
        newest: _Checkpoint | Unread | None = None
        for newest in self._checkpoints():
            if isinstance(newest, _Checkpoint):
                for said in self._said(newest):
                    self._seen(said)
        # Damaged checkpoints before the newest are not reported, as later checkpoints repeat their messages.
        if isinstance(newest, Unread):
            yield newest
        elif newest is not None and newest.messages is not None:
            yield from map(self._item, self._said(newest))
        elif newest is not None and newest.has_channel:
            yield from self._replayed(newest)

    def _checkpoints(self, only: str | None = None) -> Iterator[_Checkpoint | Unread]:
        """Yield the checkpoints, or only the given one, the oldest first."""
        # Older versions of the saver lack these columns; they are read as null.
        parent = "parent_checkpoint_id" if self._has(_CHECKPOINTS, "parent_checkpoint_id") else "NULL"
        metadata = "metadata" if self._has(_CHECKPOINTS, "metadata") else "NULL"
        # The ids are UUIDs of version 6, which sort by the time of creation.
        statement = (
            f"SELECT checkpoint_id, {parent}, type, checkpoint, {metadata} FROM {_CHECKPOINTS} "  # noqa: S608
            "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = COALESCE(?, checkpoint_id) "
            "ORDER BY checkpoint_id"
        )
        for number, before, kind, blob, about in self._database.rows(statement, (*self._key, only)):
            place = f"{self._database.name}: checkpoint {number} of thread {self._key[0]}"
            try:
                found = _checkpoint(_Checkpoint(str(number), before, place), _decoded(kind, blob))
            except (ValueError, TypeError, RecursionError) as error:
                yield Unread(place, str(error))
                continue
            self._owner = _owner(about) or self._owner
            yield found

    def _has(self, table: str, column: str) -> bool:
        return table in self._database.tables and column in self._database.columns(table)

    def _said(self, checkpoint: _Checkpoint) -> list[_Said]:
        return [
            _Said(
                message, f"{checkpoint.id}-{number}", checkpoint.ts, f"{checkpoint.place}, message {number}"
            )
            for number, message in enumerate(checkpoint.messages or [], 1)
        ]

    def _seen(self, said: _Said) -> str | None:
        return self._first_seen.setdefault(_id_of(said), said.ts)

    def _item(self, said: _Said) -> Item | Unread:
        keys = _keys_of(said.value)
        if keys is None:
            return Unread(said.place, "it is damaged, or an object of an unknown class, which is not made")
        role = keys.get("role") or keys.get("type")
        more = {
            name: value
            for name, value in keys.items()
            if name not in _NO_CONTENT and _is_json(value) and value
        }
        content = more.pop("content", "")
        more.pop("role", None)
        line = {"id": _id_of(said), "ts": self._seen(said)} | message(role, content, **more)
        return Item(self._session, line, said.place, owner=self._owner)

    def _replayed(self, newest: _Checkpoint) -> Items:
        """Yield the messages of a ``DeltaChannel``: an ancestor's snapshot with the later writes applied."""
        if not self._has(_WRITES, "channel"):
            yield Unread(newest.place, f"its messages are in the table {_WRITES}, which is missing")
        path: dict[str, str | None] = {}
        """Ancestors, the newest first, each with the time of the checkpoint after it."""
        messages: dict[str, _Said] = {}
        at, ts = newest.parent, newest.ts
        while at is not None:
            found = next(self._checkpoints(at), None)
            # In a damaged file a checkpoint may be its own ancestor.
            if not isinstance(found, _Checkpoint) or at in path:
                yield Unread(newest.place, f"checkpoint {at}, which older messages are in, cannot be read")
                break
            path[at] = ts
            messages = {_id_of(said): said for said in self._said(found)}
            at, ts = (None if found.messages is not None else found.parent), found.ts
        for number, after in reversed(path.items()):
            for write in self._writes(number, after):
                if isinstance(write, Unread):
                    yield write
                else:
                    _apply(messages, write)
        yield from map(self._item, messages.values())

    def _writes(self, number: str, after: str | None) -> Iterator[_Said | Unread]:
        """Yield the writes to the channel at a checkpoint, in LangGraph's order."""
        if not self._has(_WRITES, "channel"):
            return
        path = "task_path" if self._has(_WRITES, "task_path") else "''"
        statement = (
            f"SELECT type, value, task_id, idx FROM {_WRITES} WHERE thread_id = ? AND checkpoint_ns = ? "  # noqa: S608
            # LangGraph applies the writes of parallel tasks in the order of the tasks' paths, not of their
            # completion.
            f"AND checkpoint_id = ? AND channel = ? ORDER BY {path}, task_id, idx"
        )
        for kind, blob, task, index in self._database.rows(statement, (*self._key, number, _CHANNEL)):
            place = f"{self._database.name}: write {task}/{index} of thread {self._key[0]}"
            try:
                yield _Said(_decoded(kind, blob), f"{task}-{index}", after, place)
            except (ValueError, TypeError, RecursionError) as error:
                yield Unread(place, str(error))


def _checkpoint(checkpoint: _Checkpoint, state: Any) -> _Checkpoint:
    """Fill a checkpoint with the time and messages of its state."""
    if not isinstance(state, dict):
        return checkpoint
    values, versions = state.get("channel_values"), state.get("channel_versions")
    checkpoint.ts = time_of(state.get("ts"))
    if isinstance(values, dict) and _CHANNEL in values:
        found = values[_CHANNEL]
        # An extension's bytes are again msgpack.
        if isinstance(found, Object) and found.name == _SNAPSHOT:
            found = read_msgpack(found.args)
        checkpoint.messages = found if isinstance(found, list) else []
    # A channel with a version but no value is not empty: its messages are in other checkpoints and writes.
    checkpoint.has_channel = isinstance(versions, dict) and _CHANNEL in versions
    return checkpoint


def _owner(metadata: Any) -> Record:
    """Return the thread's user, if the graph was run with ``configurable={"user_id": …}``."""
    try:
        said = json.loads(metadata) if metadata else None
    except (ValueError, TypeError, RecursionError):  # Damaged metadata only costs the messages' owner.
        return {}
    user = named(said.get("user_id")) if isinstance(said, dict) else None
    return {"user_id": user} if user else {}


def _apply(messages: dict[str, _Said], write: _Said) -> None:
    """Apply a write to the messages: it adds, updates or removes messages, or replaces all of them."""
    replaced, value = _replacement(write.value)
    if replaced:
        messages.clear()
    said = value if isinstance(value, list) else [value]
    for number, part in enumerate(said, 1):
        keys = _keys_of(part) or {}
        made = write._replace(
            value=part, name=f"{write.name}-{number}", place=f"{write.place}, message {number}"
        )
        if keys.get("type") != "remove":
            before = messages.get(_id_of(made), made)
            # A message replaces an earlier one with the same id at the same position, as in LangGraph's
            # ``add_messages``.
            messages[_id_of(made)] = made._replace(ts=before.ts)
        elif keys.get("id") == _REMOVE_ALL:
            messages.clear()
        else:
            messages.pop(_id_of(made), None)


def _replacement(value: Any) -> tuple[bool, Any]:
    """Return whether a write replaces all messages, and the value that it writes."""
    made = _made_of(value)
    if made is not None and made[:2] == ["langgraph.types", "Overwrite"] and isinstance(made[2], dict):
        return True, made[2].get("value") or []
    if isinstance(value, dict):
        if value.keys() == {_REPLACE}:
            return True, value[_REPLACE] or []
        if value.get("type") == _REPLACE and "value" in value:
            return True, value["value"] or []
    return False, value


def _decoded(kind: Any, blob: Any) -> Any:
    if kind == "json":
        return json.loads(blob)
    if kind == "msgpack":
        return read_msgpack(blob)
    # LangGraph's serializer can be configured to fall back to pickle.
    raise ValueError(f"it is stored as {kind!r:.40}, which is not read, as it can run code")


def _id_of(said: _Said) -> str:
    return named((_keys_of(said.value) or {}).get("id")) or said.name


def _made_of(value: Any) -> list[Any] | None:
    """Return the module, class and keys of an object from its msgpack extension; None for any other value."""
    if not isinstance(value, Object) or value.name not in _MADE_OF_KEYS:
        return None
    try:
        said = read_msgpack(value.args)
    except ValueError:  # The message is reported as unread.
        return None
    return said if isinstance(said, list) and len(said) > 2 else None  # noqa: PLR2004  module, class, keys.


def _keys_of(message: Any) -> Record | None:
    """Return the keys of a message in any of its stored forms; None if the form is unknown."""
    if isinstance(message, Object):
        made = _made_of(message)
        message = made[2] if made is not None else None
    # LangChain accepts messages as objects, strings, pairs of role and content, and mappings, and stores them
    # unchanged.
    if isinstance(message, str):
        return {"role": "user", "content": message}
    if isinstance(message, list) and len(message) == _ROLE_AND_CONTENT and isinstance(message[0], str):
        return {"role": message[0], "content": message[1]}
    if not isinstance(message, dict):
        return None
    # LangChain's JSON form.
    if message.get("type") == "constructor" and isinstance(message.get("kwargs"), dict):
        return dict(message["kwargs"])
    return message


def _is_json(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float)
