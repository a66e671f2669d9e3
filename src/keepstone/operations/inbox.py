"""Parts of an agent's memory that wait for a person: conflicts, secrets, stale entries and failed tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.model import Entry, Suggestion
from keepstone.operations.running_tests import run_tests, tests_of
from keepstone.operations.suggesting import BY, SUSPECTED, Proposal, known_of, proposal_of
from keepstone.secrets.detection import secrets_in
from keepstone.store.memory_tests import MemoryTest

_EXAMINED = 2_000
"""Newest entries that are examined, so that a large memory does not keep a person waiting."""

Kind = Literal["contradiction", "duplicate", "secret", "stale", "test"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to decide."""

    kind: Kind
    why: str
    entries: tuple[Entry, ...] = ()
    """The entries it is about; of a pair the newer one first."""
    proposal: Proposal | None = None
    """The suggestion that resolves a pair, or whose rejection says that there is no secret."""
    suggestion: str | None = None
    """The id of that suggestion if it is open already, as after an undo."""
    test: MemoryTest | None = None


def items(home: Home, agent: Agent) -> Iterator[Item]:
    """Yield the items that wait for a person, without pairs that were decided. Nothing is written."""
    known, cleared, waiting = known_of(agent), _cleared(agent), agent.suggestions()
    newest = [*islice(agent.iter_entries(newest_first=True, include_superseded=True), _EXAMINED)]
    for pair in agent.conflicts(since=newest[-1].ts) if newest else ():
        proposal = proposal_of(pair)
        made = _made(proposal, waiting)
        # A pair that a person decided to keep is a rejected suggestion. After an undo it is open, and waits
        # again.
        if made is not None or proposal.key not in known:
            yield Item(pair.kind, proposal.why, tuple(pair), proposal, made)
    for entry in newest:
        kinds = ", ".join(dict.fromkeys(secret.kind for secret in secrets_in(entry.line)))
        if kinds and (entry.id, _looked_at(entry)) not in cleared:
            why = f"it holds what looks like a secret: {kinds}"
            proposal = Proposal("delete", (entry.id,), None, why, (_looked_at(entry),))
            made = _made(proposal, waiting)
            yield Item("secret", kinds, (entry,), proposal, made)
        # An entry that was superseded needs no check of its sources any more.
        if (stale := entry.stale) and agent.holds(entry):
            yield Item("stale", stale, (entry,))
    tests = [test for test in tests_of(home) if test.agent == agent.slug]
    for result in run_tests(home, tests):
        if result.reason:
            yield Item("test", result.reason, test=result.test)


def _looked_at(entry: Entry) -> str:
    """Return the evidence of a suggestion about a secret; an entry that changes is looked at again."""
    return f"{SUSPECTED} {entry.line.get('modified') or entry.line['ts']}"


def _made(proposal: Proposal, suggestions: Iterable[Suggestion]) -> str | None:
    """Return the id of our own suggestion that says just what a proposal says."""
    do, entries, item, _, evidence = proposal
    said = do, entries, item, evidence, BY
    for suggestion in suggestions:
        if (suggestion.do, suggestion.entries, suggestion.item, suggestion.evidence, suggestion.by) == said:
            return suggestion.id
    return None


def _cleared(agent: Agent) -> set[tuple[str, str]]:
    """Return the entries that a person cleared as holding no secret, with their digests of then."""
    rejected = agent.suggestions("rejected")
    return {
        (suggestion.entries[0], suggestion.evidence[0])
        for suggestion in rejected
        if suggestion.evidence and suggestion.entries
    }
