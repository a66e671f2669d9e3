"""Samples of an agent's vectors, which show the usual cosines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from keepstone.store.postgres.entry_rows import stored
from keepstone.store.postgres.statements import Statement
from keepstone.store.postgres.vector_format import vector_of
from keepstone.vector import SAMPLE, Vector

_MANY = 1_000
"""Vectors above which a sample is kept."""
_KEPT = 60.0
"""Seconds for which it is kept."""


def _sampled(agent: str, space: str, column: str, *values: object) -> Statement:
    """Return the query of a column of an agent's vectors, the first by ``drawn``, and of their number."""
    return (
        "WITH those AS (SELECT v.key, e.id, e.session FROM vectors v "
        "JOIN entries e ON e.agent = v.agent AND e.key = v.key WHERE v.agent = %s AND v.space = %s), "
        # The same draw as ``drawn``, so that both stores sample the same entries.
        f"chosen AS (SELECT key FROM those ORDER BY md5(id), session LIMIT {SAMPLE}) "
        f"SELECT {column}, (SELECT count(*) FROM those) FROM chosen JOIN vectors v ON v.key = chosen.key "
        "WHERE v.agent = %s AND v.space = %s",
        [agent, stored(space), *values, agent, stored(space)],
    )


class VectorSamples:
    """Sampled vectors of agents that have many, kept for a time, as the usual cosines hardly change."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, Any]] = {}

    def cosines(self, agent: str, space: str, vector: Vector) -> list[float] | None:
        """Return a vector's cosines with the sample, None if it is to be asked for."""
        at, sample = self._known.get((agent, space), (float("-inf"), None))
        return None if time.monotonic() - at > _KEPT else (sample @ vector).tolist()

    def query(self, agent: str, space: str, vector: Vector) -> Statement:
        """Return the query of a sample, or of a vector's cosines with it where an agent may have few."""
        if (agent, space) in self._known:
            return _sampled(agent, space, "vector_send(v.embedding)")
        return _sampled(agent, space, "-(v.embedding <#> %s::vector)", vector)

    def take(self, agent: str, space: str, vector: Vector, rows: Sequence[tuple[Any, ...]]) -> list[float]:
        """Return a vector's cosines with the sample that the query brought."""
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
        """Drop an agent's vectors, some of which are purged."""
        self._known = {key: kept for key, kept in self._known.items() if key[0] != agent}
