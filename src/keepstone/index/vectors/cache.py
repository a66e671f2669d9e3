"""What one process holds of the vectors of one space, and how it follows what SQLite says."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from keepstone.index.database import Database, UnavailableError
from keepstone.index.vectors import building
from keepstone.index.vectors.buffer import Newer
from keepstone.index.vectors.exact_scan import Base
from keepstone.index.vectors.hnsw import Graph, is_large
from keepstone.index.vectors.hnsw import load as load_graph
from keepstone.index.vectors.scope_filter import Range
from keepstone.vector import Space

if TYPE_CHECKING:
    import apsw

ALL = 0
"""Stands for the number of a session where all of them are meant."""

NEWER = 8192
"""Vectors that may be newer than their generation, or a tenth of it if that is more."""


class _Published(NamedTuple):
    """What SQLite says of a graph."""

    number: int
    """Of the generation that it is of."""
    mark: int
    checksum: int


class Held:
    """The generation of a space, if there is one, and all vectors that are newer."""

    def __init__(self, database: Database, number: int, space: Space) -> None:
        self.number = number
        self.space = space
        self.base: Base | None = None
        self.newer = Newer(number, space.dim, 0)
        self.is_due = False
        """Whether so many vectors are newer that a generation is to be made; they are not read then."""
        self._graphs: dict[int, _Published] = {}
        self._loaded: dict[int, tuple[_Published, Graph | None]] = {}
        self._connection: apsw.Connection = database.connection
        self._stamp: object = None
        self._distrusted = False
        self._published: tuple[int, ...] | None = None
        self._gone = 0

    def is_of(self, database: Database) -> bool:
        """Tell whether it is of the file that is open."""
        return self._connection is database.connection

    def follow(self, database: Database) -> None:
        """Take in what changed, if anything did."""
        # The one tells of what other connections wrote, the other of what this one did. As a pragma it looks
        # at the file; what apsw calls so is the version of the last transaction.
        stamp = database.row("PRAGMA data_version"), self._connection.total_changes()
        if stamp == self._stamp:
            return
        published = database.row(
            "SELECT number, upto, checksum FROM generation WHERE space=?", (self.number,)
        )
        if self._stamp is None or published != self._published:
            self._begin(database, published)
        self._read(database)
        self._stamp = stamp

    def distrust(self) -> None:
        """Open the generation again, and look at all of it, before anything is asked: its file changed."""
        self._stamp, self._distrusted = None, True

    def _begin(self, database: Database, published: tuple[int, ...] | None) -> None:
        """Open the generation and forget all else."""
        self._published, self._gone, self.base = published, 0, None
        if published is not None and database.path is not None:
            # Where the system does not let us look, all vectors are newer, as far as we know.
            with suppress(UnavailableError), building.files(database) as folder:
                generation = building.open_generation(database, folder, self.number, whole=self._distrusted)
                self.base = None if generation is None else Base(generation)
        self._distrusted = False
        upto = self.base.generation.header.upto if self.base else 0
        self.newer = Newer(self.number, self.space.dim, upto)
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
            self.newer.remove(vids)
            if self.base is not None:
                self.base.remove(vids)
        highest = (database.row("SELECT coalesce(max(vid), 0) FROM vector") or (0,))[0]
        self.is_due = database.path is not None and self._is_due(database, highest, len(gone))
        if not self.is_due:
            self.newer.read(database, highest)
        sql = "SELECT sid, number, mark, checksum FROM graph WHERE space=?"
        self._graphs = {sid: _Published(*row) for sid, *row in database.rows(sql, (self.number,))}

    def _is_due(self, database: Database, highest: int, gone: int) -> bool:
        """Tell whether a new generation is due; it also shortens the list of vectors that have gone."""
        rows = self.base.generation.header.rows if self.base else 0
        most = max(NEWER, rows // 10)
        room = most - self.newer.count - (len(self.base.dead) if self.base else 0)
        if room < 0 or gone > most:
            return True
        if highest - self.newer.last <= room:
            return False
        sql = "SELECT count(*) FROM vector WHERE space=? AND vid>?"
        found = database.row(sql, (self.number, self.newer.last))
        return found is not None and found[0] > room

    @property
    def published(self) -> int:
        """The number of the generation that SQLite names, 0 if there is none."""
        return self._published[0] if self._published else 0

    def live(self, sid: int) -> int:
        """Return how many vectors a session has, or ``ALL``."""
        sids = self.newer.sids
        newer = int((sids >= 0).sum() if sid == ALL else (sids == sid).sum())
        return newer + (self.base.live(self.range_of(sid)) if self.base else 0)

    def range_of(self, sid: int) -> Range:
        """Return which rows of the generation are of a session, or of ``ALL``."""
        return self.base.range_of(None if sid == ALL else sid) if self.base else (0, 0)

    def graph(self, database: Database, sid: int, *, wait: bool) -> Graph | None:
        """Return the graph of a session, or of ``ALL``; None if there is none that can be used.

        Without ``wait`` also None where reading it would take long.
        """
        published = self._graphs.get(sid)
        if published is None or published.number != self.published:
            return None
        known, graph = self._loaded.get(sid, (None, None))
        if known != published and self.base is not None:
            with building.files(database) as folder:
                name = building.name_of_graph(self.number, published.number, sid, published.mark)
                if not wait and is_large(folder, name):
                    return None
                graph = load_graph(folder, name, self.base.generation.header.stride, published.checksum)
            self._loaded[sid] = (published, graph)
        return graph
