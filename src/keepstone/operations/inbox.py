"""Items of an agent's memory for a person to decide: conflicts, secrets, stale entries, failed tests."""

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
"""Maximum number of newest entries examined, so that a large memory does not keep a person waiting."""

Kind = Literal["contradiction", "duplicate", "secret", "stale", "test"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to decide."""

    kind: Kind
    why: str
    entries: tuple[Entry, ...] = ()
    """The entries that the item is about; in a pair the newer entry is first."""
    proposal: Proposal | None = None
    """The proposal that resolves a pair, or whose rejection means that the entry holds no secret."""
    suggestion: str | None = None
    """The id of the suggestion made from the proposal if it is open, as after an undo."""
    test: MemoryTest | None = None


def items(home: Home, agent: Agent) -> Iterator[Item]:
    """Yield the items that wait for a person, without decided pairs. Writes nothing."""
    known, cleared, waiting = known_of(agent), _cleared(agent), agent.suggestions()
    newest = [*islice(agent.iter_entries(newest_first=True, include_superseded=True), _EXAMINED)]
    for pair in agent.conflicts(since=newest[-1].ts) if newest else ():
        proposal = proposal_of(pair)
        made = _made(proposal, waiting)
        # If a person keeps a pair, its suggestion is rejected. After an undo the suggestion is open, and
        # the pair waits again.
        if made is not None or proposal.key not in known:
            yield Item(pair.kind, proposal.why, tuple(pair), proposal, made)
    for entry in newest:
        kinds = ", ".join(dict.fromkeys(secret.kind for secret in secrets_in(entry.line)))
        if kinds and (entry.id, _looked_at(entry)) not in cleared:
            why = f"it holds what looks like a secret: {kinds}"
            proposal = Proposal("delete", (entry.id,), None, why, (_looked_at(entry),))
            made = _made(proposal, waiting)
            yield Item("secret", kinds, (entry,), proposal, made)
        # The sources of a superseded entry need no check.
        if (stale := entry.stale) and agent.holds(entry):
            yield Item("stale", stale, (entry,))
    tests = [test for test in tests_of(home) if test.agent == agent.slug]
    for result in run_tests(home, tests):
        if result.reason:
            yield Item("test", result.reason, test=result.test)


def _looked_at(entry: Entry) -> str:
    """Return the evidence of a suggestion about a secret; it differs after a change of the entry."""
    return f"{SUSPECTED} {entry.line.get('modified') or entry.line['ts']}"


def _made(proposal: Proposal, suggestions: Iterable[Suggestion]) -> str | None:
    """Return the id of our own suggestion that equals a proposal, None if there is none."""
    do, entries, item, _, evidence = proposal
    said = do, entries, item, evidence, BY
    for suggestion in suggestions:
        if (suggestion.do, suggestion.entries, suggestion.item, suggestion.evidence, suggestion.by) == said:
            return suggestion.id
    return None


def _cleared(agent: Agent) -> set[tuple[str, str]]:
    """Return the ids of entries that a person cleared as holding no secret, each with its evidence."""
    rejected = agent.suggestions("rejected")
    return {
        (suggestion.entries[0], suggestion.evidence[0])
        for suggestion in rejected
        if suggestion.evidence and suggestion.entries
    }
