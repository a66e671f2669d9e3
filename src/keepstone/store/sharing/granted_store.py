"""An agent's access to another agent's memory, limited by a grant.

``Reach.check`` is the only check of grants, for the library, the servers and the commands. It reads the
grants each time, so that a revocation takes effect with the next call, also for existing sessions, cursors
and iterators. ``GrantedStore`` has the methods that a grant can cover, and refuses all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import NoReturn, cast

from keepstone.errors import EntryExistsError, EntryNotFoundError, NotGrantedError
from keepstone.log.line import DEFAULT_TYPE, is_put, is_tombstone, type_of
from keepstone.model import Comparison, Entry, Record, Scope, SessionInfo
from keepstone.store.paging import Page
from keepstone.store.protocol import Ids, LiveSession, Modification, Revision, Selected, Store
from keepstone.store.sharing.acting import acting
from keepstone.store.sharing.grants import READ, WRITE, DamagedGrantsError, Grant, in_force
from keepstone.vector import Space


@dataclass(frozen=True, slots=True)
class Reach:
    """The part of another agent's memory that one agent may access."""

    store: Store
    now: Callable[[], datetime]
    to: str
    """The agent that asks for access."""
    of: str
    """The agent that owns the memory."""

    def check(self, may: str = READ) -> Grant:
        """Return the grant that allows reading or writing now.

        Raises:
            NotGrantedError: There is no such grant or no such agent; the error does not reveal which.
        """
        try:
            grants = in_force(self.store.grants(self.of), self.now())
        except DamagedGrantsError:  # The doctor reports it.
            grants = []
        for grant in grants:
            if grant.to == self.to and grant.allows(may):
                return grant
        raise self.refused(may)

    @contextmanager
    def access(self, may: str = READ) -> Iterator[Grant]:
        """Check the grant, and have a database check it once more for calls inside the ``with``."""
        grant = self.check(may)
        with acting(self.to, self.now(), is_writing=may == WRITE):
            yield grant

    def unshared(self, subject: str) -> NotGrantedError:
        """Return the error for an agent that has a grant, about a subject that no grant covers."""
        return NotGrantedError(
            f"agent {self.of!r} lets {self.to!r} access entries as they are now: no grant covers {subject}"
        )

    def refused(self, may: str) -> NotGrantedError:
        """Return the error for a missing grant."""
        return NotGrantedError(
            f"agent {self.of!r} does not let {self.to!r} {may} its memory, or there is no such agent: "
            f"its owner may run keepstone grant {self.to} --agent {self.of}"
        )


class GrantedStore:
    """The ``Store`` of one agent's memory for another agent; cast to ``Store`` by ``granted``.

    Entries outside the grant read as missing, and a call that it does not allow raises ``NotGrantedError``.
    """

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._store = reach.store
        self.check_session = reach.store.check_session
        self.check_agent = reach.store.check_agent

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse every method of a store that is not defined here."""
        # Python looks for methods such as ``__deepcopy__``, and expects this error.
        if name.startswith("__"):
            raise AttributeError(name)
        self._reach.check()
        raise self._reach.unshared(name.strip("_").replace("_", " "))

    # Reading

    def find(self, agent: str, entry_id: str, session: str | None) -> list[Entry]:
        """Return the covered entries with an id."""
        with self._reach.access() as grant:
            return [*filter(grant.covers_entry, self._store.find(agent, entry_id, session))]

    def select(
        self, scope: Scope, limit: int | None = None, cursor: str | None = None, *, newest_first: bool = False
    ) -> Page[Entry]:
        """Return the covered entries of a scope."""
        with self._reach.access() as grant:
            return self._store.select(grant.narrowed(scope), limit, cursor, newest_first=newest_first)

    def select_count(self, scope: Scope) -> int:
        """Return how many covered entries a scope has."""
        with self._reach.access() as grant:
            return self._store.select_count(grant.narrowed(scope))

    def entries(
        self,
        agent: str,
        session: str,
        limit: int | None,
        types: Sequence[str] | None,
        *,
        as_of: datetime | None = None,
        archived: bool = False,
        cursor: str | None = None,
    ) -> Page[Entry]:
        """Return a session's covered entries, oldest first; a limit keeps the newest."""
        if as_of is not None or archived:
            self._reach.check()
            raise self._reach.unshared("the archive" if archived else "earlier states")
        scope = Scope(agent, (session,), None if types is None else tuple(types))
        page = self.select(scope, limit, cursor, newest_first=True)
        return Page(reversed(page), page.next)

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        """Return the result of ``entries`` as records."""
        found = self.entries(agent, session, None, None, as_of=as_of, archived=archived)
        return [entry.line for entry in found]

    def session(self, agent: str, session: str) -> SessionInfo | None:
        """Return a session that has covered entries, with the newest entry's time and without its size."""
        newest = self.select(Scope(agent, (session,)), 1, newest_first=True)
        return SessionInfo(session, newest[0].ts, 0) if newest else None

    def entry_counts(self, agent: str, session: str | None = None) -> dict[str, int]:
        """Return how many covered entries one session has."""
        if session is None:
            self._reach.check()
            raise self._reach.unshared("the list of sessions")
        count = self.select_count(Scope(agent, (session,)))
        return {session: count} if count else {}

    def spaces(self, agent: str) -> list[Space]:
        """Return the spaces of the agent's vectors, in which a writer's vector must lie."""
        self._reach.check(WRITE)
        return self._store.spaces(agent)

    def home_space(self) -> Space | None:
        """Return the space of the home's embedder."""
        return self._store.home_space()

    # Writing

    def create(self, agent: str, session: str) -> None:  # noqa: ARG002  The contract's signature.
        """Create nothing: a session begins with its first entry."""
        self._reach.check(WRITE)

    def append(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        """Add entries that the grant covers."""
        with self._reach.access(WRITE) as grant:
            for record in records:
                self._check_line(grant, record, None)
                # Refuse an entry outside the grant before the store compares it with the record, as the
                # result would show whether the contents are equal.
                for existing in self._store.find(agent, record["id"], session):
                    self._check_existing(grant, existing)
            return self._store.append(agent, session, [*map(self._signed, records)])

    def put(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        """Add or replace entries that the grant covers."""
        return self.revise(agent, session, lambda _: records, [record["id"] for record in records])

    def modify(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        """Change an entry that the grant covers both before and after the change."""
        with self._reach.access(WRITE) as grant:

            def checked(entry: Entry) -> Record | None:
                if not grant.covers_entry(entry):
                    raise _missing(entry_id, session)
                line = change(entry)
                if line is None:
                    return None
                self._check_line(grant, line, entry)
                return self._signed(line)

            return self._store.modify(agent, session, entry_id, checked)

    def revise(self, agent: str, session: str, revision: Revision, ids: Sequence[str] = ()) -> list[Entry]:
        """Change several entries that the grant covers both before and after the change."""
        with self._reach.access(WRITE) as grant:

            def checked(live: LiveSession) -> Sequence[Record]:
                lines = revision(_Covered(live, grant))
                for line in lines:
                    existing = live.get(line["id"])
                    if existing is not None:
                        self._check_existing(grant, existing)
                    self._check_line(grant, line, existing)
                return [*map(self._signed, lines)]

            if self._store.session(agent, session) is None:
                checked(_Empty())  # Raises before anything is created.
                self._store.create(agent, session)
            return self._store.revise(agent, session, checked, ids)

    def delete(self, agent: str, session: str, ids: Ids, ts: str) -> int:
        """Hide the entries that the grant covers; return how many there were."""
        if isinstance(ids, Selected):
            self._reach.check(WRITE)
            raise self._reach.unshared("the removal by filters")
        gone: list[Record] = []

        def hide(live: LiveSession) -> Sequence[Record]:
            # Replace the list's content, as the store may call this again.
            gone[:] = [
                {"id": entry_id, "deleted": True, "ts": ts}
                for entry_id in ids
                if live.get(entry_id) is not None
            ]
            return gone

        if self._is_empty(agent, session):
            return 0
        self.revise(agent, session, hide, ids)
        return len(gone)

    def _is_empty(self, agent: str, session: str) -> bool:
        """Return whether a session has no covered entry."""
        self._reach.check(WRITE)
        return not self.select_count(Scope(agent, (session,)))

    def _check_existing(self, grant: Grant, entry: Entry) -> None:
        """Raise if a writer would replace an entry that it may not see."""
        if not grant.covers_entry(entry):
            raise EntryExistsError(f"entry {entry.id!r:.80} exists: choose another id, or none")

    def _check_line(self, grant: Grant, line: Record, existing: Entry | None) -> None:
        """Raise unless a line results in an entry that the grant covers, or deletes one."""
        if existing is not None and is_tombstone(line):
            return
        kind = type_of(line) or (DEFAULT_TYPE if existing is None else existing.type)
        tags = line.get("tags") if "tags" in line or existing is None else existing.tags
        if not grant.covers(kind, tags or ()):
            wanted = [f"of type {' or '.join(grant.types) or 'none'}"] if grant.types is not None else []
            wanted += [f"tagged {', '.join(grant.tags)}"] if grant.tags else []
            raise NotGrantedError(
                f"agent {self._reach.of!r} lets {self._reach.to!r} write only entries "
                f"{' and '.join(wanted)}: nothing was written"
            )

    def _signed(self, line: Record) -> Record:
        """Return a line that names the writer of its new content."""
        if not is_put(line):
            return line
        given = line.get("origin") or {}
        # ``via`` comes last, so that a record cannot override it.
        return line | {"origin": {"by": "program", **given, "via": f"agent/{self._reach.to}"}}


class _Covered:
    """The entries of a session that a grant covers, while no other writer can change them."""

    def __init__(self, live: LiveSession, grant: Grant) -> None:
        self._live = live
        self._grant = grant

    def get(self, entry_id: str) -> Entry | None:
        found = self._live.get(entry_id)
        return found if found is not None and self._grant.covers_entry(found) else None

    def last_life(self, entry_id: str) -> int:
        return self._live.last_life(entry_id)

    def links(self, rel: str) -> list[tuple[str, str]]:
        return [link for link in self._live.links(rel) if self.get(link[0]) is not None]

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Entry]:
        return [*filter(self._grant.covers_entry, self._live.select(kind, where))]


class _Empty:
    """The entries of a session that is missing."""

    def get(self, entry_id: str) -> Entry | None:  # noqa: ARG002  The protocol's signature.
        return None

    def last_life(self, entry_id: str) -> int:  # noqa: ARG002
        return 0

    def links(self, rel: str) -> list[tuple[str, str]]:  # noqa: ARG002
        return []

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Entry]:  # noqa: ARG002
        return []


def _missing(entry_id: str, session: str) -> EntryNotFoundError:
    return EntryNotFoundError(f"there is no entry {entry_id!r:.80} in session {session!r:.80}")


def granted(reach: Reach) -> Store:
    """Return another agent's store, restricted to the scope of grants."""
    return cast("Store", GrantedStore(reach))
