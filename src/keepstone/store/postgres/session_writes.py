"""Changes to sessions in PostgreSQL, each in one transaction that locks the session's row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from keepstone.errors import EntryNotFoundError, LockTimeoutError, SessionNotFoundError
from keepstone.log.line import (
    apply,
    check_size,
    create,
    dump,
    entry_of,
    links_of,
    parse,
)
from keepstone.model import Comparison, Entry, Record, Scope
from keepstone.store.matching import matches
from keepstone.store.postgres import purged_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_lists import filtered
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.new_entry import add_new
from keepstone.store.postgres.refolding import lines_in
from keepstone.store.postgres.session_lines import write
from keepstone.store.protocol import Ids, Modification, Revision, ids_and_scope
from keepstone.store.resolving import (
    OnConflict,
    Written,
    counted,
    in_next_life,
    no_deleted_entry,
    no_entry,
    not_before,
    refuse_other,
    resolve,
    revised,
    without_old_vector,
)
from keepstone.store.sharing.acting import ACTING
from keepstone.store.versions import deleted_in


def add(
    connections: Connections, agent: str, session: str, records: Sequence[Record], on_conflict: OnConflict
) -> list[Entry]:
    """Write all records or none; ``on_conflict`` resolves a record against an entry with its id."""
    written = [Written(record, dump(record)) for record in records]
    if not written:
        return []
    # Entries added for another agent are not grouped with other entries, as the grant limits only them.
    if len(written) == 1 and on_conflict is refuse_other and ACTING.get() is None:
        added = add_new(connections, agent, session, written[0])
        if added is not None:
            return [added]

    def work(locked: LockedSession | None) -> list[Record]:
        assert locked is not None  # noqa: S101  It was created.
        results, needed = resolve(written, locked, on_conflict)
        if needed:
            write(locked, needed)
        return results

    ids = list(dict.fromkeys(str(record["id"]) for record in records))
    results = locked(connections, agent, session, ids, work, create=True)
    return [entry_of(agent, session, record) for record in results]


def create_session(connections: Connections, agent: str, session: str) -> None:
    """Create an empty session."""

    def work(locked: LockedSession | None) -> None:
        if locked is not None and locked.next_seq == 1:
            # Writing nothing still registers the agent.
            write(locked, [])

    locked(connections, agent, session, [], work, create=True)


def set_title(connections: Connections, agent: str, session: str, line: Record) -> None:
    """Append the line that gives a session its title."""

    def work(locked: LockedSession | None) -> None:
        if locked is None:
            raise SessionNotFoundError(agent, session)
        life = locked.last_life(str(line["id"])) if purged_rows.purged_life(locked, str(line["id"])) else 0
        given = line | ({"life": life + 1} if life else {})
        write(locked, [Written(given, dump(given))])

    locked(connections, agent, session, [], work)


def modify(connections: Connections, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
    """Change one live entry based on its current state, and return the changed entry."""

    def work(locked: LockedSession | None) -> Entry:
        current = None if locked is None else locked.get(entry_id)
        if locked is None or current is None:
            raise no_entry(entry_id, session)
        entry = entry_of(agent, session, current)
        record = change(entry)
        if record is None:
            return entry
        written = not_before(current, without_old_vector(current, Written(record, dump(record))))
        changed = apply(current, written.record)
        check_size(changed)
        write(locked, [written])
        return entry_of(agent, session, changed)

    return locked(connections, agent, session, [entry_id], work)


def restore(connections: Connections, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
    """Restore a deleted entry and return it."""

    def work(locked: LockedSession | None) -> Entry:
        if locked is None:
            raise no_deleted_entry(entry_id, session)
        rows = lines_in(locked.connection, agent, session, "id = %s", stored(entry_id))
        # Archived lines come first, as they are older.
        lines = sorted(rows, key=lambda row: not row[1])
        last = deleted_in((line for line, _, _ in lines), entry_id)
        record = None if last is None else change(entry_of(agent, session, last))
        if record is None:
            raise no_deleted_entry(entry_id, session)
        begun = in_next_life(Written(record, dump(record)), locked.last_life(entry_id))
        write(locked, [begun])
        return entry_of(agent, session, create(begun.record))

    return locked(connections, agent, session, [entry_id], work)


class _Live:
    """The ``LiveSession`` of a locked session."""

    def __init__(self, locked: LockedSession, known: Iterable[str]) -> None:
        self._locked = locked
        self._known = set(known)
        self.last_life = locked.last_life

    def get(self, entry_id: str) -> Entry | None:
        if entry_id not in self._known:
            self._known.add(entry_id)
            self._locked.read_entries([entry_id])
        record = self._locked.get(entry_id)
        return None if record is None else entry_of(self._locked.agent, self._locked.name, record)

    def links(self, rel: str) -> list[tuple[str, str]]:
        """Return (source, target) of all links of live entries with this relation."""
        rows = self._locked.connection.execute(
            "SELECT id FROM entries WHERE agent = %s AND session = %s AND targets <> '{}' ORDER BY seq",
            self._locked.place,
        )
        ids = [shown(name) for (name,) in rows]
        self._locked.read_entries(ids)
        return [
            (entry_id, link["to"])
            for entry_id in ids
            for link in links_of(self._locked.get(entry_id) or {})
            if link.get("rel") == rel
        ]

    def select(self, kind: str, where: Sequence[Comparison]) -> list[Entry]:
        """Return the live entries of a type that meet all conditions, in log order."""
        agent, session = self._locked.agent, self._locked.name
        scope = Scope(agent, sessions=(session,), types=(kind,), where=tuple(where))
        condition, values = filtered(scope)
        sql = f"SELECT e.id FROM entries e WHERE {condition} ORDER BY e.seq"
        ids = [shown(name) for (name,) in self._locked.connection.execute(sql.encode(), values)]
        self._locked.read_entries(ids)
        records = [record for entry_id in ids if (record := self._locked.get(entry_id)) is not None]
        return [entry_of(agent, session, record) for record in records if matches(scope, session, record)]


def revise(
    connections: Connections, agent: str, session: str, revision: Revision, ids: Sequence[str] = ()
) -> list[Entry]:
    """Write the lines that a revision returns for live entries; return the entries that are live after it."""

    def work(locked: LockedSession | None) -> list[Entry]:
        if locked is None:
            raise EntryNotFoundError(f"there is no session {session!r:.80}")
        live = _Live(locked, ids)
        written, entries = revised(live, (agent, session), revision)
        # ``write`` needs the current state of each changed entry, even if the revision did not read it.
        for line in written:
            live.get(line.record["id"])
        if written:
            write(locked, written)
        return entries

    return locked(connections, agent, session, [*ids], work)


def delete(connections: Connections, agent: str, session: str, ids: Ids, ts: str) -> int:
    """Hide live entries with one write; return their number."""
    named, scope = ids_and_scope(ids)
    wanted = list(dict.fromkeys(named))

    def work(locked: LockedSession | None) -> int:
        live = [] if locked is None else locked.live(wanted, scope)
        lines: list[Record] = [{"id": entry_id, "deleted": True, "ts": ts} for entry_id in live]
        if locked is not None and lines:
            write(locked, [Written(line, dump(line)) for line in lines])
        return len(live)

    return locked(connections, agent, session, wanted, work)


def count(
    connections: Connections, agent: str, session: str, increments: Mapping[str, int], *, wait: bool
) -> bool:
    """Add to the access counts of live entries; without ``wait``, return False if the lock is taken."""

    def work(locked: LockedSession | None) -> None:
        if locked is None:
            return
        records = [record for entry_id in increments if (record := locked.get(entry_id)) is not None]
        if lines := counted(records, increments):
            # Counts may be lost, so the commit does not wait for the disk.
            locked.do("SET LOCAL synchronous_commit = off")
            write(locked, [Written(_parsed(raw), raw) for raw in lines])

    try:
        locked(connections, agent, session, list(increments), work, wait=wait)
    except LockTimeoutError:
        if wait:
            raise
        return False
    return True


def _parsed(raw: bytes) -> Record:
    return parse(raw) or {}
