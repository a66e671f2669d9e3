"""Samples of an agent's vectors, from which the usual cosines are known."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from keepstone.store.postgres.entry_rows import stored
from keepstone.store.postgres.statements import Statement
from keepstone.store.postgres.vector_format import vector_of
from keepstone.vector import SAMPLE, Vector

_MANY = 1_000
"""Number of vectors above which a sample is cached."""
_KEPT = 60.0
"""Seconds for which a sample is cached."""


def _sampled(agent: str, space: str, column: str, *values: object) -> Statement:
    """Return the query for a column of the sampled vectors, and for the number of all vectors."""
    return (
        "WITH those AS (SELECT v.key, e.id, e.session FROM vectors v "
        "JOIN entries e ON e.agent = v.agent AND e.key = v.key WHERE v.agent = %s AND v.space = %s), "
        # The same order as by ``keepstone.vector.drawn``, so that both stores sample the same entries.
        f"chosen AS (SELECT key FROM those ORDER BY md5(id), session LIMIT {SAMPLE}) "
        f"SELECT {column}, (SELECT count(*) FROM those) FROM chosen JOIN vectors v ON v.key = chosen.key "
        "WHERE v.agent = %s AND v.space = %s",
        [agent, stored(space), *values, agent, stored(space)],
    )


class VectorSamples:
    """Cache of sampled vectors, for agents with many vectors, as the usual cosines hardly change."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, Any]] = {}

    def cosines(self, agent: str, space: str, vector: Vector) -> list[float] | None:
        """Return a vector's cosines with the cached sample, or None if the sample must be read."""
        at, sample = self._known.get((agent, space), (float("-inf"), None))
        return None if time.monotonic() - at > _KEPT else (sample @ vector).tolist()

    def query(self, agent: str, space: str, vector: Vector) -> Statement:
        """Return the query for a sample, or only for its cosines if the agent may have few vectors."""
        if (agent, space) in self._known:
            return _sampled(agent, space, "vector_send(v.embedding)")
        return _sampled(agent, space, "-(v.embedding <#> %s::vector)", vector)

    def take(self, agent: str, space: str, vector: Vector, rows: Sequence[tuple[Any, ...]]) -> list[float]:
        """Cache the sample in the query's result if it is large; return a vector's cosines with it."""
        known = {key: kept for key, kept in self._known.items() if key[0] != agent}
        at, sample, found = float("-inf"), None, [value for value, _ in rows]
        if found and isinstance(found[0], bytes):
            import numpy as np

            at, sample = time.monotonic(), np.array([vector_of(raw) for raw in found])
            found = (sample @ vector).tolist()
        if rows and rows[0][1] > _MANY:
            known[agent, space] = (at, sample)
        self._known = known
        return found

    def forget(self, agent: str) -> None:
        """Drop an agent's samples, as some of the vectors are purged."""
        self._known = {key: kept for key, kept in self._known.items() if key[0] != agent}
