"""Our own maker of suggestions, which needs no model, and what a suggestion would change, for people."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from keepstone.agent import Agent
from keepstone.log.line import format_time
from keepstone.model import Entry, Record, Suggestion
from keepstone.text.display import clipped

BY = "keepstone"
"""Who our own suggestions are by."""


class Proposal(NamedTuple):
    """A suggestion to be made."""

    do: str
    entries: tuple[str, ...]
    item: Record | None
    why: str
    evidence: tuple[str, ...]


class Effect(NamedTuple):
    """An entry that a suggestion would change, add (no ``before``) or end (no ``after``)."""

    id: str
    before: Record | None
    after: Record | None


def of_conflicts(agent: Agent) -> Iterator[Proposal]:
    """Yield proposals for entries that repeat or contradict one another: the newer one stays."""
    for pair in agent.conflicts():
        newer, older = pair
        if pair.kind == "contradiction":
            why = "these contradict one another: the newer one holds"
            kept = {"type": newer.type, "text": newer.text}
            yield Proposal("merge", (older.id, newer.id), kept, why, ())
        else:
            gone, stays = (newer, older) if older.pinned and not newer.pinned else (older, newer)
            why = f"says the same as {stays.id}: {clipped(stays.text, 200)}"
            yield Proposal("delete", (gone.id,), None, why, (stays.id,))


MAKERS: tuple[Callable[[Agent], Iterator[Proposal]], ...] = (of_conflicts,)


def make(agent: Agent) -> list[Suggestion]:
    """Suggest what our makers propose, but for what was suggested before; return what is new."""
    made: list[Suggestion] = []
    known = {(one.do, frozenset(one.entries)) for one in agent.suggestions(None)}
    for do, entries, item, why, evidence in (found for maker in MAKERS for found in maker(agent)):
        if (key := (do, frozenset(entries))) not in known:
            known.add(key)
            made.append(agent.suggest(do, entries, item, why=why, evidence=evidence, by=BY))
    return made


def effects(agent: Agent, suggestion: Suggestion) -> list[Effect]:
    """Return what a suggestion would change, as its entries are now; entries that are gone are left out."""
    item, ids = suggestion.item or {}, suggestion.entries
    there = [*agent.iter_entries(ids=ids, include_superseded=True)] if ids else []
    new: Record = {"ts": format_time(suggestion.ts), "type": there[0].type if there else "note"} | item
    if suggestion.do == "supersede" and there:
        return [Effect(there[0].id, there[0].line, new)]
    found = [Effect(entry.id, entry.line, _after(suggestion.do, entry, item)) for entry in there]
    return [*found, Effect("new", None, new)] if suggestion.do in ("merge", "add") else found


def _after(do: str, entry: Entry, item: Record) -> Record | None:
    if do == "tag":
        return entry.line | {"tags": [*dict.fromkeys((*entry.tags, *item["tags"]))]}
    return entry.line | {"pinned": True} if do == "pin" else None
