"""The hook for a reranker: a model that reads query and text together, and scores how well they fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from keepstone.model import Hit

Reranker: TypeAlias = Callable[[str, list[str]], Sequence[float]]
"""Scores texts for a query, higher is better: called with the query and the texts of the best hits,
it returns one number for each text, in their order."""

RERANKED = 50
"""Number of hits passed to a reranker, or the limit if that is more."""


def reranked(reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return hits in the order that a reranker gives them, with its scores.

    The reranker's errors are raised; there is no fallback to another order.

    Raises:
        ValueError: It did not return exactly one finite score for each text.
    """
    if not hits:
        return []
    scores = [float(score) for score in reranker(query, [hit.text for hit in hits])]
    if len(scores) != len(hits):
        raise ValueError(f"the reranker returned {len(scores)} scores for {len(hits)} texts")
    if not all(math.isfinite(score) for score in scores):
        raise ValueError("the reranker returned a score that is NaN or infinite")
    changed = [
        replace(hit, score=score, why=replace(hit.why, parts={"reranker": score}))
        for hit, score in zip(hits, scores, strict=True)
    ]
    return sorted(changed, key=lambda hit: -hit.score)
