"""Changes of an agent's memory between two times, entry by entry, from its logs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from keepstone.agent import Agent
from keepstone.log.line import apply, create, is_put, is_tombstone, read_time
from keepstone.model import Record, own_trust
from keepstone.store.suggestion_lines import digest

_WRITERS = {
    "user": "a person",
    "program": "a program",
    "model": "a model",
    "import": "an import",
    "tool": "a tool",
}


class Changed(NamedTuple):
    """One change of an entry."""

    ts: datetime
    session: str
    id: str
    kind: str
    """``"added"``, ``"edited"``, ``"superseded"`` or ``"deleted"``."""
    before: Record | None
    """The entry before the change; None for a new entry, and if a compaction removed that version."""
    after: Record | None
    origin: Record | None = None
    """The writer (``by``) and the surface (``via``), if the line records them."""


def changes(agent: Agent, since: datetime, until: datetime | None = None) -> list[Changed]:
    """Return the changes from ``since`` until just before ``until``, newest first, without access counts.

    Versions that a compaction or a purge has removed from the logs are left out; ``Agent.purge_times`` counts
    purges.
    """
    found = [
        change
        for info in agent.sessions()
        # A log that was not written after ``since`` has no such change and is not read.
        if info.modified >= since
        for change in _of_session(agent, info.id)
        if since <= change.ts and (until is None or change.ts < until)
    ]
    # Reverse the sorted list: of changes with the same time, the later line is the newer one.
    return sorted(found, key=attrgetter("ts"))[::-1]


def _of_session(agent: Agent, session: str) -> Iterator[Changed]:
    state: dict[str, Record] = {}
    for line in agent.session(session).export():
        name, before, at = str(line.get("id")), state.get(str(line.get("id"))), read_time(line.get("ts"))
        if before is None and (is_tombstone(line) or not is_put(line)):
            continue  # The line changes nothing.
        after = None if is_tombstone(line) else create(line) if before is None else apply(before, line)
        state.pop(name, None)
        if after is not None:
            state[name] = after
        # Access counts are not changes to a person.
        if at is None or digest(before) == digest(after):
            continue
        yield Changed(at, session, name, _kind(before, after), before, after, _origin(line))
        edited = read_time(line.get("modified"))
        # After a compaction the line has the entry as last edited; its earlier text is in the archive.
        if before is None and edited is not None and edited > at:
            yield Changed(edited, session, name, "edited", None, after, _origin(line))


def _origin(line: Record) -> Record | None:
    """Return a line's writer and surface, None if it records none; a damaged origin has the least trust."""
    if "origin" not in line:
        return None
    said = line["origin"] if isinstance(line["origin"], dict) else {}
    via = said.get("via")
    return {"by": own_trust(line)} | ({"via": via} if isinstance(via, str) and via else {})


def way_in(change: Changed) -> str:
    """Return the writer and surface of a change in words; empty if its line records none.

    Examples:
        >>> at = datetime(2026, 3, 1)
        >>> origin = {"by": "model", "via": "mcp/claude-code"}
        >>> way_in(Changed(at, "main", "a", "added", None, {}, origin))
        'by a model, via mcp/claude-code'
    """
    if change.origin is None:
        return ""
    via = f", via {change.origin['via']}" if "via" in change.origin else ""
    return f"by {_WRITERS[change.origin['by']]}{via}"


def _kind(before: Record | None, after: Record | None) -> str:
    if before is None or after is None:
        return "added" if before is None else "deleted"
    is_closed = after.get("valid_to") is not None and before.get("valid_to") != after["valid_to"]
    return "superseded" if is_closed else "edited"
