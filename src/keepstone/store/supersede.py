"""Superseding: entries that replace older entries of their session, and undoing this.

The newer entry has the link ``{"to": older, "rel": "supersedes"}``, the older entry a ``valid_to``.
Each function returns the ``Revision`` that writes both in one step; ``Entries.revise`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from keepstone.errors import AlreadySupersededError, EntryExistsError, EntryNotFoundError
from keepstone.log.line import format_time, links_of, read_time
from keepstone.model import SUPERSEDES, Entry, Record, Version
from keepstone.store.protocol import LiveSession, Revision


def superseding(old_id: str, record: Record, ts: str, *, has_type: bool) -> Revision:
    """Return the revision that replaces an old entry by a new one, at a time (RFC 3339).

    Without ``has_type``, the record gets the type of the old entry.
    """
    new_id = record["id"]
    links = record.get("links", [])
    if any(link.get("rel") == SUPERSEDES for link in links_of(record)):
        raise ValueError("the item has a link 'supersedes', which supersede adds by itself: leave it out")

    def revise(session: LiveSession) -> list[Record]:
        old = _live(session, old_id)
        newer = _newer(session)
        if later := list(_after(old_id, newer)):
            raise AlreadySupersededError(
                f"entry {old_id!r:.80} is superseded already: the one valid now is {later[-1]!r:.80}"
            )
        if new_id in _before(old, session):
            raise ValueError(
                f"entry {old_id!r:.80} supersedes {new_id!r:.80}, so that cannot supersede it: "
                "choose another id"
            )
        if session.get(new_id) is not None:
            raise EntryExistsError(f"entry {new_id!r:.80} exists: choose another id, or none")
        new = record if has_type else record | {"type": old.type}
        new = new | {"links": [*links, {"to": old_id, "rel": SUPERSEDES}]}
        if "embedding" in new:
            new["embedding"] = new.pop("embedding")  # Last in the line, as ``Session.add`` writes it.
        closed = max(format_time(old.ts), min(ts, new["ts"]))  # So ``as_of`` shows both at the same time.
        return [new, {"id": old_id, "ts": closed, "valid_to": new.get("valid_from", new["ts"])}]

    return revise


def reinstating(old_id: str, ts: str, versions: Sequence[Version]) -> Revision:
    """Return the revision that deletes all entries that superseded an entry, and reopens the entry.

    The entry gets back the ``valid_to`` that it had before it was superseded, by its ``versions``. A closed
    entry is reopened even if no newer entry is left, as the newer entry may have been deleted or purged.
    """

    def revise(session: LiveSession) -> list[Record]:
        old = _live(session, old_id)
        later = list(_after(old_id, _newer(session)))
        newer = session.get(later[0]) if later else None
        valid_to = _end_before(versions, newer)
        if not later and old.line.get("valid_to") in (None, valid_to):
            raise ValueError(f"nothing supersedes entry {old_id!r:.80}: there is nothing to undo")
        opened = {"id": old_id, "ts": ts, "valid_to": valid_to}
        return [opened, *({"id": entry_id, "deleted": True, "ts": ts} for entry_id in later)]

    return revise


def _end_before(versions: Sequence[Version], newer: Entry | None) -> str | None:
    """Return the ``valid_to`` that an entry had before ``newer`` replaced it.

    A ``valid_to`` that had already passed was set for an earlier replacement, which no longer exists.
    """
    # Versions before a deletion belong to an earlier life.
    begin = max((at + 1 for at, version in enumerate(versions) if version.deleted), default=0)
    ends = [version.line.get("valid_to") for version in versions[begin:]]
    changes = [at for at in range(len(ends) - 1, 0, -1) if ends[at] != ends[at - 1]]
    # The end was set before the newer entry was made, so the newer entry did not set it.
    if changes and newer is not None and versions[begin + changes[0]].written < newer.ts:
        return ends[-1]
    for at in changes:
        before = read_time(ends[at - 1])
        if before is None or before > versions[begin + at].written:
            return ends[at - 1]
    return ends[0] if ends else None


def _live(session: LiveSession, entry_id: str) -> Entry:
    entry = session.get(entry_id)
    if entry is None:
        raise EntryNotFoundError(f"there is no entry {entry_id!r:.80} in this session")
    return entry


def _newer(session: LiveSession) -> Mapping[str, Sequence[str]]:
    """Return the ids of the entries that supersede each entry."""
    newer: dict[str, list[str]] = {}
    for source, target in session.links(SUPERSEDES):
        newer.setdefault(target, []).append(source)
    return newer


def _after(entry_id: str, newer: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the ids of all entries that superseded an entry, the nearest first; cycles of links end."""
    seen, edge = {entry_id}, [entry_id]
    while edge:
        edge = [later for older in edge for later in newer.get(older, ()) if later not in seen]
        edge = list(dict.fromkeys(edge))
        seen.update(edge)
        yield from edge


def _before(entry: Entry, session: LiveSession) -> set[str]:
    """Return the ids of an entry and of all entries that it superseded, directly or indirectly."""
    seen, edge = {entry.id}, [*entry.supersedes]
    while edge:
        if (older_id := edge.pop()) not in seen:
            seen.add(older_id)
            older = session.get(older_id)
            edge += older.supersedes if older is not None else ()
    return seen
