"""Checkpoints, pending writes and values of one LangGraph thread as entries of its session."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Any, NamedTuple

from keepstone.agent import Agent
from keepstone.integrations.homes import clock_of, found_in, needs, opened_session, revise
from keepstone.integrations.texts import STATE
from keepstone.log.line import format_time, instant, read_time
from keepstone.model import Record, SessionInfo
from keepstone.store.protocol import LiveSession

with needs("langgraph"):
    from langgraph.checkpoint.base import WRITES_IDX_MAP, writes_sort_key
    from langgraph.checkpoint.serde.base import SerializerProtocol

CHECKPOINT, WRITE, BLOB = "checkpoint", "checkpoint_write", "checkpoint_blob"
_INLINE = 1024
"""Maximum number of serialized bytes of a value stored in a line; larger values are stored as blobs."""
_PIECE = 4 * 1024 * 1024
"""Maximum bytes of one blob. Longer values have several blobs, because log lines have a limited length."""


class Place(NamedTuple):
    """A checkpoint's namespace and id within its thread."""

    namespace: str
    checkpoint_id: str

    @property
    def entry_id(self) -> str:
        """The id of the checkpoint's entry."""
        return _joined(self.checkpoint_id, *filter(None, [self.namespace]))


class _BlobGoneError(Exception):
    """A blob that new lines refer to is no longer in the session."""


class Thread:
    """One thread: a session of the agent.

    Args:
        agent: The agent.
        thread_id: The thread's id, of any length.
        serde: The serializer of the saver.
    """

    def __init__(self, agent: Agent, thread_id: str, serde: SerializerProtocol) -> None:
        self.id = thread_id
        self._session = opened_session(agent, thread_id)
        self._serde = serde
        self._clock = clock_of(agent)
        self._named = {} if self._session.id == thread_id else {"thread_id": thread_id}

    def checkpoints(self) -> dict[Place, Record]:
        """Return the payloads of all checkpoints."""
        return {_place(data): data for data in self._payloads(CHECKPOINT)}

    def writes(self) -> dict[Place, list[Record]]:
        """Return the payloads of all pending writes by checkpoint, in the order of their application."""
        found: dict[Place, list[Record]] = {}
        for data in self._payloads(WRITE):
            found.setdefault(_place(data), []).append(data)
        for writes in found.values():
            writes.sort(key=lambda data: writes_sort_key(data["task_path"], data["task_id"], data["index"]))
        return found

    def loaded(self, stored: Mapping[str, Any]) -> Any:
        """Return the value that ``stored`` contains or refers to.

        Raises:
            OSError: A blob is missing or damaged.
        """
        if "blobs" not in stored:
            return self._serde.loads_typed((stored["type"], base64.b64decode(stored["base64"])))
        return self._serde.loads_typed((stored["type"], b"".join(map(self._blob, stored["blobs"]))))

    def put(
        self,
        place: Place,
        about: Mapping[str, Any],
        values: Mapping[str, tuple[Any, Any]],
        parent: str | None,
        ts: str,
    ) -> None:
        """Store a checkpoint.

        Args:
            place: The checkpoint's namespace and id.
            about: ``checkpoint`` and ``metadata``, which are serialized, and further JSON values.
            values: The version and value of each channel. Values that the parent has are not serialized
                again.
            parent: The id of the parent checkpoint, or None.
            ts: The checkpoint's time.
        """
        known = self._channels(place._replace(checkpoint_id=parent)) if parent else {}
        moment = read_time(ts) or self._now()
        while True:
            blobs: dict[str, Record] = {}
            channels = {
                name: known[name]
                # LangGraph gives a channel a new version whenever its value changes, so equal versions mean
                # equal values.
                if name in known and known[name]["version"] == version is not None
                else {"version": version, **self._stored(value, blobs)}
                for name, (version, value) in values.items()
            }
            data = {**place._asdict(), "parent": parent, **about, "channels": channels}
            for key in ("checkpoint", "metadata"):
                data[key] = self._stored(about[key], blobs)
            line = {"id": place.entry_id, "ts": format_time(moment), "type": CHECKPOINT, "data": data}
            try:
                return self._write([line], blobs)
            except _BlobGoneError:  # Another saver removed the blob: write it again.
                known = {}

    def put_writes(
        self, place: Place, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        """Store the writes of a task. Earlier writes of the task stay, except errors and interrupts."""
        blobs: dict[str, Record] = {}
        lines: dict[int, Record] = {}
        now = format_time(self._now())
        for number, (channel, value) in enumerate(writes):
            # Errors, interrupts and similar writes have fixed negative indices, so that a retry replaces
            # them.
            index = WRITES_IDX_MAP.get(channel, number)
            said = {"task_id": task_id, "task_path": task_path, "index": index, "channel": channel}
            lines[index] = {
                "id": _joined(place.checkpoint_id, place.namespace, task_id, str(index)),
                "ts": now,
                "type": WRITE,
                "data": {**place._asdict(), **said, **self._stored(value, blobs)},
            }
        self._write([*lines.values()], blobs)

    def copy_to(self, other: Thread) -> None:
        """Copy checkpoints, writes and values into another thread."""
        kept = ("id", "ts", "type", "data")
        records = [
            {key: record[key] for key in kept} | dict(STATE) | other._named for record in self._records()
        ]
        if records:
            other._session.put_many(records)

    def remove(self, places: Iterable[Place]) -> None:
        """Purge checkpoints with their writes, and the values that no other checkpoint uses."""
        removed = set(places)
        # Purge writes and checkpoints before blobs: if the process is killed between the two steps, unused
        # blobs are left, not checkpoints without their blobs.
        if removed:
            self._session.purge_many(
                record["id"]
                for record in self._records()
                if record["type"] != BLOB and _place(record["data"]) in removed
            )
            self._purge_unused()

    def remove_all(self) -> None:
        """Purge all data of the thread, and its session if nothing else is in it."""
        ids = [record["id"] for record in self._records()]
        self._session.purge_many(ids)
        if self._session.info() is not None and not self._session.entry_count():
            # A run may have restarted the thread after its entries were counted.
            with suppress(_NotEmptyError):
                self._session.remove(check=_check_is_empty)

    def _channels(self, place: Place) -> Mapping[str, Record]:
        """Return a checkpoint's stored channels by name; empty if the checkpoint is missing."""
        entry = found_in(self._session, place.entry_id)
        found: Mapping[str, Record] = entry.data["channels"] if entry and entry.type == CHECKPOINT else {}
        return found

    def _write(self, lines: Sequence[Record], blobs: Mapping[str, Record]) -> None:
        """Write lines, and the blobs that the session does not have yet, in one step.

        Raises:
            _BlobGoneError: A line refers to a blob that is neither in ``blobs`` nor in the session.
        """
        made = [{**line, **STATE, **self._named} for line in [*blobs.values(), *lines]]
        # Look the blobs up under the lock, because ``prune`` in another process may purge a blob at any time.
        used = {blob for line in lines for blob in _blobs(line)}

        def revision(live: LiveSession) -> list[Record]:
            if any(live.get(blob) is None for blob in used - blobs.keys()):
                raise _BlobGoneError
            return [line for line in made if not _is_kept(line) or live.get(line["id"]) is None]

        revise(self._session, revision, [*used, *(line["id"] for line in lines)], lines=made)

    def _stored(self, value: Any, blobs: dict[str, Record]) -> Record:
        """Return the serialized value for a line; a large value is added to ``blobs`` instead.

        Raises:
            SecretError, ValueError: The home refuses or masks secrets, and the value has a suspected one.
        """
        kind, raw = self._serde.dumps_typed(value)
        # Search for secrets before the value is encoded in base64, in which no pattern of a secret would
        # match.
        text = raw.decode(errors="replace")
        if self._session.guarded({"text": text})["text"] != text:
            raise ValueError(
                "a checkpoint has a suspected secret, which this home masks; a serialized value cannot be "
                "masked: keep the secret out of the graph's state, or use a serializer that encrypts"
            )
        # A small value takes less space in its line than as a separate entry.
        if len(raw) <= _INLINE:
            return {"type": kind, "base64": base64.b64encode(raw).decode()}
        ids = []
        for at in range(0, len(raw), _PIECE):
            piece = raw[at : at + _PIECE]
            # The id is a digest of the content, so that equal values of a thread's checkpoints are stored
            # once.
            ids.append(f"blob/{hashlib.sha256(piece).hexdigest()}")
            data = {"base64": base64.b64encode(piece).decode()}
            blobs[ids[-1]] = {"id": ids[-1], "ts": format_time(self._now()), "type": BLOB, "data": data}
        return {"type": kind, "blobs": ids}

    def _blob(self, blob: str) -> bytes:
        entry = found_in(self._session, blob)
        raw = base64.b64decode(entry.data["base64"]) if entry is not None else b""
        if entry is None or f"blob/{hashlib.sha256(raw).hexdigest()}" != blob:
            raise OSError(
                f"thread {self.id!r:.80}: {blob} is {'missing' if entry is None else 'damaged'}, "
                "which a checkpoint refers to; restore it from a backup or go on from an older checkpoint"
            )
        return raw

    def _purge_unused(self) -> None:
        """Purge blobs that nothing refers to, and restore those that a new checkpoint now refers to."""
        records = self._records()
        used = set(chain.from_iterable(map(_blobs, records)))
        unused = {record["id"]: record for record in records if record["type"] == BLOB}
        for blob in used:
            unused.pop(blob, None)
        if not unused:
            return
        self._session.purge_many([*unused])
        # A new checkpoint may refer to one of the blobs since the records were read.
        taken = set(chain.from_iterable(map(_blobs, self._records()))) & unused.keys()
        if taken:
            self._session.put_many(unused[blob] for blob in sorted(taken))

    def _payloads(self, kind: str) -> Iterator[Record]:
        return (record["data"] for record in self._session.records() if record["type"] == kind)

    def _records(self) -> list[Record]:
        kinds = {CHECKPOINT, WRITE, BLOB}
        return [record for record in self._session.records() if record["type"] in kinds]

    def _now(self) -> datetime:
        return instant(self._clock(), "the clock's time")


class _NotEmptyError(Exception):
    """Another writer added entries to a session that was to be removed; it stays."""


def _check_is_empty(info: SessionInfo) -> None:
    if info.size:
        raise _NotEmptyError


def _place(data: Record) -> Place:
    return Place(data["namespace"], data["checkpoint_id"])


def _is_kept(line: Record) -> bool:
    """Return whether a line is skipped if the session already has its entry."""
    return bool(line["type"] == BLOB or (line["type"] == WRITE and line["data"]["index"] >= 0))


def _blobs(line: Record) -> Iterator[str]:
    """Yield the ids of the blobs that a line refers to."""
    data = line["data"]
    for stored in (data, data.get("checkpoint"), data.get("metadata"), *data.get("channels", {}).values()):
        if isinstance(stored, dict):
            yield from stored.get("blobs", ())


def _joined(*parts: str) -> str:
    """Return an id made of parts; different parts give different ids."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)
