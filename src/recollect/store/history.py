"""All versions of an entry, from the archive and the log of its session."""

from __future__ import annotations

from collections.abc import Iterator

from recollect.line import apply, create, id_of, is_put, is_tombstone, payload_of, read_time, text_of
from recollect.model import Record, Version
from recollect.rewrite import only_counts
from recollect.scan import Line, Scan
from recollect.store.agent_logs import AgentLogs


def versions(logs: AgentLogs, session: str, entry_id: str) -> list[Version]:
    """Return an entry's versions, oldest first; counts of access make none."""
    archived = list(_lines(logs, session, entry_id, archive=True))
    lines = list(_lines(logs, session, entry_id, archive=False))
    current: Record | None = None
    found: list[Version] = []
    for number, line in enumerate([*archived, *lines]):
        record = line.record
        if record is None or only_counts(line):
            continue
        if archived and number == len(archived) and current is not None and is_put(record):
            current = create(record)  # The folded line, which says again what the archive's lines came to.
            continue
        after = _after(current, record)
        if after is not None:
            found.append(_version(logs.agent, session, after, record))
        current = None if is_tombstone(record) else after
    return found


def _lines(logs: AgentLogs, session: str, entry_id: str, *, archive: bool) -> Iterator[Line]:
    log = logs.archive(session) if archive else logs.log(session)
    with log.reading() as fd:
        for line in Scan(fd, unfinished=not archive) if fd is not None else ():
            if line.record is not None and id_of(line.record) == entry_id:
                yield line


def _after(current: Record | None, record: Record) -> Record | None:
    if current is not None:
        return apply(current, record)
    return create(record) if is_put(record) and not is_tombstone(record) else None


def _version(agent: str, session: str, record: Record, line: Record) -> Version:
    made, written = read_time(record["ts"]), read_time(line["ts"])
    if made is None or written is None:
        raise ValueError(f"{record['ts']!r} or {line['ts']!r} is no time")
    text, payload = text_of(record), payload_of(record)
    return Version(agent, session, record["id"], made, record["type"], text, payload, record, written)
