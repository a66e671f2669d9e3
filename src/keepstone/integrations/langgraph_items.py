"""Items of LangGraph stores as entries: one session for each namespace, one entry for each key."""

from __future__ import annotations

import base64
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from keepstone.agent import Agent
from keepstone.importing.langgraph_names import (
    TYPE,
    Namespace,
    id_of,
    kept_vectors,
    key_of,
    namespace_of,
    session_id,
)
from keepstone.integrations.homes import clock_of, found_in, needs
from keepstone.log.arguments import number_of
from keepstone.log.line import EPOCH, format_time, instant, plain, read_time
from keepstone.model import Entry, Record
from keepstone.session import Session
from keepstone.store.validity import is_valid

with needs("langgraph"):
    from langgraph.store.base import Item, SearchItem

_HEAD_OF_DIGESTS = "langgraph-"
_KNOWN_SESSIONS = 1_000
"""Maximum number of cached namespaces; the cache saves computing their session ids again."""
_TICK = 2_000_000_000
"""Coarsest resolution of a file system's times, in nanoseconds; closer changes may have the same time."""
_RENEWED_PART = 0.01
"""Minimum extension by a read, as a fraction of the item's time to live, that is worth a write."""


class Found(NamedTuple):
    """An item, with the record of its entry. The record is shared and must not be changed."""

    namespace: Namespace
    session: str
    record: Record

    def item(self) -> Item:
        """Return a copy of the item."""
        return Item(**self._parts())

    def search_item(self, score: float | None = None) -> SearchItem:
        """Return a copy of the item with a score."""
        return SearchItem(**self._parts(), score=score)

    def _parts(self) -> dict[str, Any]:
        record, made = self.record, self.made()
        # Fast path: most items are put once, and few have a time to live.
        put = made
        if "updated_at" in record or "modified" in record:
            put = read_time(record.get("updated_at")) or read_time(record.get("modified")) or made
        key, value = key_of(record["id"]), plain(record["data"])
        return {
            "namespace": self.namespace,
            "key": key,
            "value": value,
            "created_at": made,
            "updated_at": put,
        }

    def vectors(self, dim: int) -> bytes:
        """Return the float32 bytes of the vectors of the item's paths; empty if none has this dimension."""
        kept = self.record.get("vectors")
        if not isinstance(kept, dict) or kept.get("dim") != dim or not isinstance(kept.get("f32"), str):
            return b""
        try:
            raw = base64.b64decode(kept["f32"], validate=True)
        except ValueError:  # Edited by hand.
            return b""
        return b"" if len(raw) % (4 * dim) else raw

    def made(self) -> datetime:
        """Return the time when the item was made."""
        return read_time(self.record["ts"]) or EPOCH


class Line(NamedTuple):
    """A checked put or deletion of an item; its log lines also depend on the stored entry."""

    entry_id: str
    body: Record
    """The keys of the log line, with the value; empty to delete the item."""
    expires: str | None = None

    def records(self, old: Entry | None, now: datetime) -> Iterator[Record]:
        """Yield the lines that put or delete the item at a time, given the stored entry, if any."""
        head = {"id": self.entry_id, "ts": format_time(now)}
        # Delete an expired item first, so that the new item has its own time of creation.
        if old is not None and old.type == TYPE and (not self.body or not is_valid(old.line, now)):
            yield head | {"deleted": True}
            old = None
        if self.body:
            ends = {"expires": self.expires} if self.expires or (old and "expires" in old.line) else {}
            yield head | {"type": TYPE} | self.body | ends


def line_of(
    key: str,
    value: Any,
    ttl: float | None,
    vectors: Sequence[Sequence[float]],
    beside: Record,
    now: datetime,
) -> Line:
    """Return the line that puts a JSON object under a key, with a time to live in minutes.

    Raises:
        TypeError, ValueError: The value, the vectors or the time to live cannot be stored.
    """
    if value is None:
        return Line(id_of(key), {})
    if not isinstance(value, dict):
        raise TypeError(f"a value must be a mapping, not {type(value).__name__}: {value!r:.80}")
    body: Record = {"data": value} | beside
    if not value:
        body["text"] = "{}"  # An entry needs a text or a payload that is not empty.
    if vectors:
        rows = np.asarray(vectors, dtype="<f4")
        # NaN cannot be ordered, so it would break every ranking.
        if rows.ndim != 2 or not np.isfinite(rows).all():  # noqa: PLR2004
            raise ValueError(f"the embeddings of {key!r:.80} are not finite vectors of one dimension")
        body["vectors"] = kept_vectors(rows.shape[1], rows.tobytes())
    if ttl is None:
        return Line(id_of(key), body)
    # Store the time of the update: reads renew the time to live without updating the item.
    body |= {"ttl": number_of(ttl, "ttl"), "updated_at": format_time(now)}
    return Line(id_of(key), body, format_time(_after(now, ttl)))


def renewed(record: Record, now: datetime) -> str | None:
    """Return an item's new expiry after a read; None if the extension is not worth a line."""
    minutes, expires = record.get("ttl"), read_time(record.get("expires"))
    if not isinstance(minutes, int | float) or expires is None:
        return None
    later = _after(now, minutes)
    return format_time(later) if later - expires > timedelta(minutes=minutes * _RENEWED_PART) else None


def ranked(found: Sequence[Found], vector: Sequence[float]) -> list[tuple[Found, float | None]]:
    """Return items by the best cosine of their paths with a vector; items without a vector come last."""
    asked = np.asarray(vector, dtype=np.float64)
    raw = [item.vectors(len(asked)) for item in found]
    compared = [(item, len(part)) for item, part in zip(found, raw, strict=True) if part]
    others = [(item, None) for item, part in zip(found, raw, strict=True) if not part]
    if not compared:
        return [*others]
    rows = np.frombuffer(b"".join(raw), dtype="<f4").reshape(-1, len(asked)).astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    cosines = np.divide(rows @ asked, lengths, out=np.zeros(len(rows)), where=lengths > 0)
    # Each item has one row for each path with a vector; its score is the best of these rows.
    begins = np.cumsum([0] + [size // (4 * len(asked)) for _, size in compared[:-1]])
    best = np.maximum.reduceat(cosines, begins)
    order = np.argsort(-best, kind="stable")
    return [*((compared[place][0], float(best[place])) for place in order), *others]


def _after(now: datetime, minutes: float) -> datetime:
    try:
        return now + timedelta(minutes=minutes)
    except OverflowError as error:
        raise ValueError(f"ttl is too long: {minutes} minutes; use None for ever") from error


class Namespaces:
    """The namespaces of one agent, and the items in them."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._clock = clock_of(agent)
        self._of_digests: dict[str, Namespace] = {}
        """The namespaces of sessions whose ids are digests. A session's namespace never changes."""
        self._kept: tuple[tuple[int, int], list[tuple[Namespace, str]]] | None = None
        """The state of the folder before the last listing of all sessions, and the listing."""
        self.session = lru_cache(_KNOWN_SESSIONS)(self._session)
        """Return the session of a namespace; the session need not exist."""

    def now(self) -> datetime:
        """Return the time of the home's clock."""
        return instant(self._clock(), "the clock's time")

    def _session(self, namespace: Namespace) -> Session:
        return self._agent.session(session_id(namespace))

    def below(self, prefix: Namespace) -> list[tuple[Namespace, Session]]:
        """Return the sorted namespaces that begin with a prefix, and their sessions; some may be empty."""
        listed = self._sessions()
        found: list[tuple[Namespace, Session]] = []
        for at in range(bisect_left(listed, prefix, key=itemgetter(0)), len(listed)):
            space, name = listed[at]
            # The listing is sorted, so namespaces with the same prefix are adjacent.
            if space[: len(prefix)] != prefix:
                break
            found.append((space, self._agent.session(name)))
        return found

    def _sessions(self) -> list[tuple[Namespace, str]]:
        """Return all namespaces and the ids of their sessions, sorted.

        The listing is cached until a session is created or removed, which changes the folder's time. If the
        folder changed less than two seconds before a listing, a later change may have the same time. Such a
        listing is not cached.
        """
        kept, changed = self._kept, self._changed()
        if kept is not None and kept[0] == changed:
            return kept[1]
        # Take the time before the listing: a session that is created during it changes the folder's time
        # later.
        began = time.time_ns()
        known = [(self._namespace_of(info.id), info.id) for info in self._agent.sessions()]
        listed = sorted((space, name) for space, name in known if space is not None)
        # A session with a digest as its id and no item yet may become a namespace.
        is_settled = all(space is not None or not name.startswith(_HEAD_OF_DIGESTS) for space, name in known)
        if changed is not None and is_settled and began - changed[1] > _TICK:
            self._kept = (changed, listed)
        return listed

    def _changed(self) -> tuple[int, int] | None:
        """Return a state that changes when a session is created or removed; None if the store has none."""
        return self._agent._shared.store.sessions_state(self._agent.slug)  # noqa: SLF001

    def items(self, namespace: Namespace, session: Session, now: datetime) -> Iterator[Found]:
        """Yield the items of a namespace in the order of their creation."""
        for record in session.records():
            if _is_item(record, now):
                yield Found(namespace, session.id, record)

    def find(self, namespace: Namespace, key: str, now: datetime) -> Found | None:
        """Return the item under a key; None if it is missing or has expired."""
        session = self.session(namespace)
        entry = found_in(session, id_of(key))
        is_item = entry is not None and _is_item(entry.line, now)
        return Found(namespace, session.id, entry.line) if entry is not None and is_item else None

    def is_empty(self, namespace: Namespace, session: Session, now: datetime) -> bool:
        """Return whether a namespace has no item."""
        newest = session.entries(1, [TYPE], include_superseded=True)
        if not newest or is_valid(newest[0].line, now):
            return not newest
        return next(self.items(namespace, session, now), None) is None

    def _namespace_of(self, name: str) -> Namespace | None:
        """Return the namespace of a session; None if it is another kind of session."""
        if (namespace := namespace_of(name)) is not None:
            return namespace
        if name.startswith(_HEAD_OF_DIGESTS) and name not in self._of_digests:
            for entry in self._agent.session(name).entries(1, [TYPE], include_superseded=True):
                # A line that was edited by hand may name any namespace; accept it only if it matches the
                # session's id.
                named = entry.line.get("namespace")
                if isinstance(named, list) and self.session(tuple(named)).id == name:
                    self._of_digests[name] = tuple(named)
        return self._of_digests.get(name)


def _is_item(record: Record, now: datetime) -> bool:
    return record["type"] == TYPE and isinstance(record.get("data"), dict) and is_valid(record, now)
