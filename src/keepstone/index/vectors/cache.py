"""Per-process cache of one space's vectors, kept up to date with SQLite.

Invariant (docs/decisions/0008-exact-first-vectors.md): SQLite is the source of truth. The cache reflects one
state of the index, its ``stamp``; ``follow`` updates the cache, and reads only the rows added or
removed after that state.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from keepstone.index.database import Database, UnavailableError
from keepstone.index.vectors import building
from keepstone.index.vectors.buffer import VectorBuffer
from keepstone.index.vectors.exact_scan import ExactScan
from keepstone.index.vectors.hnsw import Graph, is_large
from keepstone.index.vectors.hnsw import load as load_graph
from keepstone.index.vectors.scope_filter import Range
from keepstone.index.vectors.vector_table import sample
from keepstone.vector import SAMPLE, Matrix, Space

if TYPE_CHECKING:
    import apsw
    import numpy as np
    from numpy.typing import NDArray

    Number = TypeVar("Number", bound=np.generic)

ALL = 0
"""Used in place of a session's number to mean all sessions."""

NEWER = 8192
"""Number of vectors added or removed since the last generation above which a new one is built; a tenth of the
generation's rows if that is more."""

_FEW = 1_000
"""Highest vector number up to which the sample is taken again after each change that affects it."""


class _Published(NamedTuple):
    """SQLite's record of a graph."""

    number: int
    """The number of the generation whose rows the graph refers to."""
    mark: int
    checksum: int


class VectorCache:
    """The generation of a space, if there is one, and all vectors that are newer than it."""

    def __init__(self, database: Database, number: int, space: Space) -> None:
        self.number = number
        self.space = space
        self.scan: ExactScan | None = None
        self.buffer = VectorBuffer(number, space.dim, 0)
        self.is_due = False
        """Whether a new generation is due, as many vectors were added or removed; new vectors stay unread."""
        self._graphs: dict[int, _Published] = {}
        self._loaded: dict[int, tuple[_Published, Graph | None]] = {}
        self.connection: apsw.Connection = database.connection
        self.stamp: object = None
        """The state of the index that the cache reflects, see ``Database.stamp``; None: all must be read."""
        self._distrusted = False
        self._published: tuple[int, ...] | None = None
        self._gone = 0
        self.sample: Matrix | None = None
        """A sample of the vectors; None if a new sample has to be taken, see ``_read``."""
        self._highest = self._sampled = self._sample_size = 0
        self._sample_vids: NDArray[np.int64]
        self.sids: dict[str, int] = {}
        """Session numbers by name, cached until the index changes."""

    def follow(self, database: Database, stamp: object) -> None:
        """Read the changes up to ``stamp``, see ``Database.stamp``."""
        published = database.row(
            "SELECT number, upto, checksum FROM generation WHERE space=?", (self.number,)
        )
        # A session that was dropped and came back has another number.
        self.sids.clear()
        if self.stamp is None or published != self._published:
            self._begin(database, published)
        self._read(database)
        self.stamp = stamp

    def memory(self) -> int:
        """Return how many bytes of memory the cache takes, not counting the generation."""
        sample = 0 if self.sample is None else self.sample.nbytes
        graphs = (graph.memory() for _, graph in self._loaded.values() if graph is not None)
        return self.buffer.memory() + sample + sum(graphs)

    def distrust(self) -> None:
        """Have the next query reopen the generation and check all of it, as its file has changed."""
        self.stamp, self._distrusted = None, True

    def _begin(self, database: Database, published: tuple[int, ...] | None) -> None:
        """Open the published generation; empty the buffer and drop the loaded graphs."""
        self._published, self._gone, self.scan = published, 0, None
        if published is not None and database.path is not None:
            # If the files cannot be read, the cache has no generation, and all vectors count as newer.
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
            if self.sample is not None:
                left = ~np.isin(self._sample_vids, vids)
                self._sample_vids = self._sample_vids[left]
                # A sample that has lost more than half of its vectors is too small, and is taken again.
                self.sample = self.sample[left] if 2 * left.sum() >= self._sample_size else None
            self.buffer.remove(vids)
            if self.scan is not None:
                self.scan.remove(vids)
        highest = (database.row("SELECT coalesce(max(vid), 0) FROM vector") or (0,))[0]
        is_other = highest != self._highest or (bool(gone) and self._sample_size >= SAMPLE)
        # The sample is taken again once the vector numbers have doubled, so that it includes newer vectors.
        if highest > 2 * self._sampled or (highest <= _FEW and is_other):
            self.sample = None
        self._highest = highest
        self.is_due = database.path is not None and self._is_due(database, highest, len(gone))
        if not self.is_due:
            self.buffer.read(database, highest)
        sql = "SELECT sid, number, mark, checksum FROM graph WHERE space=?"
        self._graphs = {sid: _Published(*row) for sid, *row in database.rows(sql, (self.number,))}

    def _is_due(self, database: Database, highest: int, gone: int) -> bool:
        """Return whether a new generation is due; making one also shortens the list of removed vectors."""
        rows = self.scan.generation.header.rows if self.scan else 0
        most = max(NEWER, rows // 10)
        room = most - self.buffer.count - (len(self.scan.dead) if self.scan else 0)
        if room < 0 or gone > most:
            return True
        # There are at most as many newer vectors as numbers were assigned since the last read. The vectors of
        # this space are only counted if that many would not fit.
        if highest - self.buffer.last <= room:
            return False
        sql = "SELECT count(*) FROM vector WHERE space=? AND vid>?"
        found = database.row(sql, (self.number, self.buffer.last))
        return found is not None and found[0] > room

    @property
    def published(self) -> int:
        """The number of the generation that SQLite records, 0 if there is none."""
        return self._published[0] if self._published else 0

    def may_have(self, sid: int, count: int) -> bool:
        """Return whether a session, or ``ALL``, can have this many vectors, without counting them."""
        begin, end = self.range_of(sid)
        return end - begin + self.buffer.count >= count

    def live(self, sid: int) -> int:
        """Return how many vectors a session, or ``ALL``, has."""
        sids = self.buffer.sids
        newer = int((sids >= 0).sum() if sid == ALL else (sids == sid).sum())
        return newer + (self.scan.live(self.range_of(sid)) if self.scan else 0)

    def range_of(self, sid: int) -> Range:
        """Return the range of rows of the generation that belong to a session, or to ``ALL``."""
        return self.scan.range_of(None if sid == ALL else sid) if self.scan else (0, 0)

    def take_sample(self, database: Database) -> Matrix:
        """Take and return ``sample``."""
        import numpy as np

        vids, self.sample = sample(database, self.number, self.space.dim, SAMPLE)
        self._sampled, self._sample_size, self._sample_vids = (
            self._highest,
            len(vids),
            np.array(vids, np.int64),
        )
        return self.sample

    def graph(self, database: Database, sid: int, *, wait: bool) -> Graph | None:
        """Return the graph of a session, or of ``ALL``; None if no usable one exists.

        Without ``wait`` also None if the graph would take long to load.
        """
        published = self._graphs.get(sid)
        # A graph refers to rows of one generation; in the next one other vectors have these row numbers.
        if published is None or published.number != self.published:
            return None
        known, graph = self._loaded.get(sid, (None, None))
        if known != published and self.scan is not None:
            with building.files(database) as folder:
                name = building.name_of_graph(self.number, published.number, sid, published.mark)
                if not wait and is_large(folder, name):
                    return None
                graph = load_graph(folder, name, self.scan.generation.header.stride, published.checksum)
            # A graph that cannot be read is remembered as None, so that not every query tries to load it.
            self._loaded[sid] = (published, graph)
        return graph
