"""Writing what a reader yields: in batches, idempotent by id, with constant memory."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Container
from dataclasses import dataclass, field

from keepstone.agent import Agent
from keepstone.errors import (
    EmbeddingDimMismatchError,
    EntryNotFoundError,
    InvalidEmbeddingError,
    KeepstoneError,
    LockTimeoutError,
    StoreError,
)
from keepstone.filesystem.layout import session_id_of
from keepstone.importing.item import Item, Unread, content_digest
from keepstone.importing.owner import AgentFrom
from keepstone.log.arguments import record_of, system_clock
from keepstone.log.line import body_of, dump
from keepstone.log.merging import check_content
from keepstone.log.where import same
from keepstone.model import Record
from keepstone.session import Session

MOST_FAILURES = 10_000
"""Failures that are listed one by one; of more only the number is given."""
_BATCH = 1_000
_BATCH_BYTES = 4 << 20
_OPEN_SESSIONS = 64
_Key = tuple[str, str]
"""An agent's slug and a session's id."""
_UNCOMPARED = frozenset({"ts", "modified", "access", "embedding"})


@dataclass(slots=True)
class Imported:
    """The result of an import."""

    source: str
    """The source's name; what ``auto`` recognised."""
    imported: int = 0
    """Records that were added, or changed since they were imported last."""
    unchanged: int = 0
    """Records that were there, or were deleted here."""
    failed: list[Unread] = field(default_factory=list)
    """Records that were not imported, with their place and the reason."""


@dataclass(slots=True)
class _Pending:
    record: Record
    place: str


class Writer:
    """Writes items into one agent, or into one for each user."""

    def __init__(
        self,
        agent: Agent,
        result: Imported,
        *,
        dry_run: bool,
        resume: bool,
        secrets: str,
        mtime: str,
        agent_from: AgentFrom | None = None,
    ) -> None:
        self._agent = agent
        self._agent_from = agent_from
        self._result = result
        self._dry_run = dry_run
        self._resume = resume
        self._guard = _guard(secrets)
        self._mtime = mtime
        self._sessions: OrderedDict[_Key, tuple[Agent, Session, Container[str]]] = OrderedDict()
        self._pending: dict[_Key, list[_Pending]] = {}
        self._count = self._bytes = self._unread = 0
        self._last: tuple[_Key, str] = (("", ""), mtime)
        self._repeated: Counter[int] = Counter()
        self._tried: set[int] = set()
        self._lost_vectors = 0
        self._lost_reason = ""

    def add(self, item: Item | Unread) -> None:
        """Take one item; it may be written later."""
        if isinstance(item, Unread):
            self._fail(item.place, item.reason)
            return
        try:
            slug = self._agent_from.slug_of(item) if self._agent_from else None
            key = slug or self._agent.slug, _session_name(item.session)
            record = self._record(key, item.line)
            if not item.exported:
                check_content(record)
            size = len(dump(record))
        except (ValueError, TypeError) as error:
            self._fail(item.place, str(error))
            return
        self._last = (key, record["ts"])
        self._pending.setdefault(key, []).append(_Pending(record, item.place))
        self._count, self._bytes = self._count + 1, self._bytes + size
        if self._count >= _BATCH or self._bytes >= _BATCH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is left, and say what was left out."""
        self._flush()
        if self._lost_vectors:
            self._fail(
                "vectors", f"{self._lost_vectors:,} entries were imported without theirs: {self._lost_reason}"
            )
        if self._unread:
            self._result.failed.append(Unread("…", f"{self._unread:,} more failures"))

    def _fail(self, place: str, reason: str) -> None:
        if len(self._result.failed) < MOST_FAILURES:
            self._result.failed.append(Unread(place, reason))
        else:
            self._unread += 1

    def _record(self, key: _Key, line: Record) -> Record:
        """Return the whole, checked log line of an item."""
        line = {"type": "note"} | line
        if line.get("embedding") is not None:
            line = self._with_valid_vector(line)
        if line.get("ts") is None:
            line = line | {"ts": self._last[1] if self._last[0] == key else self._mtime}
        if line.get("id") is None:
            line = line | {"id": self._id_of(key, line)}
        record = record_of(line, system_clock)
        return record if self._guard is None else self._guard(key[1], [record])[0]

    def _with_valid_vector(self, line: Record) -> Record:
        from keepstone.vector import embedding_of

        try:
            return line | {"embedding": embedding_of(line["embedding"])}
        except (InvalidEmbeddingError, TypeError) as error:
            return self._without_vector(line, str(error))

    def _without_vector(self, line: Record, reason: str) -> Record:
        self._lost_vectors += 1
        self._lost_reason = self._lost_reason or reason
        return {key: value for key, value in line.items() if key != "embedding"}

    def _id_of(self, key: _Key, line: Record) -> str:
        """Return an id made of a record's content; equal ones in one source are numbered."""
        digest = content_digest(line)
        place = hash((key, digest))
        self._repeated[place] += 1
        return digest if self._repeated[place] == 1 else f"{digest}-{self._repeated[place]}"

    def _flush(self) -> None:
        pending, self._pending, self._count, self._bytes = self._pending, {}, 0, 0
        for key, batch in pending.items():
            try:
                self._write(key, batch)
            except (LockTimeoutError, StoreError):
                raise
            except KeepstoneError as error:  # This session's name is not usable here.
                for one in batch:
                    self._fail(one.place, str(error))

    def _write(self, key: _Key, batch: list[_Pending]) -> None:
        agent, session, gone = self._session(key)
        needed: dict[str, Record] = {}
        for one in batch:
            record = self._needed(agent, session, gone, one.record, needed)
            if record is None:
                self._result.unchanged += 1
            else:
                self._result.imported += 1
                needed[record["id"]] = record
        if self._dry_run:
            self._tried.update(hash((key, entry_id)) for entry_id in needed)
        elif needed:
            self._put(session, list(needed.values()))

    def _session(self, key: _Key) -> tuple[Agent, Session, Container[str]]:
        if key not in self._sessions:
            slug, name = key
            agent = self._agent
            if slug != agent.slug:
                agent = Agent(agent._shared, agent._store.check_agent(slug))  # noqa: SLF001  Of the same home.
            session = agent.session(name)
            self._sessions[key] = agent, session, session.gone()
            if len(self._sessions) > _OPEN_SESSIONS:
                self._sessions.popitem(last=False)
        return self._sessions[key]

    def _needed(
        self,
        agent: Agent,
        session: Session,
        gone: Container[str],
        record: Record,
        needed: dict[str, Record],
    ) -> Record | None:
        """Return the line that brings a record here, None if it is here already."""
        entry_id = record["id"]
        before = needed.get(entry_id)
        if before is not None:
            # Written together, the later line of one id replaces the earlier one, and keeps its time.
            return None if _says_same(before, record) else before | record | {"ts": before["ts"]}
        try:
            there = agent.get(entry_id, session.id).line
        except EntryNotFoundError:
            is_tried = self._dry_run and hash(((agent.slug, session.id), entry_id)) in self._tried
            return None if is_tried or entry_id in gone else record
        if self._resume or _says_same(there, record) or self._was_edited_here(agent, session, there, record):
            return None
        return {key: value for key, value in record.items() if key != "ts"}

    def _was_edited_here(self, agent: Agent, session: Session, there: Record, record: Record) -> bool:
        """Tell whether a record is as it was when it was imported, and its entry was changed here since."""
        if "modified" not in there:
            return False
        versions = agent.history(there["id"], session.id)
        return any(_says_same(version.line, record) for version in versions)

    def _put(self, session: Session, records: list[Record]) -> None:
        try:
            session.put_many(records)
        except EmbeddingDimMismatchError as error:
            session.put_many(
                [
                    self._without_vector(record, str(error)) if "embedding" in record else record
                    for record in records
                ]
            )


def _says_same(there: Record, record: Record) -> bool:
    """Tell whether an entry says what a record says; keys that the record does not name do not count."""
    if there["type"] != record["type"] or not same(body_of(there), body_of(record)):
        return False
    keys = record.keys() - _UNCOMPARED - body_of(record).keys() - {"id", "type"}
    return all(same(there.get(key), record[key]) for key in keys)


def _guard(secrets: str) -> Callable[[str, list[Record]], list[Record]] | None:
    if secrets == "keep":
        return None
    from keepstone.secrets.policy import guard_of

    return guard_of("mask" if secrets == "mask" else "refuse")


def _session_name(name: str) -> str:
    """Return a session's id: the source's own name, unless that is too long for a file's name."""
    return session_id_of(name.encode("utf-8", "replace").decode())
