"""The write buffer: float32 vectors in memory that are newer than their generation; comparing of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from mmap import ACCESS_COPY, mmap
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from keepstone.index.database import Database
from keepstone.index.vectors.scope_filter import EVERYTHING, ScopeFilter, mask
from keepstone.vector import F32, Matrix, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Number = TypeVar("Number", bound=np.generic)

_TOLERANCE = 1e-3
"""Maximum difference between 1 and the square of a vector's length; rounding errors are far smaller."""

ROUNDING = 1e-5
"""Maximum error of a cosine computed in float32."""

BLOCK = 4096
"""Number of vectors read at a time."""

_SPARSE = 4
"""If fewer than one row in this many is in scope, only the rows in scope are copied and compared."""

_STRIP = 64
_FEW = 64
"""Number of vectors up to which all are compared in float64, without choosing the best in float32 first."""


@dataclass(frozen=True, slots=True)
class Block:
    """Some vectors, one a row."""

    eids: NDArray[np.int64]
    """The row of each vector's entry."""
    matrix: Matrix


class VectorBuffer:
    """Vectors with numbers above ``upto``, one a row, in the order of their numbers."""

    def __init__(self, space: int, dim: int, upto: int) -> None:
        import numpy as np

        self.last = upto
        """The highest vector number that was read."""
        self.count = 0
        self._space = space
        self._columns: NDArray[np.int64] = np.empty((5, 0), np.int64)
        self._matrix: Matrix = np.empty((0, dim), np.float32)
        self._codes: dict[str, int] = {}

    def memory(self) -> int:
        """Return how many bytes of memory the vectors take."""
        return self._columns.nbytes + self._matrix.nbytes

    @property
    def vids(self) -> NDArray[np.int64]:
        """The numbers of the vectors."""
        return self._columns[0, : self.count]

    @property
    def times(self) -> NDArray[np.int64]:
        """The times of their entries, in microseconds."""
        return self._columns[2, : self.count]

    @property
    def sids(self) -> NDArray[np.int64]:
        """The numbers of their sessions; -1 for a removed vector."""
        return self._columns[3, : self.count]

    @property
    def types(self) -> NDArray[np.int64]:
        """The types of their entries, as codes."""
        return self._columns[4, : self.count]

    def read(self, database: Database, highest: int) -> None:
        """Read the vectors with numbers above ``last``; ``highest`` is the highest number of any vector."""
        # The plus keeps SQLite from going through all vectors of the space.
        sql = (
            # CROSS JOIN keeps SQLite to the order of the vectors, so that each block ends where the next one
            # begins.
            "SELECT v.vid, v.eid, e.ts, e.sid, e.type, v.f32 FROM vector v CROSS JOIN entry e ON e.eid=v.eid "
            f"WHERE v.vid>? AND +v.space=? ORDER BY v.vid LIMIT {BLOCK}"
        )
        while rows := database.rows(sql, (self.last, self._space)):
            self._add(rows)
            self.last = rows[-1][0]
        # The next read also skips the later vectors of other spaces.
        self.last = max(self.last, highest)

    def _add(self, rows: list[tuple[int, int, int, int, str, bytes]]) -> None:

        vids, eids, times, sids, types, raw = zip(*rows, strict=True)
        codes = [self._codes.setdefault(name, len(self._codes)) for name in types]
        end = self.count + len(rows)
        self._reserve(end)
        self._columns[:, self.count : end] = (vids, eids, times, sids, codes)
        self._matrix[self.count : end] = matrix_of(raw, self._matrix.shape[1])
        self.count = end

    def _reserve(self, count: int) -> None:
        """Make room for ``count`` rows; the room at least doubles, so that rows are seldom copied."""
        if count > len(self._matrix):
            room = max(count, 2 * len(self._matrix))
            self._columns = _longer(self._columns, (5, room))
            self._matrix = _longer(self._matrix, (room, self._matrix.shape[1]))

    def remove(self, vids: NDArray[np.int64]) -> None:
        """Remove vectors that no longer exist."""
        import numpy as np

        # The rows are marked and stay in place: to remove them, columns and matrix would have to be moved.
        self.sids[np.isin(self.vids, vids)] = -1

    def live(self, scope_filter: ScopeFilter) -> NDArray[np.bool_]:
        """Return a mask of the rows that exist and are in scope."""
        import numpy as np

        if scope_filter is EVERYTHING:
            return self.sids >= 0
        live = self.sids >= 0 if scope_filter.sids is None else np.isin(self.sids, scope_filter.sids)
        others = mask(self, list(self._codes), slice(self.count), scope_filter)
        return live if others is None else live & others

    def nearest(self, vector: Vector, scope_filter: ScopeFilter, limit: int, margin: float) -> Block | None:
        """Return the nearest vectors in scope, with all that are within ``margin`` of the last of them."""
        if not self.count:
            return None
        import numpy as np

        rows = np.flatnonzero(self.live(scope_filter))
        if not len(rows):
            return None
        if len(rows) * _SPARSE < self.count:
            scores = times(self._matrix[rows], vector)
        else:
            scores = times(self._matrix[: self.count], vector)[rows]
        chosen = rows[best(scores, limit, margin)]
        return Block(self._columns[1, chosen], self._matrix[chosen])

    def cosines(self, eids: Sequence[int], vector: Vector) -> dict[int, float]:
        """Return the cosines of a vector with the vectors of those entries that have one in the buffer."""
        import numpy as np

        rows = np.flatnonzero(np.isin(self._columns[1, : self.count], eids) & (self.sids >= 0))
        products = np.clip(times(self._matrix[rows], vector), -1, 1)
        return dict(zip(self._columns[1, rows].tolist(), products.tolist(), strict=True))


def _longer(old: NDArray[Number], shape: tuple[int, int]) -> NDArray[Number]:
    """Return a larger copy, in memory that is returned to the system as a whole.

    Arrays that grow in several threads fragment malloc's per-thread arenas: in time
    these take several times the memory of the arrays.
    """
    import numpy as np

    memory = mmap(-1, math.prod(shape) * old.itemsize, access=ACCESS_COPY)
    new: NDArray[Number] = np.ndarray(shape, old.dtype, memory)
    new[: old.shape[0], : old.shape[1]] = old
    return new


def matrix_of(raw: Sequence[Any], dim: int | None = None) -> Matrix:
    """Check vectors and return them as rows of a matrix; a damaged file may hold anything."""
    import numpy as np

    length = (len(raw[0]) // 4 if dim is None else dim) * 4
    if not length or {*map(type, raw)} != {bytes} or {*map(len, raw)} != {length}:
        raise apsw.CorruptError("a vector is damaged")
    matrix = np.frombuffer(b"".join(raw), F32).reshape(len(raw), -1)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", matrix, matrix)
    # NaN compares as false, so the good vectors are tested, not the bad ones. An embedder may return zeros.
    are_right = np.abs(squares - 1) < _TOLERANCE
    if not are_right.all() and not (are_right | (squares == 0)).all():
        raise apsw.CorruptError("a vector is not of unit length")
    return matrix


def times(matrix: NDArray[Any], vector: NDArray[Any]) -> NDArray[Any]:
    """Return the products of rows with a vector.

    If the dimension does not fill a register, BLAS also computes with the bytes after the numbers. It drops
    these results, but flags their errors; so errors are ignored. The numbers were checked when read.
    """
    import numpy as np

    with np.errstate(all="ignore"):
        return np.asarray(matrix @ vector)


def nearest(blocks: Iterable[Block], vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the rows whose vectors have the largest cosine with the query, best first, then by row."""
    found: list[tuple[int, float]] = []
    for block in blocks:
        found += _scored(block, vector, limit)
        # Sorting is stable: of equal scores the first row stays first.
        found = sorted(sorted(set(found)), key=itemgetter(1), reverse=True)[:limit]
    return found


def _scored(block: Block, vector: Vector, limit: int) -> list[tuple[int, float]]:
    """Return the best rows of a block; the score of a row does not depend on the other rows."""
    import numpy as np

    eids, matrix = block.eids, block.matrix
    if len(eids) > _FEW:
        rows = best(times(matrix, vector), limit, ROUNDING)
        eids, matrix = eids[rows], matrix[rows]
    # BLAS adds in another order for matrices of other shapes. In float64 that makes no difference once the
    # result is rounded to float32.
    exact = times(matrix.astype(np.float64), vector.astype(np.float64))
    # Rounding may take the product of unit vectors a little beyond 1 or -1.
    scores = np.minimum(np.maximum(exact, -1.0), 1.0).astype(np.float32)
    return list(zip(eids.tolist(), scores.tolist(), strict=True))


def best(scores: NDArray[np.float32], count: int, margin: float) -> NDArray[np.intp]:
    """Return the positions of the ``count`` highest scores, and of scores at most ``margin`` lower."""
    import numpy as np

    if len(scores) <= count:
        return np.arange(len(scores))
    high, strips = scores, len(scores) // _STRIP
    if strips > 2 * count:
        # The count-th highest score is not below the count-th highest maximum of a strip, so lower scores
        # are skipped: most of them.
        highest = scores[: strips * _STRIP].reshape(-1, _STRIP).max(axis=1)
        highest.partition(-count)
        high = scores[scores >= highest[-count]]
    # A copy, as ``partition`` changes the order in place.
    high = high.copy()
    high.partition(-count)
    return np.flatnonzero(scores >= high[-count] - margin)
