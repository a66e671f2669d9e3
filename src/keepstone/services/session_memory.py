"""``SessionMemory``: typed entries whose priority fades with age and grows with use (requirement 3)."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal, Self

import filelock  # noqa: F401  Load it and the store with the service, not during the first query.

import keepstone.store.files.file_store  # noqa: F401
from keepstone.errors import AmbiguousIdError, EntryNotFoundError, KeepstoneError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.home import Home
from keepstone.home import open as open_home
from keepstone.log.arguments import Clock, count_of, limit_of, name_of, names_of, number_of, system_clock
from keepstone.log.line import instant, payload_of
from keepstone.model import BOUNDS, Record
from keepstone.services.access_counts import AccessCounts
from keepstone.store.decay import Decay, Worth, base_of, worth_of
from keepstone.store.validity import is_valid

logger = logging.getLogger("keepstone.session_memory")

QUOTA = 10 * 1024 * 1024
"""The default size in bytes above which a session's log is compacted."""
_CACHED_SESSIONS = 8
"""Maximum number of sessions whose entries are cached."""

_CONTAINERS = frozenset({dict, list})

_Cached = tuple[str, Record, Worth, bool]
"""An entry's id, record and worth, and whether it has validity bounds."""
_Result = tuple[float, int, _Cached, str]
"""An entry's current priority and access count, the cached entry, and the id of its session."""


class SessionMemory:
    """The memory of one session, sorted by priority.

    The session is the file ``{root}/sessions/{session_id}.jsonl``, one entry per line. Entries are returned
    as copies, in dictionaries with the keys of these lines: ``priority`` is the current, decayed priority
    (see ``keepstone.store.decay``), and ``access`` is the number of accesses.

    Each time ``query`` or ``get_context`` returns an entry counts as an access. Access counts are buffered in
    memory, and written without a sync by the next ``add``, ``delete``, ``link`` or ``compact``, by ``close``,
    at interpreter exit, and by reads at most once a minute. These writes of counts do not wait for a lock:
    counts of a locked session stay buffered.

    Safe to share between threads and processes. Also a context manager, which closes it.

    Args:
        session_id: Any non-empty string.
        root: The home's folder.
        clock: Returns the time as an aware datetime; default: the system clock.
        quota: Size of the log in bytes above which an ``add``, or a read that writes counts, compacts it. The
            log must also be at least twice as long as after its last compaction.

    Raises:
        InvalidSessionIdError: The session id is empty or too long for a file name.

    Examples:
        >>> memory = SessionMemory("main")
        >>> id = memory.add("decision", {"decision": "Use OAuth", "by": "architect"})
        >>> memory.query(topic="oauth")[0]["priority"]
        0.97
    """

    def __init__(
        self,
        session_id: str,
        root: str | os.PathLike[str] = ".bmad",
        *,
        clock: Clock | None = None,
        quota: int = QUOTA,
    ) -> None:
        """Open the home. Nothing is written before the first ``add``."""
        self._quota = count_of(quota, "quota")
        self._clock = clock or system_clock
        self._home = open_home(root, layout="bmad", clock=clock)
        self._agent = self._home.agent(DEFAULT_AGENT)
        self._session = self._agent.session(session_id)
        self.session_id = session_id
        self._cache: dict[str, tuple[Sequence[Record], list[_Cached]]] = {}
        self._counts = AccessCounts(self._agent, self._time())
        # Use a finalizer, not __del__: it also runs at interpreter exit, while modules are still loaded. It
        # must not refer to the memory itself.
        weakref.finalize(self, _close, self._counts, self._home)

    def add(self, type: str, data: Mapping[str, Any]) -> str:  # noqa: A002  The name in the log line.
        """Add an entry and return its id. When this returns, the entry is on the disk.

        Args:
            type: ``"conversation"``, ``"decision"``, ``"finding"``, ``"preference"``, or another
                type, which fades like a conversation.
            data: The payload, a JSON object.

        Raises:
            TypeError, ValueError: An argument cannot be stored; nothing was written.
            LockTimeoutError: Another process held the session's lock for five seconds.
            StoreError: The disk is full or failed; nothing was written.
        """
        if not isinstance(data, Mapping):
            raise TypeError(f"data must be a mapping, not {data.__class__.__name__}: {data!r:.80}")
        base = base_of(name_of(type, "type"))
        added = self._session.add(type, data, priority=base, access=0)
        self._counts.write()
        # Compact after the write, which must not fail if the compaction fails.
        self._keep_quota(wait=True)
        return added.id

    def query(
        self,
        type: str | None = None,  # noqa: A002
        topic: str | None = None,
        min_priority: float = 0,
        *,
        limit: int | None = None,
        sessions: Iterable[str] | Literal["*"] | None = None,
        as_of: datetime | str | None = None,
    ) -> list[dict[str, Any]]:
        """Return the entries that match all filters, highest priority first, then oldest.

        Entries that are superseded, expired or not yet valid are left out.

        Args:
            type: Only entries of this type.
            topic: Only entries with this text in a key or value of their data, ignoring case.
            min_priority: Only entries with at least this priority before this access; 0 for all.
            limit: Maximum number of entries; only returned entries are accessed.
            sessions: Query these sessions instead of this one; ``"*"`` means all sessions of the home.
            as_of: Query the memory as it was at this time, an aware datetime or RFC 3339, with the priorities
                of that time. This does not count as an access.

        Raises:
            TypeError, ValueError: An argument is invalid.
        """
        wanted = _Wanted(
            _text_of(type, "type"),
            _text_of(topic, "topic").casefold(),
            number_of(min_priority, "min_priority"),
        )
        most, names = limit_of(limit), self._sessions(sessions)
        now = self._time() if as_of is None else instant(as_of, "as_of")
        found = [seen for name in names for seen in self._seen(name, wanted, now, past=as_of is not None)]
        if len(names) > 1:
            found.sort(key=lambda seen: seen[2][2].made)
        # The sort is stable, so that entries of equal priority stay sorted by time.
        found.sort(key=itemgetter(0), reverse=True)
        found = found[:most]
        if as_of is None:
            self._counts.add(_ids_by_session(found))
            if self.session_id in self._counts.write_if_due(now):
                self._keep_quota(wait=False)
        return [_shown(record, priority, access) for priority, access, (_, record, _, _), _ in found]

    def get_context(self, limit: int = 20) -> list[dict[str, Any]]:
        """Return the session's most important entries, highest priority first."""
        return self.query(limit=limit)

    def delete(self, memory_id: str) -> bool:
        """Hide an entry by appending a tombstone; False if the session has no such entry."""
        try:
            self._session.delete(memory_id)
        except EntryNotFoundError:
            return False
        self._counts.forget(self.session_id, memory_id)
        self._counts.write()
        return True

    def link(self, a: str, b: str, rel: str) -> dict[str, Any]:
        """Link entry ``a`` to entry ``b``, and return ``a``.

        Each id must be in this session, or else in exactly one session of the home.

        Raises:
            EntryNotFoundError: One of them does not exist.
            AmbiguousIdError: One of them is not in this session, but in several others.

        Examples:
            >>> memory = SessionMemory("main")
            >>> finding = memory.add("finding", {"issue": "No second factor"})
            >>> decision = memory.add("decision", {"decision": "Use passkeys"})
            >>> memory.link(decision, finding, "because")["links"]
            [{'to': '…', 'rel': 'because'}]
        """
        records = self._records()
        are_here = a in records and b in records
        changed = self._session.link(a, b, rel) if are_here else self._agent.link(a, b, rel)
        self._counts.write()
        return self._with_counts(changed.line, changed.session)

    def related(self, memory_id: str) -> list[dict[str, Any]]:
        """Return the entries linked with an entry, in either direction, highest priority first.

        This does not count as an access.

        Raises:
            EntryNotFoundError: There is no such entry.
            AmbiguousIdError: The id is not in this session, but in several others.
        """
        records = self._records()
        found = {record["id"]: record for record in _linked(records, memory_id)}
        try:
            elsewhere = self._agent.related(memory_id)
        except AmbiguousIdError:
            if memory_id not in records:
                raise
            elsewhere = []  # Links from other sessions to this id are ambiguous.
        shown = [self._with_counts(record, self.session_id) for record in found.values()]
        shown += [
            self._with_counts(entry.line, entry.session) for entry in elsewhere if entry.id not in found
        ]
        return sorted(shown, key=itemgetter("priority"), reverse=True)

    def compact(self) -> int:
        """Archive deleted, replaced and faded entries, and return the bytes saved.

        Faded entries have a priority of 0.3 or less and are not pinned. The archive keeps archived entries,
        but only queries with ``as_of`` find them.
        """
        return self._compact(wait=True)

    def _compact(self, *, wait: bool) -> int:
        self._counts.write()
        decay = Decay(self._time(), accesses=self._counts.of(self.session_id))
        return self._session.archive_faded(decay, wait=wait).saved

    def close(self) -> None:
        """Write the access counts and close all files. A later call reopens them.

        This never waits for a lock: counts of a locked session stay in memory.
        """
        _close(self._counts, self._home)

    def __enter__(self) -> Self:
        """Return the memory itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the memory."""
        self.close()

    def _time(self) -> datetime:
        return instant(self._clock(), "the clock's time")

    def _sessions(self, sessions: Iterable[str] | None) -> list[str]:
        if sessions == "*":
            return sorted(info.id for info in self._agent.sessions())
        names = names_of(sessions, "sessions")
        return [self.session_id] if names is None else list(dict.fromkeys(names))

    def _seen(self, session: str, wanted: _Wanted, now: datetime, *, past: bool) -> Iterator[_Result]:
        """Yield the matching entries of a session, with their priority and count after this access."""
        pending: Mapping[str, int] = {} if past else self._counts.of(session)
        for cached in self._entries(session, now if past else None):
            entry_id, record, worth, bounded = cached
            more = pending.get(entry_id, 0)
            if bounded and not is_valid(record, now):
                continue
            if wanted.takes(record, worth, now, more):
                more += not past
                yield worth.at(now, more), worth.accesses + more, cached, session

    def _entries(self, session: str, as_of: datetime | None) -> list[_Cached]:
        """Return a session's entries, from the cache if its log is unchanged."""
        records = self._agent.session(session).records(as_of=as_of)
        known, entries = self._cache.get(session, (None, []))
        # The store returns the same list as long as the log is unchanged, so comparing identity is enough.
        if known is records:
            return entries
        entries = [
            (record["id"], record, worth_of(record), not BOUNDS.isdisjoint(record)) for record in records
        ]
        if as_of is None:
            # Without this limit, queries of all sessions would keep every session in memory.
            if len(self._cache) >= _CACHED_SESSIONS:
                self._cache.clear()
            self._cache[session] = (records, entries)
        return entries

    def _records(self) -> dict[str, Record]:
        return {record["id"]: record for record in self._session.records()}

    def _with_counts(self, record: Record, session: str) -> dict[str, Any]:
        worth, more = worth_of(record), self._counts.of(session).get(record["id"], 0)
        return _shown(record, worth.at(self._time(), more), worth.accesses + more)

    def _keep_quota(self, *, wait: bool) -> None:
        """Compact the log if it is due. Errors are only logged, because the write has succeeded."""
        info = self._session.info()
        # Compact at twice the size after the last compaction, so that a log of only live entries is not
        # compacted with every add.
        if info is None or info.size <= self._quota or info.size < 2 * self._session.compacted_size():
            return
        try:
            self.compact() if wait else self._compact(wait=False)
        except KeepstoneError as error:
            logger.warning("cannot compact session %r, which is over its quota: %s", self.session_id, error)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The filters of a query; empty or 0 means no filter."""

    type: str
    topic: str
    """The text to search for, case-folded."""
    min_priority: float

    def takes(self, record: Record, worth: Worth, now: datetime, more: int) -> bool:
        if self.type and record["type"] != self.type:
            return False
        if self.min_priority and worth.at(now, more) < self.min_priority:
            return False
        return not self.topic or _contains(payload_of(record), self.topic)


def _close(counts: AccessCounts, home: Home) -> None:
    counts.write()
    home.close()


def _ids_by_session(found: Iterable[_Result]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for _, _, (entry_id, _, _, _), session in found:
        ids.setdefault(session, []).append(entry_id)
    return ids


def _shown(record: Record, priority: float, access: int) -> dict[str, Any]:
    """Return a copy of an entry with its current priority and access count."""
    shown = _copied(record)
    shown["priority"], shown["access"] = priority, access
    return shown


def _copied(record: Record) -> Record:
    copy = record.copy()
    for key, value in record.items():
        if type(value) in _CONTAINERS:
            copy[key] = _copied_value(value)
    return copy


def _copied_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _copied(value)
    return [_copied_value(item) for item in value] if isinstance(value, list) else value


def _contains(value: Any, topic: str) -> bool:
    """Return whether any key or value contains a text, at any depth; numbers are compared as text."""
    if isinstance(value, str):
        return topic in value.casefold()
    if isinstance(value, dict):
        return any(topic in key.casefold() or _contains(item, topic) for key, item in value.items())
    if isinstance(value, list):
        return any(_contains(item, topic) for item in value)
    return value is not None and topic in str(value).casefold()


def _links(record: Record) -> list[dict[str, Any]]:
    links = record.get("links")
    return [link for link in links if isinstance(link, dict)] if isinstance(links, list) else []


def _linked(records: Mapping[str, Record], entry_id: str) -> Iterator[Record]:
    """Yield the session's entries that an entry links to, and the entries that link to it."""
    targets = [link.get("to") for link in _links(records.get(entry_id, {}))]
    for key, record in records.items():
        is_target = key in targets or any(link.get("to") == entry_id for link in _links(record))
        if is_target and key != entry_id:
            yield record


def _text_of(value: str | None, name: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string or None, not {type(value).__name__}: {value!r:.80}")
    return value
