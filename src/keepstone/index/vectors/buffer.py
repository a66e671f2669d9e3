"""The vectors that are newer than their generation, in memory and in float32."""

from __future__ import annotations

import math
from collections.abc import Sequence
from mmap import ACCESS_COPY, mmap
from typing import TYPE_CHECKING, TypeVar

from keepstone.index.database import Database
from keepstone.index.vectors.scope_filter import Wanted, mask
from keepstone.index.vectors.vector_table import BLOCK, Block, best, matrix_of, times
from keepstone.vector import Matrix, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Number = TypeVar("Number", bound=np.generic)

_SPARSE = 4
"""Where fewer than one row in so many is in scope, the rows in scope are gathered first."""


class Newer:
    """Vectors with numbers above ``upto``, one a row, in the order of their numbers."""

    def __init__(self, space: int, dim: int, upto: int) -> None:
        import numpy as np

        self.last = upto
        """The highest number of a vector that was looked at."""
        self.count = 0
        self._space = space
        self._columns: NDArray[np.int64] = np.empty((5, 0), np.int64)
        self._matrix: Matrix = np.empty((0, dim), np.float32)
        self._codes: dict[str, int] = {}

    @property
    def vids(self) -> NDArray[np.int64]:
        """The numbers of the vectors."""
        return self._columns[0, : self.count]

    @property
    def times(self) -> NDArray[np.int64]:
        """When their entries were made, in microseconds."""
        return self._columns[2, : self.count]

    @property
    def sids(self) -> NDArray[np.int64]:
        """The numbers of their sessions; -1 for a vector that has gone."""
        return self._columns[3, : self.count]

    @property
    def types(self) -> NDArray[np.int64]:
        """The types of their entries."""
        return self._columns[4, : self.count]

    def read(self, database: Database, highest: int) -> None:
        """Take in what is newer; ``highest`` is the highest number that any vector has."""
        # The plus keeps SQLite from going through all vectors of the space.
        sql = (
            "SELECT v.vid, v.eid, e.ts, e.sid, e.type, v.f32 FROM vector v CROSS JOIN entry e ON e.eid=v.eid "
            f"WHERE v.vid>? AND +v.space=? ORDER BY v.vid LIMIT {BLOCK}"
        )
        while rows := database.rows(sql, (self.last, self._space)):
            self._add(rows)
            self.last = rows[-1][0]
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
        """Make room, twice as much as is there, so that rows are seldom moved."""
        if count > len(self._matrix):
            room = max(count, 2 * len(self._matrix))
            self._columns = _longer(self._columns, (5, room))
            self._matrix = _longer(self._matrix, (room, self._matrix.shape[1]))

    def remove(self, vids: NDArray[np.int64]) -> None:
        """Take vectors out that have gone."""
        import numpy as np

        self.sids[np.isin(self.vids, vids)] = -1

    def live(self, asked: Wanted) -> NDArray[np.bool_]:
        """Return which rows are in scope."""
        import numpy as np

        live = self.sids >= 0 if asked.sids is None else np.isin(self.sids, asked.sids)
        others = mask(self, list(self._codes), (0, self.count), asked)
        return live if others is None else live & others

    def nearest(self, vector: Vector, asked: Wanted, limit: int, margin: float) -> Block | None:
        """Return the vectors in scope that are nearest, with all that are nearly as near as the last."""
        import numpy as np

        rows = np.flatnonzero(self.live(asked))
        if not len(rows):
            return None
        if len(rows) * _SPARSE < self.count:
            scores = times(self._matrix[rows], vector)
        else:
            scores = times(self._matrix[: self.count], vector)[rows]
        chosen = rows[best(scores, limit, margin)]
        return Block(self._columns[1, chosen], self._matrix[chosen])

    def cosines(self, eids: Sequence[int], vector: Vector) -> dict[int, float]:
        """Return how near the vectors of some entries are to one, without entries that have none here."""
        import numpy as np

        rows = np.flatnonzero(np.isin(self._columns[1, : self.count], eids) & (self.sids >= 0))
        products = np.clip(times(self._matrix[rows], vector), -1, 1)
        return dict(zip(self._columns[1, rows].tolist(), products.tolist(), strict=True))


def _longer(old: NDArray[Number], shape: tuple[int, int]) -> NDArray[Number]:
    """Return a longer copy, in memory that goes back to the system as a whole.

    Of what grows now in one thread and now in another, malloc keeps pieces for each of them: in time
    several times of what is there.
    """
    import numpy as np

    memory = mmap(-1, math.prod(shape) * old.itemsize, access=ACCESS_COPY)
    new: NDArray[Number] = np.ndarray(shape, old.dtype, memory)
    new[: old.shape[0], : old.shape[1]] = old
    return new
