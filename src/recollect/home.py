"""What people import: a home holds agents, an agent holds sessions, a session holds entries."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISDIR
from typing import Any, Literal, Self

from recollect.arguments import (
    Clock,
    change_of,
    entry_id_of,
    limit_of,
    name_of,
    names_of,
    new_id,
    now,
    record_of,
    where_of,
)
from recollect.context import build
from recollect.embed import Embedder
from recollect.errors import AccessDeniedError, AmbiguousIdError, EntryNotFoundError
from recollect.layout import Layout, layout_of
from recollect.line import ENVELOPE, RESERVED, instant
from recollect.model import Context, Entry, Finding, Hits, Record, Scope, SessionInfo, Version
from recollect.notes import Notes
from recollect.recall import recall
from recollect.recall.vectors import Vectors, space_of_given
from recollect.store.base import Files, Store
from recollect.vector import settle

_CONTEXT_HITS = 8
_CONTEXT_NEWEST = 6


def open(  # noqa: A001  The name that the design gives it, called as recollect.open.
    target: str | os.PathLike[str] | None = None,
    *,
    layout: str | Layout = "default",
    durability: Literal["full", "os"] = "full",
    clock: Clock | None = None,
) -> Home:
    """Open a home. Nothing is written before the first add.

    Args:
        target: The home's folder. Default: ``$RECOLLECT_HOME``, else the user's data folder.
        layout: ``"default"``, ``"bmad"``, ``"cache"`` or a ``Layout``.
        durability: ``"full"`` syncs each write to the disk before it returns; ``"os"`` leaves
            that to the system, which is faster and loses the last writes when the power fails.
        clock: Tells the time for new entries; the system's by default.

    Raises:
        ValueError: The layout or the durability is not one of these, or the target is a file or no path.
        AccessDeniedError: The system does not let us look at the target.

    Example:
        >>> home = recollect.open(".work-agent")
        >>> home.agent("coder").session("s1").add("note", {"content": "Use pnpm"})
    """
    if durability not in ("full", "os"):
        raise ValueError(f"durability is 'full' or 'os', not {durability!r}")
    if clock is not None and not callable(clock):
        raise TypeError(f"clock must be callable, not {type(clock).__name__}: {clock!r:.80}")
    return Home(_root(target), layout_of(layout), durable=durability == "full", clock=clock or _now)


def _now() -> datetime:
    return datetime.now(UTC)


def _root(target: str | os.PathLike[str] | None) -> Path:
    if target is None:
        target = os.environ.get("RECOLLECT_HOME") or _user_folder()
    path: object = os.fspath(target) if isinstance(target, os.PathLike) else target
    if not isinstance(path, str):
        raise TypeError(f"target must be a path of text, not {type(path).__name__}: {path!r:.80}")
    if not path or "\0" in path:
        raise ValueError(f"target is no path: {path!r:.80}")
    try:
        root = Path(path).expanduser().absolute()
        is_folder = _is_folder(root)
    except PermissionError as error:
        raise AccessDeniedError(
            f"the system refuses access to {path!r:.80}; check its owner and mode"
        ) from error
    except (OSError, RuntimeError, UnicodeEncodeError) as error:
        raise ValueError(f"target is no path of a folder: {path!r:.80}; {error}") from error
    if not is_folder:
        raise ValueError(f"{root} is a file: a home is a folder")
    return root


def _is_folder(root: Path) -> bool:
    """Tell whether a folder is there, or can be made where nothing is."""
    try:
        return S_ISDIR(root.stat().st_mode)
    except FileNotFoundError:
        return True


def _user_folder() -> str:
    from platformdirs import user_data_dir  # Only needed where no home is named.

    return user_data_dir("recollect", appauthor=False)


class Home:
    """Where memory lives. Made by ``recollect.open``; safe to share between threads.

    Also a context manager, which closes it.
    """

    def __init__(self, root: Path, layout: Layout, *, durable: bool, clock: Clock) -> None:
        """Use ``recollect.open`` instead."""
        from recollect.store.files import FileStore  # SQLite is loaded when a home is opened, not on import.

        self.root = root
        self._store: Store = FileStore(root, layout, durable=durable)
        self._clock = clock

    def agents(self) -> list[str]:
        """Return the slugs of all agents that have a session or a file, sorted."""
        return self._store.agents()

    def agent(self, slug: str) -> Agent:
        """Return an agent, which need not exist yet: its first write makes it.

        Raises:
            InvalidAgentIdError: The slug is not 1 to 128 of ``A-Z a-z 0-9 . _ -``, or begins or ends wrong.
        """
        return Agent(self._store, self._store.check_agent(slug), self._clock)

    def purge_agent(self, slug: str) -> None:
        """Remove every byte of an agent: sessions, archives, files and index.

        Raises:
            AgentNotFoundError: There is no such agent.
        """
        self._store.purge_agent(self._store.check_agent(slug))

    def sync(self) -> None:
        """Take in what other programs wrote to the logs of the agents in use."""
        self._store.sync()

    def rebuild(self, progress: Callable[[int, int], None] | None = None) -> int:
        """Make all indexes anew from the logs; return how many sessions were read.

        ``progress`` is called with the bytes read so far and all bytes.
        """
        return self._store.rebuild(progress)

    def doctor(self) -> list[Finding]:
        """Look at every log and index, change nothing, and return what was found."""
        return self._store.doctor()

    def close(self) -> None:
        """Give back all open files. Using the home again opens them anew."""
        self._store.close()

    def __enter__(self) -> Self:
        """Return the home itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the home."""
        self.close()


class Agent:
    """The unit of isolation: no call on an agent ever touches another's memory."""

    def __init__(self, store: Store, slug: str, clock: Clock) -> None:
        """Use ``Home.agent`` instead."""
        self.slug = slug
        self._store = store
        self._clock = clock

    @property
    def files(self) -> Files:
        """The agent's own text files."""
        return self._store.files(self.slug)

    def new_session(self) -> Session:
        """Make an empty session with an id of its own and return it."""
        session = Session(self._store, self.slug, new_id(), self._clock)
        self._store.create(self.slug, session.id)
        return session

    def session(self, id: str) -> Session:  # noqa: A002  The word of the log line.
        """Return a session, which need not exist yet: its first write makes it.

        Raises:
            InvalidSessionIdError: The id is empty or too long for a file name.
        """
        return Session(self._store, self.slug, self._store.check_session(id), self._clock)

    def sessions(self) -> list[SessionInfo]:
        """Return id, last change and size of all sessions, the one changed last first."""
        return self._store.sessions(self.slug)

    def get(self, id: str, session: str | None = None) -> Entry:  # noqa: A002
        """Return an entry.

        Raises:
            EntryNotFoundError: No live entry has this id.
            AmbiguousIdError: Several sessions have one; say which with ``session``.
        """
        entry_id_of(id)
        found = self._store.find(self.slug, id, self._checked(session))
        if not found:
            raise EntryNotFoundError(f"agent {self.slug!r} has no entry {id!r:.80}{_in(session)}")
        return _only(id, found)

    def update(self, id: str, session: str | None = None, **keys: Any) -> Entry:  # noqa: A002
        """Change an entry; see ``Session.update``."""
        return self._session_of(id, session).update(id, **keys)

    def delete(self, id: str, session: str | None = None) -> None:  # noqa: A002
        """Hide an entry; see ``Session.delete``."""
        self._session_of(id, session).delete(id)

    def purge(self, id: str, session: str | None = None) -> None:  # noqa: A002
        """Remove the bytes of an entry, deleted or not; see ``Session.purge``."""
        entry_id_of(id)
        if session is not None:
            return self.session(session).purge(id)
        holders = sorted({version.session for version in self.history(id)})
        if len(holders) > 1:
            raise _ambiguous(id, holders)
        if not holders:
            raise EntryNotFoundError(f"agent {self.slug!r} has no entry {id!r:.80}")
        return self.session(holders[0]).purge(id)

    def history(self, id: str, session: str | None = None) -> list[Version]:  # noqa: A002
        """Return all versions of an entry, oldest first; a deletion is a version with ``deleted`` set.

        Raises:
            EntryNotFoundError: There never was such an entry, or it is purged.
        """
        entry_id_of(id)
        versions = self._store.history(self.slug, id, self._checked(session))
        if not versions:
            raise EntryNotFoundError(f"agent {self.slug!r} has no entry {id!r:.80}{_in(session)}")
        return versions

    def link(self, a: str, b: str, rel: str) -> Entry:
        """Say that entry ``a`` stands in a relation to entry ``b``, and return ``a`` as it is then.

        Raises:
            EntryNotFoundError: One of them is not there.

        Example:
            >>> agent.link(decision.id, finding.id, "because")
        """
        source, target = self.get(a), self.get(b)
        link = {"to": target.id, "rel": name_of(rel, "rel")}
        links = [other for other in source.links if other != link]
        return self.session(source.session).update(source.id, links=[*links, link])

    def related(self, id: str, rel: str | None = None, depth: int = 1) -> list[Entry]:  # noqa: A002
        """Return the entries linked with one, in either direction, the nearest first.

        Args:
            id: The entry to begin with.
            rel: Only links of this relation.
            depth: How many links to follow.
        """
        if not limit_of(depth):
            raise ValueError(f"depth must be at least 1, not {depth}")
        found = {id: self.get(id)}
        edge = [found[id]]
        for _ in range(depth):
            near = [other for entry in edge for other in self._linked(entry, rel)]
            edge = [entry for entry in near if entry.id not in found]
            found |= {entry.id: entry for entry in edge}
        return [entry for key, entry in found.items() if key != id]

    def _linked(self, entry: Entry, rel: str | None) -> list[Entry]:
        targets = [target for target, name in _links(entry) if rel in (None, name)]
        outward = [near for target in targets for near in self._store.find(self.slug, target, None)]
        inward = [
            near
            for near in self._store.linked(self.slug, entry.id)
            if any(target == entry.id and rel in (None, name) for target, name in _links(near))
        ]
        return outward + inward

    def recall(
        self,
        query: str,
        *,
        limit: int = 10,
        sessions: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        tags: Iterable[str] | None = None,
        where: Mapping[str, Any] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Hits:
        """Return the entries that fit a query best, each with the reasons.

        Args:
            query: Words or a question.
            limit: The most hits to return.
            sessions: Only entries of these sessions.
            types: Only entries of these types.
            tags: Only entries that carry all of these tags.
            where: Only entries whose payload has these values at these top-level keys.
            since: Only entries made at this time or later: an aware datetime, RFC 3339, or a date.
            until: Only entries made before this time.

        Example:
            >>> hits = agent.recall("what did we decide about sign-in?", types=["decision"])
            >>> hits[0].entry.data["decision"], str(hits[0].why)
        """
        if not isinstance(query, str):
            raise TypeError(f"query must be a string, not {type(query).__name__}: {query!r:.80}")
        most = limit_of(limit)
        if most is None:
            raise TypeError("limit must be a whole number, not None: say how many hits to return")
        scope = Scope(
            self.slug,
            names_of(sessions, "sessions"),
            names_of(types, "types"),
            names_of(tags, "tags"),
            where_of(where),
            None if since is None else instant(since, "since"),
            None if until is None else instant(until, "until"),
        )
        return recall(self._store, query, scope, most)

    def entry_counts(self) -> dict[str, int]:
        """Return how many entries each session has; sessions without any are left out."""
        return self._store.entry_counts(self.slug)

    def vectors(self, embedder: Embedder | None = None, dim: int | None = None) -> Vectors:
        """Return what compares the agent's vectors: those of an embedder, or without one those that were given.

        Args:
            embedder: Makes the vectors of entries that have none.
            dim: The dimension that vectors must have; the embedder's, or that of the first vector given.
        """
        return Vectors(self._store, self.slug, embedder, dim)

    def context(self, query: str | None = None, *, budget: int = 2000, notes: Notes | None = None) -> Context:
        """Return a block for a system prompt: notes, pinned entries, what a query recalls, the newest entries.

        Args:
            query: What the agent is asked; without it nothing is recalled.
            budget: The most tokens the block may have, at three bytes of UTF-8 a token.
            notes: The notes of a project and its user, such as ``Notes(".")``.

        Example:
            >>> agent.context("How do we sign in?", budget=1000, notes=Notes(".")).text
        """
        if not isinstance(notes, Notes | None):
            raise TypeError(f"notes must be Notes or None, not {type(notes).__name__}")
        recalled = self.recall(query, limit=_CONTEXT_HITS) if query is not None else ()
        latest = self.sessions()[:1]
        newest = [entry for info in latest for entry in self.session(info.id).entries(limit=_CONTEXT_NEWEST)]
        entries = {
            "pinned": self._store.pinned(self.slug),
            "recalled": [hit.entry for hit in recalled],
            "newest": newest,
        }
        return build(entries, limit_of(budget) or 0, notes, query)

    def _session_of(self, id: str, session: str | None) -> Session:  # noqa: A002
        return self.session(session if session is not None else self.get(id).session)

    def _checked(self, session: str | None) -> str | None:
        return None if session is None else self._store.check_session(session)


class Session:
    """One ordered log of entries."""

    def __init__(self, store: Store, agent: str, id: str, clock: Clock) -> None:  # noqa: A002
        """Use ``Agent.session`` instead."""
        self.agent = agent
        self.id = id
        self._store = store
        self._clock = clock

    def add(
        self,
        type: str,  # noqa: A002
        data: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,  # noqa: A002
        text: str | None = None,
        ts: datetime | str | None = None,
        embedding: Any = None,
        **keys: Any,
    ) -> Entry:
        """Remember one thing. When this returns, the entry is on the disk.

        Args:
            type: What kind of thing, such as ``"message"`` or ``"decision"``.
            data: The payload: a JSON object.
            id: An id of the caller's own, unique in the session; made if not given. Adding the
                same content with the same id again changes nothing.
            text: The text to index, where the payload's own strings are not it.
            ts: When it happened; now if not given.
            embedding: The vector of the text: a sequence or array of numbers. It is kept as float32 of unit
                length. The first one given decides of which dimension the agent's vectors are.
            keys: Reserved keys such as ``priority``, ``tags``, ``pinned``, ``summary``, and payload
                keys to store beside the envelope.

        Raises:
            EntryExistsError: An entry with this id has other content.
            EmbeddingDimMismatchError: The agent's vectors have another dimension; nothing was written.
            InvalidEmbeddingError: The vector has NaN, infinity or only zeros; nothing was written.
            TypeError, ValueError: An argument cannot be stored; nothing was written.
            LockTimeoutError: Another program kept the session locked for five seconds.
            StoreError: The disk is full or failed; nothing was written.

        Example:
            >>> session.add("message", {"role": "user", "content": "Use pnpm"}, tags=["tools"]).id
        """
        # The vector comes last in the line, where it is least in the way of people who read it.
        given = {"id": id, "ts": ts, "text": text, "data": data, **keys, "embedding": embedding}
        item = {"type": name_of(type, "type")} | {
            key: value for key, value in given.items() if value is not None or key in keys
        }
        return self._store.append(self.agent, self.id, self._records([item]))[0]

    def add_many(self, items: Iterable[Mapping[str, Any]]) -> list[Entry]:
        """Remember many things with one write and one sync: all of them, or none.

        Each item is a mapping with the keys of a log line: ``type``, ``data`` and so on. See ``add``.
        """
        if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
            raise TypeError(f"items must be an iterable of mappings, not {items.__class__.__name__}")
        return self._store.append(self.agent, self.id, self._records(items))

    def put(self, item: Mapping[str, Any]) -> Entry:
        """Add an entry, or replace type and payload of the one with the item's id.

        The item is a mapping with the keys of a log line.
        """
        return self._store.put(self.agent, self.id, self._records([item]))[0]

    def info(self) -> SessionInfo | None:
        """Return id, last change and size of the session, None if it is missing."""
        return self._store.session(self.agent, self.id)

    def entries(
        self,
        limit: int | None = None,
        types: Iterable[str] | None = None,
        as_of: datetime | str | None = None,
        archived: bool = False,  # noqa: FBT001, FBT002  The design's signature.
    ) -> list[Entry]:
        """Return the session's entries, oldest first. A missing session has none.

        Args:
            limit: Keep the newest so many.
            types: Only entries of these types.
            as_of: As they were at this time, from log and archive.
            archived: Also entries that were archived for their age; deleted ones never.
        """
        moment = None if as_of is None else instant(as_of, "as_of")
        kinds = names_of(types, "types")
        return self._store.entries(
            self.agent, self.id, limit_of(limit), kinds, as_of=moment, archived=bool(archived)
        )

    def records(self, *, as_of: datetime | str | None = None, archived: bool = False) -> Sequence[Record]:
        """Return what ``entries`` does in the shape of log lines, many times faster.

        The objects are shared with other callers: read them, do not change them.
        """
        moment = None if as_of is None else instant(as_of, "as_of")
        return self._store.records(self.agent, self.id, as_of=moment, archived=archived)

    def count(self, increments: Mapping[str, int], *, wait: bool = True) -> bool:
        """Add to the access counts of entries, by their ids. Not synced: a power cut may lose counts.

        Without ``wait``, False at once if a writer is at work, and nothing is counted.
        """
        return self._store.count(self.agent, self.id, increments, wait=wait)

    def update(self, id: str, **keys: Any) -> Entry:  # noqa: A002
        """Change an entry and return it.

        Reserved keys alone (``priority``, ``tags``, ``pinned`` …) are set, None removes one. A new
        ``data``, ``text`` or payload key replaces text and payload whole. If that changes the
        text, a vector given with the old one goes too, unless a new ``embedding`` comes along.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.

        Example:
            >>> session.update(entry.id, pinned=True)
        """
        record = {"id": entry_id_of(id), "ts": now(self._clock)} | change_of(keys)
        if "type" in keys and keys.keys() <= {"type", *RESERVED}:
            # A line with a type is a put, and a put without a payload would leave none.
            record |= self._body(id)
        self._settle([record])
        return self._store.amend(self.agent, self.id, record)

    def delete(self, id: str) -> None:  # noqa: A002
        """Hide an entry: it is no longer returned, and its lines stay in the log until purged.

        Raises:
            EntryNotFoundError: The session has no live entry with this id.
        """
        entry_id_of(id)
        self._store.amend(self.agent, self.id, {"id": id, "deleted": True, "ts": now(self._clock)})

    def purge(self, id: str) -> None:  # noqa: A002
        """Remove every byte of an entry, deleted or not: from log, archive and index.

        Raises:
            EntryNotFoundError: No line of the session speaks of this id.
            PurgePendingError: It is gone, but a reader elsewhere keeps old bytes; the next open finishes.
        """
        entry_id_of(id)
        if not self._store.purge(self.agent, self.id, [id]):
            raise EntryNotFoundError(f"session {self.id!r:.80} has no entry {id!r:.80}")

    def compact(self, archive: Callable[[Record], bool] | None = None) -> int:
        """Fold old versions and deleted entries away into the archive; return the bytes saved.

        A long log does this by itself. Live entries for which ``archive`` is true, unless
        they are pinned, move to the archive too: ``entries(archived=True)`` has them.
        """
        return self._store.compact(self.agent, self.id, archive)

    def clear(self) -> bool:
        """Remove all entries, archived ones too, and keep the session; False if it is missing."""
        return self._store.clear(self.agent, self.id) is not None

    def remove(self) -> bool:
        """Remove the session and every byte of it; False if it is missing."""
        return self._store.remove(self.agent, self.id)

    def drop(self) -> int:
        """Remove the session as ``remove`` does, mark it as dropped, and return how many entries it had.

        A missing session has none, and is not marked. What is added later begins anew.
        """
        return self._store.drop(self.agent, self.id, now(self._clock))

    def entry_count(self) -> int:
        """Return how many entries the session has; 0 if it is missing."""
        return self._store.entry_counts(self.agent, self.id).get(self.id, 0)

    def _records(self, items: Iterable[Mapping[str, Any]]) -> list[Record]:
        records = [record_of(item, self._clock) for item in items]
        self._settle(records)
        return records

    def _settle(self, records: Sequence[Record]) -> None:
        if any(record.get("embedding") for record in records):
            settle(records, space_of_given(self._store.spaces(self.agent)))

    def _body(self, id: str) -> Record:  # noqa: A002
        found = self._store.find(self.agent, id, self.id)
        if not found:
            raise EntryNotFoundError(f"session {self.id!r:.80} has no entry {id!r:.80}")
        line = found[0].line
        return {key: value for key, value in line.items() if key not in ENVELOPE and key not in RESERVED}


def _links(entry: Entry) -> list[tuple[str, str | None]]:
    """Return the targets of an entry's links with their relations."""
    links = [link for link in entry.links if isinstance(link, Mapping)]
    return [(link["to"], link.get("rel")) for link in links if isinstance(link.get("to"), str)]


def _only(entry_id: str, found: list[Entry]) -> Entry:
    if len(found) > 1:
        raise _ambiguous(entry_id, sorted(entry.session for entry in found))
    return found[0]


def _ambiguous(entry_id: str, sessions: list[str]) -> AmbiguousIdError:
    return AmbiguousIdError(
        f"entry {entry_id!r:.80} is in several sessions: {', '.join(sessions)}; say session="
    )


def _in(session: str | None) -> str:
    return "" if session is None else f" in session {session!r:.80}"
