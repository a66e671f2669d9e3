"""Lists from PostgreSQL: sessions, entries and their versions, each in pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from keepstone.log.line import entry_of, format_time, from_microseconds, links_of, microseconds, parse
from keepstone.log.rewrite import holding, only_counts
from keepstone.log.scan import Line
from keepstone.log.titles import TITLE_ID, is_title, title_of
from keepstone.model import BOUNDS, Entry, Record, Scope, SessionInfo, SessionSummary, Version
from keepstone.store.matching import matches
from keepstone.store.paging import Page, decode, encode, first_page
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_rows import facts_of_keys, facts_wanted, record_of, shown, stored
from keepstone.store.postgres.refolding import line_of
from keepstone.store.session_texts import FIRST, SessionTexts, texts_of
from keepstone.store.versions import state_of, versions_of

RECORD = "coalesce(e.record, l.line)"
LOADED = f"e.session, {RECORD}"
LINES = (
    "LEFT JOIN lines l ON l.agent = e.agent AND l.session = e.session AND l.seq = e.seq AND NOT l.archived"
)
FROM = f"FROM entries e {LINES}"
"""The FROM clause for entries, with the log line that has the record if column ``record`` is null."""
_STEP = 500
"""Number of rows read at a time if only their records show whether they match."""
_LINES, _MOST_LINES = 5_000, 50_000
"""Maximum numbers of lines that one query reads, from one session and from several sessions."""


def loaded(agent: str, row: Sequence[Any]) -> Entry:
    """Return the entry of a row of ``LOADED``."""
    return entry_of(agent, shown(row[0]), record_of(row[1]))


def sessions(
    connections: Connections, agent: str, limit: int | None, cursor: str | None
) -> Page[SessionInfo]:
    """Return a page of sessions, the last modified first, then by id in descending order."""
    after, values = "", [agent]
    if cursor is not None:
        ts, name = decode(cursor, str, str)
        after, values = "AND (modified, session) < (%s::timestamptz, %s)", [agent, ts, stored(name)]
    most = "" if limit is None else f"LIMIT {limit + 1}"
    rows = connections.read(
        agent,
        f"SELECT session, modified, size FROM sessions WHERE agent = %s {after} "
        f"ORDER BY modified DESC, session DESC {most}",
        values,
    )
    found = [SessionInfo(shown(name), modified.astimezone(UTC), size) for name, modified, size in rows]
    return first_page(found, limit, lambda info: [format_time(info.modified), info.id])


def session(connections: Connections, agent: str, name: str) -> SessionInfo | None:
    """Return one session, or None if it is missing."""
    rows = connections.read(
        agent, "SELECT modified, size FROM sessions WHERE agent = %s AND session = %s", (agent, stored(name))
    )
    return next((SessionInfo(name, modified.astimezone(UTC), size) for modified, size in rows), None)


def summaries(
    connections: Connections, agent: str, names: Sequence[str] | None, *, texts: bool
) -> list[SessionSummary]:
    """Return summaries of some sessions or of all, the one with the newest entry first."""
    chosen, values = ("", ()) if names is None else ("AND s.session = ANY(%s)", ([*map(stored, names)],))
    rows = connections.read(
        agent,
        "SELECT s.session, s.entries, s.modified, (SELECT l.line FROM lines l WHERE l.agent = s.agent "
        "AND l.session = s.session AND l.id = %s ORDER BY l.seq DESC LIMIT 1), "
        "(SELECT max(e.ts) FROM entries e WHERE e.agent = s.agent AND e.session = s.session) "
        f"FROM sessions s WHERE s.agent = %s {chosen}",
        (TITLE_ID, agent, *values),
    )
    found: list[SessionSummary] = []
    for stored_name, count, modified, line, newest in rows:
        name, said = shown(stored_name), None if line is None else parse(line)
        title = title_of(said) if said is not None and is_title(said) else None
        made = _texts(connections, agent, name) if texts else SessionTexts()
        changed, whole = (newest or modified).astimezone(UTC), title or made.title or None
        found.append(SessionSummary(name, whole, bool(title), count, changed, made.preview, made.is_chat))
    return sorted(found, key=lambda summary: (summary.changed, summary.id), reverse=True)


def _texts(connections: Connections, agent: str, name: str) -> SessionTexts:
    where = "WHERE e.agent = %s AND e.session = %s"
    place = (agent, stored(name))
    first, last = connections.read_all(
        agent,
        [
            (f"SELECT {LOADED} {FROM} {where} ORDER BY e.ts, e.seq LIMIT {FIRST}", place),
            (f"SELECT {LOADED} {FROM} {where} ORDER BY e.ts DESC, e.seq DESC LIMIT 1", place),
        ],
    )
    newest = loaded(agent, last[0]).text if last else ""
    return texts_of((loaded(agent, row).line for row in first), newest)


def find(connections: Connections, agent: str, entry_id: str, name: str | None) -> list[Entry]:
    """Return the live entries with an id, at most one per session."""
    chosen, values = ("", ()) if name is None else ("AND e.session = %s", (stored(name),))
    sql = f"SELECT {LOADED} {FROM} WHERE e.agent = %s AND e.id = %s {chosen} ORDER BY e.session"
    return [loaded(agent, row) for row in connections.read(agent, sql, (agent, stored(entry_id), *values))]


def entries(
    connections: Connections,
    agent: str,
    name: str,
    limit: int | None,
    types: Sequence[str] | None,
    cursor: str | None,
) -> Page[Entry]:
    """Return a page of a session's newest entries before the cursor, oldest first."""
    where = "e.agent = %s AND e.session = %s"
    values: list[Any] = [agent, stored(name)]
    if types is not None:
        where, values = f"{where} AND e.type = ANY(%s)", [*values, [*map(stored, types)]]
    if cursor is not None:
        ts, seq = decode(cursor, int, int)
        where = f"{where} AND (e.ts, e.seq) < (%s, %s)"
        values = [*values, from_microseconds(ts), seq]
    most = "" if limit is None else f"LIMIT {limit + 1}"
    rows = connections.read(
        agent, f"SELECT e.seq, {LOADED} {FROM} WHERE {where} ORDER BY e.ts DESC, e.seq DESC {most}", values
    )
    shown_rows = rows[:limit]
    found = [loaded(agent, row[1:]) for row in shown_rows][::-1]
    more = len(rows) > len(shown_rows) > 0
    return Page(found, encode(microseconds(found[0].ts), shown_rows[-1][0]) if more else None)


def of_records(
    agent: str,
    name: str,
    records: Sequence[Record],
    limit: int | None,
    types: Sequence[str] | None,
    cursor: str | None,
) -> Page[Entry]:
    """Return a page of the newest of a session's records before the cursor, as entries."""
    chosen = [(at, record) for at, record in enumerate(records) if types is None or record["type"] in types]
    if cursor is not None:
        end = decode(cursor, int)[0]
        chosen = [pair for pair in chosen if pair[0] < end]
    begin = 0 if limit is None else max(len(chosen) - limit, 0)
    found = chosen[begin:]
    return Page(
        (entry_of(agent, name, record) for _, record in found),
        encode(found[0][0]) if begin and found else None,
    )


def lines(
    connections: Connections, agent: str, name: str, condition: str = "NOT archived", *more: Any
) -> Iterator[tuple[Line, bool]]:
    """Yield a session's lines with their archived flags, archived lines first, then by seq; in batches."""
    for seq, _, raw, entry_id, ts, archived in line_rows(connections, agent, name, condition, *more):
        yield line_of(seq, raw, entry_id, ts), archived


def line_rows(
    connections: Connections, agent: str, name: str, condition: str = "true", *more: Any
) -> Iterator[tuple[Any, ...]]:
    """Yield the columns seq, folded, line, id, ts and archived of a session's lines."""
    for archived in (True, False):
        last = (-1, False)
        while True:
            rows = connections.read(
                agent,
                "SELECT seq, folded, line, id, ts, archived FROM lines "
                "WHERE agent = %s AND session = %s AND archived = %s "
                f"AND (seq, folded) > (%s, %s) AND {condition} ORDER BY seq, folded LIMIT {_LINES}",
                (agent, stored(name), archived, *last, *more),
            )
            yield from rows
            if len(rows) < _LINES:
                break
            last = rows[-1][:2]


def state(connections: Connections, agent: str, name: str, moment: datetime | None) -> Sequence[Record]:
    """Return a session's entries at a time, or now (None), including archived entries."""
    return state_of(lines(connections, agent, name, "true"), moment)


def states(
    connections: Connections, agent: str, moment: datetime, names: Sequence[str] | None
) -> dict[str, Sequence[Record]]:
    """Return the entries of some sessions, or of all (None), as they were at a time."""
    chosen, values = ("", []) if names is None else ("AND session = ANY(%s)", [[*map(stored, names)]])
    found: dict[str, list[tuple[Line, bool]]] = {}
    last: tuple[Any, ...] = ("", False, -1, False)
    while True:
        rows = connections.read(
            agent,
            "SELECT session, NOT archived, seq, folded, line, id, ts FROM lines WHERE agent = %s "
            f"{chosen} AND (session, NOT archived, seq, folded) > (%s, %s, %s, %s) "
            f"ORDER BY session, NOT archived, seq, folded LIMIT {_MOST_LINES}",
            (agent, *values, *last),
        )
        for name, in_log, seq, _, raw, entry_id, ts in rows:
            found.setdefault(shown(name), []).append((line_of(seq, raw, entry_id, ts), not in_log))
        if len(rows) < _MOST_LINES:
            wanted = found if names is None else names
            return {name: state_of(found.get(name, ()), moment) for name in wanted}
        last = rows[-1][:4]


def session_names(connections: Connections, agent: str) -> list[str]:
    """Return the ids of all sessions, sorted."""
    rows = connections.read(agent, "SELECT session FROM sessions WHERE agent = %s ORDER BY session", (agent,))
    return [shown(name) for (name,) in rows]


def history(
    connections: Connections,
    agent: str,
    entry_id: str,
    name: str | None,
    limit: int | None,
    cursor: str | None,
) -> Page[Version]:
    """Return an entry's versions by session, oldest first, with deletions."""
    begin, skipped = ("", 0) if cursor is None else decode(cursor, str, int)
    rows = connections.read(
        agent,
        "SELECT DISTINCT session FROM lines WHERE agent = %s AND id = %s ORDER BY session",
        (agent, stored(entry_id)),
    )
    names = [shown(row[0]) for row in rows]
    found = (
        (session, number, version)
        for session in names
        if session >= begin and name in (None, session)
        for number, version in enumerate(_versions(connections, agent, session, entry_id), 1)
        if session > begin or number > skipped
    )
    page = first_page(found, limit, lambda row: [*row[:2]])
    return Page((version for _, _, version in page), page.next)


def _versions(connections: Connections, agent: str, name: str, entry_id: str) -> list[Version]:
    found = [
        (line, archived)
        for line, archived in lines(connections, agent, name, "id = %s", stored(entry_id))
        if line.record is not None and not only_counts(line)
    ]
    archive, log = ([line for line, archived in found if archived is wanted] for wanted in (True, False))
    return versions_of(agent, name, archive, log)


def matching(
    connections: Connections, agent: str, text: str, name: str | None, limit: int | None, cursor: str | None
) -> Page[tuple[str, str]]:
    """Return the sorted (session, id) pairs, after the cursor's pair, of entries that contain a text."""
    last = ("", "") if cursor is None else tuple(decode(cursor, str, str))
    names = session_names(connections, agent) if name is None else [name]
    holds = holding(text)

    def ids_in(session: str) -> list[str]:
        found = (holds(line, line.raw) for line, _ in lines(connections, agent, session, "true"))
        return sorted({entry_id for entry_id in found if entry_id is not None})

    found = ((session, entry_id) for session in names if session >= last[0] for entry_id in ids_in(session))
    return first_page((pair for pair in found if cursor is None or pair > last), limit, list)


def linked(
    connections: Connections, agent: str, ids: Sequence[str], rel: str | None, limit: int
) -> list[Entry]:
    """Return up to ``limit`` live entries that link to one of the ids, by a relation or by any (None)."""
    wanted = frozenset(ids)
    rows = connections.read(
        agent,
        f"SELECT {LOADED} {FROM} WHERE e.agent = %s AND e.targets <> '{{}}' AND e.targets && %s::text[] "
        "ORDER BY e.session, e.seq",
        (agent, [*map(stored, ids)]),
    )
    found = (loaded(agent, row) for row in rows)
    return [
        entry
        for entry in found
        if any(link["to"] in wanted and rel in (None, link.get("rel")) for link in links_of(entry.line))
    ][:limit]


def pinned(connections: Connections, agent: str) -> list[Entry]:
    """Return the live entries that are pinned, by time."""
    sql = f"SELECT {LOADED} {FROM} WHERE e.agent = %s AND e.pinned ORDER BY e.ts, e.session, e.seq"
    return [loaded(agent, row) for row in connections.read(agent, sql, (agent,))]


def standing(connections: Connections, agent: str, limit: int) -> list[Entry]:
    """Return the newest live preferences and decisions of all sessions, by time and then by session."""
    sql = (
        f"SELECT {LOADED} {FROM} WHERE e.agent = %s AND e.type IN ('decision', 'preference') "
        "ORDER BY e.ts DESC, e.session DESC, e.seq DESC LIMIT %s"
    )
    return [loaded(agent, row) for row in connections.read(agent, sql, (agent, limit))][::-1]


def entry_counts(connections: Connections, agent: str, name: str | None) -> dict[str, int]:
    """Return the number of live entries of each session, or of one; empty sessions are left out."""
    chosen, values = ("", ()) if name is None else ("AND session = %s", (stored(name),))
    sql = f"SELECT session, entries FROM sessions WHERE agent = %s AND entries > 0 {chosen}"
    return {shown(session): count for session, count in connections.read(agent, sql, (agent, *values))}


def conditions(scope: Scope, *, alias: str = "e") -> tuple[str, list[Any]]:
    """Return a scope as an SQL condition with its values.

    The condition leaves out ``where`` and ``valid_at``: the caller checks them on loaded entries.
    """
    parts, values = [f"{alias}.agent = %s"], [scope.agent]

    def add(condition: str, value: Any) -> None:
        parts.append(f"{alias}.{condition}")
        values.append(value)

    for column, names in (("session", scope.sessions), ("type", scope.types), ("id", scope.ids)):
        if names is not None and len(names) == 1:
            add(f"{column} = %s", stored(names[0]))
        elif names is not None:
            add(f"{column} = ANY(%s)", [*map(stored, names)])
    if scope.tags:
        add("tags @> %s::text[]", [*map(stored, scope.tags)])
    if scope.since is not None:
        add("ts >= %s", scope.since)
    if scope.until is not None:
        add("ts < %s", scope.until)
    return " AND ".join(parts), values


def filtered(scope: Scope) -> tuple[str, list[Any]]:
    """Return a scope as an SQL condition that also uses the indexed facts of entries for ``where``."""
    condition, values = conditions(scope)
    for digests in facts_wanted(scope.agent, scope.where):
        condition, values = f"{condition} AND e.facts && %s::bigint[]", [*values, digests]
    return condition, values


def select(
    connections: Connections, scope: Scope, limit: int | None, cursor: str | None, *, newest_first: bool
) -> Page[Entry]:
    """Return a page of the entries that a scope selects, sorted by time, session and seq."""
    order, sign = ("DESC", "<") if newest_first else ("ASC", ">")
    place = None if cursor is None else decode(cursor, int, str, int)
    condition, values = filtered(scope)
    by = ", ".join(f"e.{column} {order}" for column in ("ts", "session", "seq"))
    wanted = None if limit is None else limit + 1
    found: list[tuple[list[Any], Entry]] = []
    step = _STEP if wanted is None else wanted
    while wanted is None or len(found) < wanted:
        after, given = "", list[Any]()
        if place is not None:
            after, given = (
                f"AND (e.ts, e.session, e.seq) {sign} (%s, %s, %s)",
                [from_microseconds(place[0]), stored(place[1]), place[2]],
            )
        sql = f"SELECT e.seq, {LOADED} {FROM} WHERE {condition} {after} ORDER BY {by} LIMIT %s"
        rows = connections.read(scope.agent, sql, [*values, *given, step])
        for seq, *row in rows:
            entry = loaded(scope.agent, row)
            place = [microseconds(entry.ts), entry.session, seq]
            if matches(scope, entry.session, entry.line):
                found.append((place, entry))
        if len(rows) < step:
            break
        step = _STEP
    if limit is None or len(found) <= limit or not limit:
        return Page(entry for _, entry in found[:limit])
    return Page((entry for _, entry in found[:limit]), encode(*found[limit - 1][0]))


def select_count(connections: Connections, scope: Scope) -> int:
    """Return how many entries a scope selects."""
    if scope.where:
        return len(select(connections, scope, None, None, newest_first=False))
    condition, values = conditions(scope)
    if scope.valid_at is None:
        [(found,)] = connections.read(
            scope.agent, f"SELECT count(*) FROM entries e WHERE {condition}", values
        )
        return int(found)
    sql = (
        f"SELECT {LOADED}, 1 {FROM} WHERE {condition} AND e.facts && %s::bigint[] UNION ALL "
        f"SELECT NULL, NULL, count(*) FROM entries e WHERE {condition} AND NOT e.facts && %s::bigint[]"
    )
    digests = facts_of_keys(scope.agent, BOUNDS)
    count = 0
    for session, record, number in connections.read(scope.agent, sql, [*values, digests, *values, digests]):
        entry = None if session is None else loaded(scope.agent, (session, record))
        count += number if entry is None else matches(scope, entry.session, entry.line)
    return count
