"""Entries that replace older ones of their session: superseding an entry, and undoing it.

The newer entry has the link ``{"to": older, "rel": "supersedes"}``, the older one a ``valid_to``.
Each function returns the ``Revision`` that writes both in one step; ``Entries.revise`` runs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from keepstone.errors import AlreadySupersededError, EntryExistsError, EntryNotFoundError
from keepstone.log.line import links_of
from keepstone.model import SUPERSEDES, Entry, Record
from keepstone.store.protocol import LiveSession, Revision


def superseding(old_id: str, record: Record, ts: str, *, has_type: bool) -> Revision:
    """Return what adds a new entry in the place of an old one, at a time (RFC 3339).

    ``has_type`` tells whether the record has a type of its own, or takes the old one's.
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
        return [new, {"id": old_id, "ts": ts, "valid_to": new.get("valid_from", new["ts"])}]

    return revise


def reinstating(old_id: str, ts: str, valid_to: str | None) -> Revision:
    """Return what deletes all entries that came after one, and opens that one.

    ``valid_to`` is what the entry had when it was made, and gets back. One that is closed otherwise since
    then is opened also where no newer entry is left: that may have been deleted or purged.
    """

    def revise(session: LiveSession) -> list[Record]:
        old = _live(session, old_id)
        later = list(_after(old_id, _newer(session)))
        if not later and old.line.get("valid_to") in (None, valid_to):
            raise ValueError(f"nothing supersedes entry {old_id!r:.80}: there is nothing to undo")
        opened = {"id": old_id, "ts": ts, "valid_to": valid_to}
        return [opened, *({"id": entry_id, "deleted": True, "ts": ts} for entry_id in later)]

    return revise


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
    """Yield the ids of all entries that came after one, the nearest first; a circle of links ends."""
    seen, edge = {entry_id}, [entry_id]
    while edge:
        edge = [later for one in edge for later in newer.get(one, ()) if later not in seen]
        edge = list(dict.fromkeys(edge))
        seen.update(edge)
        yield from edge


def _before(entry: Entry, session: LiveSession) -> set[str]:
    """Return the ids of an entry and of all that came before it."""
    seen, edge = {entry.id}, [*entry.supersedes]
    while edge:
        if (older_id := edge.pop()) not in seen:
            seen.add(older_id)
            older = session.get(older_id)
            edge += older.supersedes if older is not None else ()
    return seen
