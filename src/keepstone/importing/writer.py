"""Writer of imported items: in batches, idempotent by id, with constant memory."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from keepstone.agent import Agent
from keepstone.errors import (
    EntryNotFoundError,
    InvalidEmbeddingError,
    KeepstoneError,
    LockTimeoutError,
    SpaceMismatchError,
    StoreError,
)
from keepstone.filesystem.layout import session_id_of
from keepstone.importing.item import Item, Unread, content_digest
from keepstone.importing.owner import AgentFrom
from keepstone.log.arguments import record_of, system_clock
from keepstone.log.line import body_of, dump, life_of
from keepstone.log.merging import check_content
from keepstone.log.where import same
from keepstone.model import LEAST, PROGRAM, Record, least, origin_of
from keepstone.session import Session
from keepstone.text.display import counted
from keepstone.text.messages.speakers import said_by

if TYPE_CHECKING:
    from keepstone.vector import Space

MOST_FAILURES = 10_000
"""Maximum number of failures that are listed; further ones are only counted."""
_BATCH = 1_000
_BATCH_BYTES = 4 << 20
_OPEN_SESSIONS = 64
_Key = tuple[str, str]
"""An agent's slug and a session's id."""
# These keys are set or changed by the home, or describe the writer and not the content.
_UNCOMPARED = frozenset({"ts", "modified", "access", "embedding", "life", "origin"})


@dataclass(slots=True)
class ImportResult:
    """The result of an import."""

    source: str
    """The source's name; for ``auto``, the source that was recognised."""
    imported: int = 0
    """Number of records that were added, or that changed since the last import."""
    unchanged: int = 0
    """Number of records that were already stored, or whose entry was deleted here."""
    failed: list[Unread] = field(default_factory=list)
    """Records that were not imported, each with its place and the reason."""
    notes: list[str] = field(default_factory=list)
    """Readable notes on parts of imported records that were left out."""


@dataclass(slots=True)
class _Pending:
    record: Record
    place: str


class Writer:
    """Writes items into one agent, or into one for each user."""

    def __init__(
        self,
        agent: Agent,
        result: ImportResult,
        *,
        dry_run: bool,
        resume: bool,
        vectors: bool,
        secrets: str,
        mtime: str,
        agent_from: AgentFrom | None = None,
        keep_origin: bool = False,
    ) -> None:
        self._agent = agent
        self._keep_origin = keep_origin
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
        self._tried: dict[int, list[_Content]] = {}
        self._vectors = _Vectors(are_wanted=vectors)

    def add(self, item: Item | Unread) -> None:
        """Accept an item, which may be written later in a batch."""
        if isinstance(item, Unread):
            self._fail(item.place, item.reason)
            return
        try:
            slug = self._agent_from.slug_of(item) if self._agent_from else None
            key = slug or self._agent.slug, _session_name(item.session)
            record = self._record(key, item.line, is_ours=item.exported)
            # Exported entries may lack content: other programs can write such entries to a log, and an export
            # has them, too.
            if not item.exported:
                check_content(record)
            size = len(dump(record))
        except (ValueError, TypeError) as error:
            self._fail(item.place, str(error))
            return
        # The next message without a time gets this record's time, so that a conversation keeps its order.
        self._last = (key, record["ts"])
        self._pending.setdefault(key, []).append(_Pending(record, item.place))
        self._count, self._bytes = self._count + 1, self._bytes + size
        if self._count >= _BATCH or self._bytes >= _BATCH_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write the remaining items, and report the vectors that were left out."""
        self._flush()
        if self._vectors.unusable:
            words = f"{self._vectors.unusable:,} entries were imported without theirs: {self._vectors.reason}"
            self._fail("vectors", words)
        if self._vectors.unnamed:
            self._result.notes.append(
                f"{counted(self._vectors.unnamed, 'vector')} left out, as the source does not say that this "
                "home's model made them; if it did, import again with --vectors (vectors=True)"
            )
        if self._unread:
            self._result.failed.append(Unread("…", f"{self._unread:,} more failures"))

    def _fail(self, place: str, reason: str) -> None:
        # The list is bounded, as a source of the wrong kind may fail in each of millions of lines.
        if len(self._result.failed) < MOST_FAILURES:
            self._result.failed.append(Unread(place, reason))
        else:
            self._unread += 1

    def _record(self, key: _Key, line: Record, *, is_ours: bool) -> Record:
        """Validate an item and return its complete log line."""
        line = {"type": "note"} | line
        if line.get("embedding") is not None:
            line = self._vectors.checked(self._owner(key[0]), line)
        if line.get("ts") is None:
            line = line | {"ts": self._last[1] if self._last[0] == key else self._mtime}
        # A missing id is derived last, as it depends on all of the record's content.
        if line.get("id") is None:
            line = line | {"id": self._id_of(key, line)}
        record = record_of(line | {"origin": self._origin_of(line, is_ours=is_ours)}, system_clock)
        # Secrets are masked before records are compared, as a second run compares with the masked text stored
        # here.
        record = record if self._guard is None else self._guard(key[1], [record])[0]
        return record | ({"life": life} if (life := life_of(line)) > 1 else {})

    def _origin_of(self, line: Record, *, is_ours: bool) -> Record:
        """Return the origin of an item: its own, limited to the trust of ``import`` unless origins are kept.

        The origin of another tool's message follows from its role; any other line without an origin is a
        program's.
        """
        said = line.get("origin")
        if said is None:
            data = line.get("data")
            is_message = line["type"] == "message" and not is_ours
            said = said_by(data) if is_message and isinstance(data, dict) else PROGRAM
        try:
            origin = origin_of(said)
        # An invalid origin in the source gets the least trust, and does not stop the import.
        except (TypeError, ValueError):
            origin = {"by": LEAST}
        if not self._keep_origin:
            origin = {**origin, "by": least((origin["by"], "import"))}
            # A person vouched for the entry in the other home, but not in this one.
            origin.pop("vouched", None)
        return {"via": f"import/{self._result.source}"} | origin

    def _id_of(self, key: _Key, line: Record) -> str:
        """Return an id derived from a record's content; repeated contents in one source are numbered."""
        digest = content_digest(line)
        # Hashes are kept, as a source may have millions of records and a hash takes less memory than an id.
        place = hash((key, digest))
        self._repeated[place] += 1
        return digest if self._repeated[place] == 1 else f"{digest}-{self._repeated[place]}"

    def _flush(self) -> None:
        pending, self._pending, self._count, self._bytes = self._pending, {}, 0, 0
        for key, batch in pending.items():
            try:
                self._write(key, batch)
            except (LockTimeoutError, StoreError):  # The other sessions would fail as well.
                raise
            except KeepstoneError as error:  # This session's name is not usable here.
                for item in batch:
                    self._fail(item.place, str(error))

    def _write(self, key: _Key, batch: list[_Pending]) -> None:
        agent, session, gone = self._session(key)
        needed: dict[str, Record] = {}
        for item in batch:
            record = self._needed(agent, session, gone, item.record, needed)
            if record is None:
                self._result.unchanged += 1
            else:
                self._result.imported += 1
                needed[record["id"]] = record
        if self._dry_run:
            for record in needed.values():
                self._try(agent, session, record)
        elif needed:
            session.put_many(list(needed.values()))

    def _try(self, agent: Agent, session: Session, record: Record) -> None:
        """Record what a real run would have written, to compare later records of the same id with it."""
        versions = self._tried.setdefault(hash((agent.slug, session.id, record["id"])), [])
        if not versions:
            with suppress(EntryNotFoundError):
                versions.append(_content(agent.get(record["id"], session.id).line))
        versions.append({**(versions[-1] if versions else {}), **_content(record)})

    def _owner(self, slug: str) -> Agent:
        """Return an agent of the same home."""
        agent = self._agent
        if slug == agent.slug:
            return agent
        # Construct the agent directly, as an agent has no reference to its home.
        return Agent(agent._shared, agent._store.check_agent(slug))  # noqa: SLF001

    def _session(self, key: _Key) -> tuple[Agent, Session, Container[str]]:
        if key not in self._sessions:
            slug, name = key
            agent = self._owner(slug)
            session = agent.session(name)
            self._sessions[key] = agent, session, session.gone()
            if len(self._sessions) > _OPEN_SESSIONS:
                # The number is bounded: each session here holds its deleted ids, and a source may have any
                # number of sessions.
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
        """Return the line to write for a record, None if the record is already stored."""
        entry_id = record["id"]
        before = needed.get(entry_id)
        if before is not None:
            # In one batch the later line of an id replaces the earlier one, but gets the earlier one's time.
            return None if _says_same(before, record) else before | record | {"ts": before["ts"]}
        if (versions := self._tried.get(hash((agent.slug, session.id, entry_id)))) is not None:
            # A real run would compare with the entry's history; a dry run has only the versions it recorded.
            said = _content(record).items()
            return None if self._resume or any(said <= version.items() for version in versions) else record
        try:
            stored = agent.get(entry_id, session.id).line
        except EntryNotFoundError:
            return None if entry_id in gone else record
        is_over = life_of(stored) > life_of(record)  # The id has since been added again.
        if is_over or self._resume or self._was_edited_here(agent, session, stored, record):
            return None
        if _says_same(stored, record) and ("embedding" not in record or "embedding" in stored):
            return None
        # An entry keeps the time of its first import.
        return {key: value for key, value in record.items() if key != "ts"}

    def _was_edited_here(self, agent: Agent, session: Session, stored: Record, record: Record) -> bool:
        """Return whether the record is unchanged since its import, while its entry has been changed here."""
        if "modified" not in stored or _says_same(stored, record):
            return False
        versions = agent.history(stored["id"], session.id)
        return any(_says_same(version.line, record) for version in versions)


_Content: TypeAlias = Mapping[str, int]
"""The content of a line, as ``_says_same`` compares it: a hash of each key's value."""


def _content(record: Record) -> _Content:
    # Hashes, as a dry run keeps the versions of every record until its end.
    body = body_of(record)
    found = {"": hash(dump({"type": record["type"], **body}))}
    for key in record.keys() - _UNCOMPARED - body.keys() - {"id", "type"}:
        if record[key] is not None:
            found[key] = hash(dump({"": record[key]}))
    return found


class _Vectors:
    """Selects the vectors of a source to import, and counts those left out.

    Vectors of different models must never be compared. So only vectors that name the agent's own space, or
    that the caller vouches for, are kept.
    """

    def __init__(self, *, are_wanted: bool) -> None:
        self._are_wanted = are_wanted
        self._spaces: dict[str, Space] = {}
        """The space of each agent that has one."""
        self.unnamed = self.unusable = 0
        self.reason = ""
        """The reason why the first unusable vector is unusable."""

    def checked(self, agent: Agent, line: Record) -> Record:
        """Return a line with its vector encoded for the log, or without a vector."""
        from keepstone.vector import decode, embedding_of

        try:
            embedding = embedding_of(line["embedding"])
            found = decode(embedding)
            names_space = isinstance(line["embedding"], Mapping)
            is_kept = found is not None and self._is_kept(agent, found[0], names_space=names_space)
        except (InvalidEmbeddingError, SpaceMismatchError, TypeError) as error:
            self.unusable += 1
            self.reason = self.reason or str(error)
            is_kept = False
        if is_kept:
            return line | {"embedding": embedding}
        return {key: value for key, value in line.items() if key != "embedding"}

    def _is_kept(self, agent: Agent, space: Space, *, names_space: bool) -> bool:
        """Return whether a vector is kept; raise InvalidEmbeddingError if the agent cannot use it."""
        own = self._spaces.get(agent.slug) or agent.vectors().space()
        # Two models may have vectors of the same length, whose distances are meaningless.
        if own is not None and not space.is_given and space.id != own.id:
            raise InvalidEmbeddingError(f"they are of {space.id!r:.80}, this agent's of {own.id!r:.80}")
        if own is not None and space.dim != own.dim:
            raise InvalidEmbeddingError(
                f"they have {space.dim:,} numbers, and this agent's, of {own.id!r:.80}, have {own.dim:,}"
            )
        # In a home without an embedder the space is set by vectors that callers gave, so an export can
        # restore them.
        is_own = names_space and (space.is_given if own is None else space.id == own.id)
        if not (is_own or self._are_wanted):
            self.unnamed += 1
            return False
        self._spaces[agent.slug] = own or space
        return True


def _says_same(stored: Record, record: Record) -> bool:
    """Return whether an entry has a record's content; keys that the record lacks are ignored."""
    if stored["type"] != record["type"] or not same(body_of(stored), body_of(record)):
        return False
    # Keys that the record lacks are skipped: else tags or links added here would count as a change, and the
    # next import would undo them.
    keys = record.keys() - _UNCOMPARED - body_of(record).keys() - {"id", "type"}
    return all(same(stored.get(key), record[key]) for key in keys)


def _guard(secrets: str) -> Callable[[str, list[Record]], list[Record]] | None:
    if secrets == "keep":
        return None
    from keepstone.secrets.policy import guard_of

    return guard_of("mask" if secrets == "mask" else "refuse")


def _session_name(name: str) -> str:
    """Return a session's id: the source's name, or a digest if the name is too long for a file name."""
    # JSON may contain a lone surrogate, which a file name cannot contain.
    return session_id_of(name.encode("utf-8", "replace").decode())
