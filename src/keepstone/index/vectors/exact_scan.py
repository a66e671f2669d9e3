"""Exact int8 scan of one generation: candidates that float32 then rescores.

A scope is applied before the comparison, so a narrow scope does not cost recall, as it would with a graph
(docs/decisions/0008-exact-first-vectors.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from keepstone.index.vectors import packages
from keepstone.index.vectors.buffer import best
from keepstone.index.vectors.hnsw import Graph
from keepstone.index.vectors.scope_filter import Range, ScopeFilter, mask, ranges
from keepstone.index.vectors.segment import Generation
from keepstone.vector import Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows: TypeAlias = "slice | NDArray[np.intp]"
    DotProduct: TypeAlias = Callable[[NDArray[np.int8], NDArray[np.int8]], NDArray[np.float32]]

_FEWEST, _TIMES = 100, 4
"""Maximum number of rows rescored in float32: the first, or the second times the limit if that is more."""
_FEWEST_OF_GRAPH = 40
"""Number of rows requested from a graph, or ``_TIMES`` times the limit if that is more."""
_MANY = 2_000
"""Number of rows up to which ranges are compared together; the best of a longer one are chosen at once."""
_STEPS = 4.0
"""Error bound of an int8 cosine in quantization steps, far above the errors that occur by chance."""
_STEPS_OF_GRAPH = 2.0
"""The same bound for rows from a graph, which may miss a row anyway: seven standard deviations."""
_TINY = 1.1754943508222875e-38
"""The smallest normal float32."""
_SPARSE = 4
"""If fewer than one row in this many is in scope, only the rows in scope are copied and compared; otherwise
all rows of the range are compared."""


class ExactScan:
    """The rows of a generation, without rows that have since been removed."""

    def __init__(self, generation: Generation) -> None:
        import numpy as np

        self.generation = generation
        self._dot = _dot_product()
        self._names = generation.names()
        self._sessions = _sessions(generation.sids)
        self.dead: NDArray[np.intp] = np.flatnonzero(generation.scales == 0)
        """The removed rows, ascending."""
        self._by_time: tuple[NDArray[np.int32], NDArray[np.int64]] | None = None
        """All rows by time, and their times; set by the first query for times in all sessions."""

    def remove(self, vids: NDArray[np.int64]) -> None:
        """Remove vectors that no longer exist."""
        import numpy as np

        rows = np.flatnonzero(np.isin(self.generation.vids, vids))
        self.dead = np.union1d(self.dead, rows)

    def range_of(self, sid: int | None) -> Range:
        """Return the range of rows of a session, or of all sessions."""
        return (0, self.generation.header.rows) if sid is None else self._sessions.get(sid, (0, 0))

    def live(self, at: Range) -> int:
        """Return how many rows of a range still exist."""
        begin, end = self.dead.searchsorted(at)
        return at[1] - at[0] - int(end - begin)

    def nearest(self, vector: Vector, scope_filter: ScopeFilter, limit: int) -> list[int]:
        """Return the numbers of the vectors in scope that are candidates for the nearest."""
        import numpy as np

        query, scale = self._query(vector)
        # An int8 cosine has the rounding errors of both vectors. Rows within that error of the last candidate
        # are candidates, too: float32 may find them nearer. Scores here lack the factor of the query's scale,
        # so the margin is divided by it; the scores of a graph are cosines.
        margin = _STEPS * (self.generation.steps + scale) / scale
        found: list[NDArray[np.intp]] = []
        scores: list[NDArray[np.float32]] = []
        for rows in self._selected(scope_filter):
            in_scope, near = self._scan(query, rows, scope_filter)
            # For few rows, choosing the best now costs more than comparing all of them at the end.
            chosen = best(near, limit, margin) if len(near) > _MANY else slice(None)
            found.append(in_scope[chosen])
            scores.append(near[chosen])
        if len(found) == 1:
            return self._most(found[0], scores[0], limit, margin)
        if not found:
            return []
        return self._most(np.concatenate(found), np.concatenate(scores), limit, margin)

    def _most(
        self, rows: NDArray[np.intp], scores: NDArray[np.float32], limit: int, margin: float
    ) -> list[int]:
        """Return the numbers of the vectors in the rows that may be among the ``limit`` best.

        If there are too many of these, only those with the highest scores are returned.
        """
        import numpy as np

        chosen, most = best(scores, limit, margin), max(_FEWEST, _TIMES * limit)
        near = scores[chosen]
        # Removed rows and rows out of scope score minus infinity; they are chosen only if few rows remain.
        if near.min(initial=0) == -np.inf:
            chosen = chosen[near > -np.inf]
        if len(chosen) > most:
            chosen = chosen[np.lexsort((rows[chosen], -scores[chosen]))[:most]]
        return self._vids(rows[chosen])

    def _selected(self, scope_filter: ScopeFilter) -> list[Rows]:
        """Return rows, or ranges of rows, that include all rows in scope, by sessions and times."""
        import numpy as np

        if scope_filter.sids is None and (scope_filter.since, scope_filter.until) != (None, None):
            return [self._within(scope_filter.since, scope_filter.until)]
        found = ranges(self.generation, self._sessions, scope_filter)
        # Short ranges are gathered and compared in one call: each call costs as much as many rows.
        if len(found) > 1 and sum(end - begin for begin, end in found) <= _MANY:
            return [np.concatenate([np.arange(*at) for at in found])]
        return [slice(*at) for at in found]

    def _within(self, since: int | None, until: int | None) -> NDArray[np.intp]:
        """Return the rows of all sessions between two times."""
        if self._by_time is None:
            times = self.generation.times
            # A stable sort keeps rows of the same time in order; int32 takes half of the memory.
            order = times.argsort(kind="stable").astype("int32")
            self._by_time = order, times[order]
        order, times = self._by_time
        first = 0 if since is None else int(times.searchsorted(since))
        last = len(times) if until is None else int(times.searchsorted(until))
        return order[first:last].astype("intp")

    def _scan(
        self, query: NDArray[np.int8], rows: Rows, scope_filter: ScopeFilter
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return rows with their scores; a row out of scope is left out or scores minus infinity."""
        import numpy as np

        masked = mask(self.generation, self._names, rows, scope_filter)
        if isinstance(rows, slice):
            every = np.arange(rows.start, rows.stop)
            if masked is None or np.count_nonzero(masked) * _SPARSE >= len(every):
                codes = self.generation.between(rows.start, rows.stop)
                scores = self._products(query, codes, self.generation.scales[rows])
                if len(self.dead):
                    dead = self.dead[slice(*self.dead.searchsorted((rows.start, rows.stop)))]
                    scores[dead - rows.start] = -np.inf
                if masked is not None:
                    scores[~masked] = -np.inf
                return every, scores
            rows = every
        if masked is not None:
            rows = rows[masked]
        if len(self.dead):
            rows = rows[~np.isin(rows, self.dead)]
        return rows, self._products(query, self.generation.at(rows), self.generation.scales[rows])

    def _products(
        self, query: NDArray[np.int8], rows: NDArray[np.int8], scales: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the products of rows with a query: cosines divided by the query's scale."""
        import numpy as np

        if not len(rows):
            return np.empty(0, np.float32)
        return np.asarray(self._dot(query, rows) * scales, np.float32)

    def nearest_by(self, graph: Graph, vector: Vector, limit: int) -> list[int]:
        """Return the numbers of the vectors that a graph finds as candidates for the nearest."""
        import numpy as np

        query, scale = self._query(vector)
        rows, scores = graph.nearest(query, max(_FEWEST_OF_GRAPH, _TIMES * limit))
        if len(self.dead):
            live = ~np.isin(rows, self.dead)
            rows, scores = rows[live], scores[live]
        return self._vids(rows[best(scores, limit, _STEPS_OF_GRAPH * (self.generation.steps + scale))])

    def _vids(self, rows: NDArray[np.intp]) -> list[int]:
        vids: list[int] = self.generation.vids[rows].tolist()
        return vids

    def _query(self, vector: Vector) -> tuple[NDArray[np.int8], float]:
        import numpy as np

        # The same rounding as in ``quantized``, with half as many calls of NumPy. The tiny number avoids a
        # division by zero for a vector of zeros.
        scale = max(float(np.maximum.reduce(np.abs(vector))), _TINY) / 127
        row = np.zeros(self.generation.rows.shape[1], np.int8)
        row[: len(vector)] = np.rint(vector / np.float32(scale))
        return row, scale


def _sessions(sids: NDArray[np.int32]) -> dict[int, Range]:
    """Return the range of each session's rows."""
    import numpy as np

    if not len(sids):
        return {}
    begins = [0, *(np.flatnonzero(np.diff(sids)) + 1).tolist()]
    ends = [*begins[1:], len(sids)]
    return {int(sids[begin]): (begin, end) for begin, end in zip(begins, ends, strict=True)}


def _dot_product() -> DotProduct:
    """Return the fastest dot product that is installed; all of them are exact."""
    if not packages.is_installed(packages.NUMKONG):
        return _dot_by_numpy
    import numkong
    import numpy as np

    return lambda query, rows: np.asarray(numkong.cdist(query[None], rows, "dot", out_dtype="float32"))[0]


def _dot_by_numpy(query: NDArray[np.int8], rows: NDArray[np.int8]) -> NDArray[np.float32]:
    import numpy as np

    # einsum needs no copy of all rows. BLAS has no int8 product, so it needs a copy; it also starts threads.
    products: NDArray[np.int32] = np.einsum("ij,j->i", rows, query, dtype=np.int32)
    return products.astype(np.float32)
