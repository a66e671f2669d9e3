"""The provenance of an entry: its sources and the entries derived from it, as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from keepstone.agent import Agent
from keepstone.model import Entry

_DEEPEST = 20
"""Maximum levels of sources, and of derived entries, that are followed."""
_Find = Callable[[str, str], Iterable[Entry]]


@dataclass(frozen=True, slots=True)
class Branch:
    """An entry in the tree, with the branches below it."""

    entry: Entry
    below: list[Branch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Origins:
    """The tree of an entry."""

    sources: list[Branch]
    derived: list[Branch]
    gone: list[str]
    """Ids of sources that the entry names and that no longer exist."""


def origins_of(agent: Agent, entry: Entry) -> Origins:
    """Return the sources of an entry, and the entries derived from it; each entry is followed once."""
    # Each direction has its own set: an entry can be a source in one and derived in the other.
    sources, derived = ([*_branches(entry, find, set(), 0)] for find in (agent.sources, agent.derived))
    source_ids = {branch.entry.id for branch in sources}
    named = (entry.origin or {}).get("from", ())
    return Origins(sources, derived, [name for name in named if name not in source_ids])


def _branches(entry: Entry, find: _Find, seen: set[tuple[str, str]], depth: int) -> Iterator[Branch]:
    # Entries may be derived from one another in a circle, as links can be edited by hand.
    key = (entry.session, entry.id)
    if key not in seen and depth < _DEEPEST:
        seen.add(key)
        for related in find(entry.id, entry.session):
            yield Branch(related, [*_branches(related, find, seen, depth + 1)])


def said_by(entry: Entry) -> str:
    """Return an entry's trust, its writer and surface, and the reason if it is stale, in words.

    Examples:
        >>> said_by(agent.get(decision.id))
        'trust program, said by program'
    """
    origin, stale = entry.origin or {}, entry.stale
    via = f" via {via}" if (via := origin.get("via")) else ""
    return f"trust {entry.trust}, said by {origin.get('by', 'program')}{via}" + (
        f", stale: {stale}" if stale else ""
    )
