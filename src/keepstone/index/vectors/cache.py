"""Per-process cache of one space's vectors, and how it follows what SQLite says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from mmap import ACCESS_COPY, mmap
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from keepstone.index.database import Database, UnavailableError
from keepstone.index.vectors import building
from keepstone.index.vectors.exact_scan import ExactScan
from keepstone.index.vectors.hnsw import Graph, is_large
from keepstone.index.vectors.hnsw import load as load_graph
from keepstone.index.vectors.scope_filter import Range, ScopeFilter, mask
from keepstone.index.vectors.vector_table import BLOCK, Block, best, matrix_of, sample, times
from keepstone.vector import Matrix, Space, Vector

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

    Number = TypeVar("Number", bound=np.generic)

ALL = 0
"""Stands for the number of a session where all of them are meant."""

NEWER = 8192
"""Maximum number of vectors newer than their generation; a tenth of the generation if that is more."""

_SAMPLE, _FEWEST = 64, 8
"""Vectors that are sampled to learn what cosines are usual, and the fewest that suffice."""

_SPARSE = 4
"""If fewer than one row in N is in scope, the rows in scope are gathered first."""


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
        """The numbers of their sessions; -1 for a removed vector."""
        return self._columns[3, : self.count]

    @property
    def types(self) -> NDArray[np.int64]:
        """The types of their entries."""
        return self._columns[4, : self.count]

    def read(self, database: Database, highest: int) -> None:
        """Read the vectors that are newer; ``highest`` is the highest number of any vector."""
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
        """Remove vectors that no longer exist."""
        import numpy as np

        self.sids[np.isin(self.vids, vids)] = -1

    def live(self, asked: ScopeFilter) -> NDArray[np.bool_]:
        """Return which rows are in scope."""
        import numpy as np

        live = self.sids >= 0 if asked.sids is None else np.isin(self.sids, asked.sids)
        others = mask(self, list(self._codes), slice(self.count), asked)
        return live if others is None else live & others

    def nearest(self, vector: Vector, asked: ScopeFilter, limit: int, margin: float) -> Block | None:
        """Return the vectors in scope that are nearest, with all that are nearly as near as the last."""
        if not self.count:
            return None
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


class _Published(NamedTuple):
    """What SQLite says of a graph."""

    number: int
    """Of the generation that it is of."""
    mark: int
    checksum: int


class _Sample(NamedTuple):
    """Some vectors of a space, which stand for all of them."""

    highest: int
    """The highest number of any vector when it was taken."""
    size: int
    """How many it had then."""
    vids: NDArray[np.int64]
    matrix: Matrix

    def without(self, vids: NDArray[np.int64]) -> _Sample | None:
        """Return it without vectors that no longer exist; None if half of it is gone."""
        import numpy as np

        left = ~np.isin(self.vids, vids)
        count = int(left.sum())
        if 2 * count < self.size:
            return None
        return self if count == len(left) else self._replace(vids=self.vids[left], matrix=self.matrix[left])


class VectorCache:
    """The generation of a space, if there is one, and all vectors that are newer."""

    def __init__(self, database: Database, number: int, space: Space) -> None:
        self.number = number
        self.space = space
        self.scan: ExactScan | None = None
        self.buffer = VectorBuffer(number, space.dim, 0)
        self.is_due = False
        """Whether a new generation is due because too many vectors are newer; those are not read then."""
        self._graphs: dict[int, _Published] = {}
        self._loaded: dict[int, tuple[_Published, Graph | None]] = {}
        self._connection: apsw.Connection = database.connection
        self._stamp: object = None
        self._distrusted = False
        self._published: tuple[int, ...] | None = None
        self._gone = 0
        self._highest = 0
        self._sample: _Sample | None = None
        self.sids: dict[str, int] = {}
        """The numbers of sessions that were asked for since anything changed."""

    def is_of(self, database: Database) -> bool:
        """Tell whether this cache belongs to the open file."""
        return self._connection is database.connection

    def follow(self, database: Database) -> None:
        """Read what changed since the last call."""
        # The one tells of what other connections wrote, the other of what this one did. As a pragma it looks
        # at the file; what apsw calls so is the version of the last transaction.
        stamp = database.row("PRAGMA data_version"), self._connection.total_changes()
        if stamp == self._stamp:
            return
        published = database.row(
            "SELECT number, upto, checksum FROM generation WHERE space=?", (self.number,)
        )
        self.sids.clear()
        if self._stamp is None or published != self._published:
            self._begin(database, published)
        self._read(database)
        self._stamp = stamp

    def distrust(self) -> None:
        """Open the generation again and check all of it before the next query: its file changed."""
        self._stamp, self._distrusted = None, True

    def _begin(self, database: Database, published: tuple[int, ...] | None) -> None:
        """Open the generation and drop everything else."""
        self._published, self._gone, self.scan = published, 0, None
        if published is not None and database.path is not None:
            # Where the system does not let us look, all vectors are newer, as far as we know.
            with suppress(UnavailableError), building.files(database) as folder:
                generation = building.open_generation(database, folder, self.number, whole=self._distrusted)
                self.scan = None if generation is None else ExactScan(generation)
        self._distrusted = False
        upto = self.scan.generation.header.upto if self.scan else 0
        self.buffer = VectorBuffer(self.number, self.space.dim, upto)
        self._loaded.clear()

    def _read(self, database: Database) -> None:
        import numpy as np

        gone = database.rows(
            "SELECT number, vid FROM gone WHERE number>? AND space=? ORDER BY number",
            (self._gone, self.number),
        )
        if gone:
            self._gone = gone[-1][0]
            vids = np.array([vid for _, vid in gone], np.int64)
            self._sample = self._sample and self._sample.without(vids)
            self.buffer.remove(vids)
            if self.scan is not None:
                self.scan.remove(vids)
        highest = (database.row("SELECT coalesce(max(vid), 0) FROM vector") or (0,))[0]
        self._highest = highest
        self.is_due = database.path is not None and self._is_due(database, highest, len(gone))
        if not self.is_due:
            self.buffer.read(database, highest)
        sql = "SELECT sid, number, mark, checksum FROM graph WHERE space=?"
        self._graphs = {sid: _Published(*row) for sid, *row in database.rows(sql, (self.number,))}

    def _is_due(self, database: Database, highest: int, gone: int) -> bool:
        """Tell whether a new generation is due; making one also shortens the list of removed vectors."""
        rows = self.scan.generation.header.rows if self.scan else 0
        most = max(NEWER, rows // 10)
        room = most - self.buffer.count - (len(self.scan.dead) if self.scan else 0)
        if room < 0 or gone > most:
            return True
        if highest - self.buffer.last <= room:
            return False
        sql = "SELECT count(*) FROM vector WHERE space=? AND vid>?"
        found = database.row(sql, (self.number, self.buffer.last))
        return found is not None and found[0] > room

    @property
    def published(self) -> int:
        """The number of the generation that SQLite names, 0 if there is none."""
        return self._published[0] if self._published else 0

    def may_have(self, sid: int, count: int) -> bool:
        """Tell, without counting, whether a session, or ``ALL``, can have as many vectors."""
        begin, end = self.range_of(sid)
        return end - begin + self.buffer.count >= count

    def live(self, sid: int) -> int:
        """Return how many vectors a session has, or ``ALL``."""
        sids = self.buffer.sids
        newer = int((sids >= 0).sum() if sid == ALL else (sids == sid).sum())
        return newer + (self.scan.live(self.range_of(sid)) if self.scan else 0)

    def range_of(self, sid: int) -> Range:
        """Return which rows of the generation are of a session, or of ``ALL``."""
        return self.scan.range_of(None if sid == ALL else sid) if self.scan else (0, 0)

    def cosine_quartiles(self, database: Database, vector: Vector) -> tuple[float, float] | None:
        """Return median and upper quartile of cosines; the sample is renewed when vectors have doubled."""
        from statistics import quantiles  # Ten times as quick as NumPy's for so few.

        import numpy as np

        if self._sample is None or self._highest > 2 * self._sample.highest:
            vids, matrix = sample(database, self.number, self.space.dim, _SAMPLE)
            self._sample = _Sample(self._highest, len(vids), np.array(vids, np.int64), matrix)
        matrix = self._sample.matrix
        if len(matrix) < _FEWEST:
            return None
        _, median, upper = quantiles(times(matrix, vector).tolist(), method="inclusive")
        return median, upper

    def graph(self, database: Database, sid: int, *, wait: bool) -> Graph | None:
        """Return the graph of a session, or of ``ALL``; None if there is none that can be used.

        Without ``wait`` also None where reading it would take long.
        """
        published = self._graphs.get(sid)
        if published is None or published.number != self.published:
            return None
        known, graph = self._loaded.get(sid, (None, None))
        if known != published and self.scan is not None:
            with building.files(database) as folder:
                name = building.name_of_graph(self.number, published.number, sid, published.mark)
                if not wait and is_large(folder, name):
                    return None
                graph = load_graph(folder, name, self.scan.generation.header.stride, published.checksum)
            self._loaded[sid] = (published, graph)
        return graph


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
