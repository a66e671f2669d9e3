"""Suggestions that keepstone makes without a model, and the effects of a suggestion, for display."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

from keepstone.agent import Agent
from keepstone.log.line import format_time
from keepstone.model import ConflictingPair, Entry, Record, Suggestion
from keepstone.text.display import clipped

BY = "keepstone"
"""The ``by`` of our own suggestions."""


SUSPECTED = "looks like a secret,"
"""Prefix of the evidence of suggestions about suspected secrets, which do not decide about pairs."""
Key: TypeAlias = tuple[str, frozenset[str]]


class Proposal(NamedTuple):
    """A suggestion that is not made yet."""

    do: str
    entries: tuple[str, ...]
    item: Record | None
    why: str
    evidence: tuple[str, ...]

    @property
    def key(self) -> Key:
        """The key that it shares with suggestions of the same change to the same entries."""
        return self.do, frozenset(self.entries)


class Effect(NamedTuple):
    """An entry that a suggestion would change, add (no ``before``) or end (no ``after``)."""

    id: str
    before: Record | None
    after: Record | None


def of_conflicts(agent: Agent) -> Iterator[Proposal]:
    """Yield proposals for entries that repeat or contradict one another: the newer one stays."""
    yield from map(proposal_of, agent.conflicts())


def proposal_of(pair: ConflictingPair) -> Proposal:
    """Return the suggestion that resolves a pair of entries that repeat or contradict one another."""
    newer, older = pair
    if pair.kind == "contradiction":
        why = "these contradict one another: the newer one holds"
        return Proposal("merge", (older.id, newer.id), {"type": newer.type, "text": newer.text}, why, ())
    # A pin is a person's decision, which outweighs the later time.
    gone, stays = (newer, older) if older.pinned and not newer.pinned else (older, newer)
    why = f"says the same as {stays.id}: {clipped(stays.text, 200)}"
    return Proposal("delete", (gone.id,), None, why, (stays.id,))


MAKERS: tuple[Callable[[Agent], Iterator[Proposal]], ...] = (of_conflicts,)


def known_of(agent: Agent) -> set[Key]:
    """Return the keys of all suggestions, also decided ones, except undone ones and suspected secrets."""
    every = agent.suggestions(None)
    return {
        (suggestion.do, frozenset(suggestion.entries))
        for suggestion in every
        # An undone suggestion may be made again; a suspected secret says nothing about whether two entries
        # agree.
        if suggestion.state != "undone" and not is_suspicion(suggestion)
    }


def is_suspicion(suggestion: Suggestion) -> bool:
    """Return whether a suggestion is about a suspected secret."""
    return "".join(suggestion.evidence).startswith(SUSPECTED)


def suggest(agent: Agent, proposal: Proposal) -> Suggestion:
    """Make the suggestion that a proposal describes."""
    do, entries, item, why, evidence = proposal
    return agent.suggest(do, entries, item, why=why, evidence=evidence, by=BY)


def make(agent: Agent) -> list[Suggestion]:
    """Make the suggestions that ``MAKERS`` propose and that were not made before; return them."""
    made: list[Suggestion] = []
    known = known_of(agent)
    for proposal in (found for maker in MAKERS for found in maker(agent)):
        if proposal.key not in known:
            known.add(proposal.key)
            made.append(suggest(agent, proposal))
    return made


def effects(agent: Agent, suggestion: Suggestion) -> list[Effect]:
    """Return the effects of a suggestion on its present entries; entries that are gone are left out."""
    item, ids = suggestion.item or {}, suggestion.entries
    entries = [*agent.iter_entries(ids=ids, include_superseded=True)] if ids else []
    new: Record = {"ts": format_time(suggestion.ts), "type": entries[0].type if entries else "note"} | item
    if suggestion.do == "supersede" and entries:
        return [Effect(entries[0].id, entries[0].line, new)]
    found = [Effect(entry.id, entry.line, _after(suggestion.do, entry, item)) for entry in entries]
    return [*found, Effect("new", None, new)] if suggestion.do in ("merge", "add") else found


def _after(do: str, entry: Entry, item: Record) -> Record | None:
    if do == "tag":
        return entry.line | {"tags": [*dict.fromkeys((*entry.tags, *item["tags"]))]}
    return entry.line | {"pinned": True} if do == "pin" else None
