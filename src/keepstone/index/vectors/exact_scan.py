"""Exact int8 scan of one generation: candidates that float32 then rescores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keepstone.index.vectors.hnsw import Graph
from keepstone.index.vectors.scope_filter import Range, ScopeFilter, mask, ranges
from keepstone.index.vectors.segment import Generation, quantized
from keepstone.index.vectors.vector_table import best
from keepstone.vector import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FEWEST, _TIMES = 100, 4
"""Maximum number of rows that float32 rescores: this many, or this many times the limit."""
_FEWEST_OF_GRAPH = 40
"""Number of rows asked of a graph, or ``_TIMES`` times the limit if that is more."""
_MANY = 2_000
"""Rows of a range from which the best are chosen by themselves."""
_STEPS = 4.0
"""Error bound of an int8 cosine in quantization steps, far above what occurs by chance."""
_SPARSE = 4
"""If fewer than one row in N is in scope, the rows in scope are gathered first."""


class ExactScan:
    """The rows of a generation, without those that were removed since."""

    def __init__(self, generation: Generation) -> None:
        import numpy as np

        self.generation = generation
        self._names = generation.names()
        self._sessions = _sessions(generation.sids)
        self.dead: NDArray[np.intp] = np.flatnonzero(generation.scales == 0)
        """The removed rows, in order."""

    def remove(self, vids: NDArray[np.int64]) -> None:
        """Remove vectors that no longer exist."""
        import numpy as np

        rows = np.flatnonzero(np.isin(self.generation.vids, vids))
        self.dead = np.union1d(self.dead, rows)

    def range_of(self, sid: int | None) -> Range:
        """Return the rows of a session, or of all."""
        return (0, self.generation.header.rows) if sid is None else self._sessions.get(sid, (0, 0))

    def live(self, at: Range) -> int:
        """Return how many rows of a range still exist."""
        begin, end = self.dead.searchsorted(at)
        return at[1] - at[0] - int(end - begin)

    def nearest(self, vector: Vector, asked: ScopeFilter, limit: int) -> list[int]:
        """Return the numbers of the vectors in scope among which the nearest are."""
        import numpy as np

        query, scale = self._query(vector)
        margin = _STEPS * (self.generation.steps + scale) / scale
        rows, scores = [np.empty(0, np.intp)], [np.empty(0, np.float32)]
        for at in ranges(self.generation, self._sessions, asked):
            there, near = self._scan(query, at, asked)
            there = np.arange(*at) if there is None else there
            # Few are compared with those of all other ranges as well.
            chosen = best(near, limit, margin) if len(near) > _MANY else slice(None)
            rows.append(there[chosen])
            scores.append(near[chosen])
        return self._most(np.concatenate(rows), np.concatenate(scores), limit, margin)

    def _most(
        self, rows: NDArray[np.intp], scores: NDArray[np.float32], limit: int, margin: float
    ) -> list[int]:
        """Return the vectors of those rows that may be among the best, the best of them if they are many."""
        import numpy as np

        chosen = best(scores, limit, margin)
        chosen = chosen[scores[chosen] > -np.inf]
        order = np.lexsort((rows[chosen], -scores[chosen]))[: max(_FEWEST, _TIMES * limit)]
        return self._vids(rows[chosen[order]])

    def _scan(
        self, query: NDArray[np.int8], at: Range, asked: ScopeFilter
    ) -> tuple[NDArray[np.intp] | None, NDArray[np.float32]]:
        """Return scores of the rows of a range, and which rows they are of if not of all of them."""
        import numpy as np

        masked, begin, end = mask(self.generation, self._names, at, asked), *at
        live = self.dead[slice(*self.dead.searchsorted(at))] - begin
        if masked is not None and np.count_nonzero(masked) * _SPARSE < end - begin:
            masked[live] = False
            rows = np.flatnonzero(masked) + begin
            there = self.generation.between(begin, end)[rows - begin]
            return rows, _products(query, there, self.generation.scales[rows])
        there = self.generation.between(begin, end)
        scores = _products(query, there, self.generation.scales[begin:end])
        scores[live] = -np.inf
        if masked is not None:
            scores[~masked] = -np.inf
        return None, scores

    def nearest_by(self, graph: Graph, vector: Vector, limit: int) -> list[int]:
        """Return the numbers of the vectors that a graph finds among which the nearest are."""
        import numpy as np

        query, scale = self._query(vector)
        rows, scores = graph.nearest(query, max(_FEWEST_OF_GRAPH, _TIMES * limit))
        if len(self.dead):
            live = ~np.isin(rows, self.dead)
            rows, scores = rows[live], scores[live]
        return self._vids(rows[best(scores, limit, _STEPS * (self.generation.steps + scale))])

    def _vids(self, rows: NDArray[np.intp]) -> list[int]:
        return list(self.generation.vids[rows].tolist())

    def _query(self, vector: Vector) -> tuple[NDArray[np.int8], float]:
        rows, scales = quantized(vector[None], self.generation.header.stride)
        return rows[0], float(scales[0])


def _sessions(sids: NDArray[np.int32]) -> dict[int, Range]:
    """Return where the rows of each session are."""
    import numpy as np

    if not len(sids):
        return {}
    begins = [0, *(np.flatnonzero(np.diff(sids)) + 1).tolist()]
    ends = [*begins[1:], len(sids)]
    return {int(sids[begin]): (begin, end) for begin, end in zip(begins, ends, strict=True)}


def _products(
    query: NDArray[np.int8], rows: NDArray[np.int8], scales: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Return the products of rows with a query, as cosines but for the query's scale."""
    import numkong
    import numpy as np

    if not len(rows):
        return np.empty(0, np.float32)
    products = np.asarray(numkong.cdist(query[None], rows, "dot", out_dtype="float32"))[0]
    return np.asarray(products * scales, np.float32)
