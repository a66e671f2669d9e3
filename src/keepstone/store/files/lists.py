"""Pages of one agent's sessions, of entries and their versions, and of entries that contain a text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import nlargest
from operator import attrgetter

from keepstone.index import Index, Place
from keepstone.log import rewrite
from keepstone.log.line import entry_of, format_time, microseconds, read_time
from keepstone.log.log_file import Log, stat_of
from keepstone.log.scan import Scan
from keepstone.model import Entry, Record, SessionInfo, Version
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.history import versions
from keepstone.store.files.session_files import info_of
from keepstone.store.files.spellings import logs_named, parts
from keepstone.store.paging import Page, decode, encode, first_page

_LAST = 1 << 62
"""Sorts after every row of the same time; used in a cursor that was made without the index."""


def sessions(logs: AgentLogs, limit: int | None, cursor: str | None) -> Page[SessionInfo]:
    """Return sessions, the most recently changed first.

    The folder is not ordered, so each page reads all sessions, unless only the first one is requested and
    known.
    """
    if limit == 1 and cursor is None and (newest := logs.session_files.newest()) is not None:
        info = info_of(newest[0], stat_of(newest[1]))
        return Page([info], encode(format_time(info.modified), info.id))
    infos = [info_of(session, stat_of(status)) for session, _, status in logs.files()]
    if cursor is not None:
        last = tuple(decode(cursor, str, str))
        infos = [info for info in infos if (format_time(info.modified), info.id) < last]
    key = attrgetter("modified", "id")
    found = sorted(infos, key=key, reverse=True) if limit is None else nlargest(limit + 1, infos, key)
    return first_page(found, limit, lambda info: [format_time(info.modified), info.id])


def lines(log: Log) -> Iterator[Record]:
    """Yield the records of the readable lines of a log, without their batch marks."""
    with log.reading() as fd:
        for line in Scan(fd, unfinished=True) if fd is not None else ():
            if line.record is not None:
                yield {key: value for key, value in line.record.items() if key != "batch"}


def entries(
    logs: AgentLogs, session: str, limit: int | None, types: Sequence[str] | None, cursor: str | None
) -> Page[Entry]:
    """Return the newest of a session's entries before a cursor, the oldest first."""
    logs.log(session)  # Refuses an id that no file can have.
    before = None if cursor is None else _place_of(cursor)
    # One more than requested shows whether there are more.
    most = -1 if limit is None else limit + 1
    rows = logs.query_current((session,), Index.newest, session, most, types, before)
    shown = rows if limit is None or len(rows) <= limit else rows[1:]
    found = [entry_of(logs.agent, session, row.record) for row in shown]
    more = len(rows) > len(shown) > 0
    return Page(found, _cursor(found[0], shown[0].eid) if more else None)


def of_state(
    logs: AgentLogs,
    session: str,
    records: Sequence[Record],
    limit: int | None,
    types: Sequence[str] | None,
    cursor: str | None,
) -> Page[Entry]:
    """Return the newest of a past state's records before a cursor as entries, the oldest first."""
    known = records if cursor is None else records[: _end(records, _place_of(cursor))]
    chosen = [record for record in known if types is None or record["type"] in types]
    begin = 0 if limit is None else max(len(chosen) - limit, 0)
    found = [entry_of(logs.agent, session, record) for record in chosen[begin:]]
    return Page(found, _cursor(found[0], _LAST) if begin and found else None)


def _place_of(cursor: str) -> Place:
    return Place(*decode(cursor, int, int, str))


def _end(records: Sequence[Record], before: Place) -> int:
    """Return the position of a cursor's place in a session's records, which may no longer have its entry."""
    for at, record in enumerate(records):
        moment = read_time(record["ts"])
        # If the entry was removed, the page ends before the first later time.
        if record["id"] == before.id or (moment is not None and microseconds(moment) > before.ts):
            return at
    return len(records)


def _cursor(first: Entry, eid: int) -> str:
    return encode(microseconds(first.ts), eid, first.id)


def matching(
    logs: AgentLogs, text: str, session: str | None, limit: int | None, cursor: str | None
) -> Page[tuple[str, str]]:
    """Return session and id of entries with a text, sorted; sessions before the cursor are not read."""
    last = ("", "") if cursor is None else tuple(decode(cursor, str, str))
    names = logs.session_files.all_names(session)
    found = (
        (name, entry_id)
        for name in sorted(names)
        if name >= last[0]
        for entry_id in sorted(
            set[str]().union(*(rewrite.matching(file, text) for file in _files(logs, name, names[name])))
        )
    )
    return first_page((pair for pair in found if cursor is None or pair > last), limit, list)


def _files(logs: AgentLogs, session: str, names: set[str]) -> list[Log]:
    """Return logs, archives and originals of a session, under all spellings of its name."""
    log = logs.log(session)
    others = logs_named(logs.folder, logs.session_files.layout, names - {log.name})
    return [part for source in (log, *others) for part in parts(logs.folder, source)]


def history(
    logs: AgentLogs, entry_id: str, session: str | None, limit: int | None, cursor: str | None
) -> Page[Version]:
    """Return versions of an entry by session, oldest first; sessions before the cursor's are not read."""
    begin, skipped = ("", 0) if cursor is None else decode(cursor, str, int)
    sessions = [session] if session is not None else sorted(name for name, _, _ in logs.files())
    found = (
        (name, number, version)
        for name in sessions
        if name >= begin
        for number, version in enumerate(versions(logs, name, entry_id), 1)
        if name > begin or number > skipped
    )
    page = first_page(found, limit, lambda row: [*row[:2]])
    return Page((version for _, _, version in page), page.next)
