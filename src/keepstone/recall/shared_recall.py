"""Recall over an agent's own entries and the entries that other agents share with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from keepstone.model import Hits, Scope
from keepstone.recall.pipeline import recall
from keepstone.recall.question import Question
from keepstone.recall.rerank import Reranker
from keepstone.recall.vectors import Vectors
from keepstone.store.sharing.granted_store import Reach
from keepstone.store.trust import Trusted


def recall_shared(
    reaches: Sequence[Reach],
    question: Question,
    scope: Scope,
    vectors_of: Callable[[str], Vectors | None],
    reranker: Reranker | None,
) -> list[Hits]:
    """Return the hits in the shared entries of some agents.

    Raises:
        NotGrantedError: An agent does not share its entries, or the question has ``as_of``.
    """
    for reach in reaches:
        reach.check()  # All agents are checked before anything is searched.
        if question.as_of is not None:
            raise reach.unshared("earlier states: leave out as_of")
    found = []
    for reach in reaches:
        with reach.access() as grant:
            part = grant.narrowed(_of(scope, reach.of))
            found.append(recall(reach.store, vectors_of(reach.of), question, part, reranker))
    return found


def _of(scope: Scope, agent: str) -> Scope:
    """Return a scope for another agent; trust conditions then use that agent's sources."""
    where = (
        replace(condition, agent=agent) if isinstance(condition, Trusted) else condition
        for condition in scope.where
    )
    return replace(scope, agent=agent, where=tuple(where))


def merged(own: Hits, others: Sequence[Hits], limit: int) -> Hits:
    """Return the hits of several agents in one order: by relevance, which compares across agents.

    Scores are comparable only within one agent; there they order hits of equal relevance.
    """
    if not others:
        return own
    found = [own, *others]
    # Sorting is stable: at equal relevance the agent's own hits come first, and each agent's hits keep the
    # order of their scores.
    hits = sorted((hit for hits in found for hit in hits), key=lambda hit: -hit.relevance)
    named = next((hits for hits in found if hits.embedder is not None), own)
    return Hits(
        hits[:limit],
        embedder=named.embedder,
        reason=named.reason,
        pending=sum(hits.pending for hits in found),
        searched=named.searched,
        stale=any(hits.stale for hits in found),
        skipped=own.skipped,
        took_ms=sum(hits.took_ms for hits in found),
    )
