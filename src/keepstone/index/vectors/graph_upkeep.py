"""HNSW graphs that queries asked for, built in the background one step at a time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import NamedTuple

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import temporary_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import TEMPORARY
from keepstone.index.database import DamagedError, Database, UnavailableError
from keepstone.index.vectors import building, packages, vector_table
from keepstone.index.vectors.cache import ALL, VectorCache
from keepstone.index.vectors.exact_scan import ExactScan
from keepstone.index.vectors.hnsw import Growing, load
from keepstone.vector import Space

_SAVED_EVERY, _WORTH_SAVING = 40_000, 4_000
"""Number of new rows after which an unfinished graph is saved: while it is built, and when work stops."""
_ROWS = (1 << 32) - 1
"""The bits of an unfinished graph's mark that hold the number of finished rows."""


class Due(NamedTuple):
    """A graph that is missing."""

    space: Space
    sid: int
    """The number of the session whose vectors the graph covers, or ``ALL``."""


@dataclass(slots=True)
class _Work:
    """A graph that is being built."""

    due: Due
    cache: VectorCache
    folder: Folder
    generation: int
    """The number of the generation whose rows the graph refers to."""
    purges: int
    """The number of purges when the build began."""
    growing: Growing
    saved: int
    """The value of ``growing.done`` when the graph was last saved."""


class GraphUpkeep:
    """Builds graphs. Any thread may call; ``cache_of`` returns the updated cache of a space."""

    def __init__(self, database: Database, cache_of: Callable[[Space], VectorCache | None]) -> None:
        self._database = database
        self._cache_of = cache_of
        self._guard = threading.Lock()
        self._due: dict[Due, int] = {}
        self._work: _Work | None = None
        self._alone = ExitStack()

    def add(self, due: Due, fewest: int) -> bool:
        """Schedule a graph that needs at least ``fewest`` vectors; False if graphs cannot be built here."""
        if self._database.path is None or not packages.is_installed(packages.USEARCH):
            return False
        self._due[due] = fewest
        return True

    def step(self) -> bool:
        """Do one step of work; False if no work is due or another process does it."""
        # The index's guard is taken inside this lock, never the other way round. ``add``, which queries call
        # while they hold the guard, does not take this lock.
        with self._guard:
            try:
                if self._work is None:
                    due = next(iter(self._due), None)
                    return due is not None and self._begin(due)
                if self._go_on(self._work):
                    self._end()
            except (KeepstoneError, OSError, RuntimeError) as error:
                # usearch raises RuntimeError if it cannot write.
                self._end()
                raise UnavailableError(str(error)) from error
            except BaseException:
                self._end()
                raise
            return True

    def stop(self) -> None:
        """Stop the graph that is being built, and save its finished part."""
        with self._guard:
            if self._work is not None and self._work.growing.done - self._work.saved >= _WORTH_SAVING:
                with suppress(UnavailableError, DamagedError, OSError, RuntimeError):
                    self._save_unfinished(self._work)
            self._end()

    def expect(self, fewest: int) -> None:
        """Schedule the graph that the next query over all entries would need, in each space."""
        with self._database as database:
            for space in vector_table.spaces(database):
                cache = self._cache_of(space)
                if cache is not None and (cache.is_due or cache.live(ALL) >= fewest):
                    self.add(Due(space, ALL), fewest)

    def _end(self) -> None:
        if self._work is not None:
            self._due.pop(self._work.due, None)
        self._work = None
        self._alone.close()

    def _begin(self, due: Due) -> bool:
        """Begin a graph, or first make the generation that it needs."""
        # Folder and build lock stay open from step to step, until ``_end``, so that no other process begins
        # the same graph.
        folder = self._alone.enter_context(building.files(self._database))
        if not self._alone.enter_context(building.alone(folder)):
            self._alone.close()
            return False
        fewest = self._due[due]
        with self._database as database:
            cache = self._cache_of(due.space)
            purges = building.value(database, "purges")
            made = cache is not None and cache.graph(database, due.sid, wait=True) is not None
        if cache is None or made or (not cache.is_due and cache.live(due.sid) < fewest):
            self._due.pop(due)
            self._alone.close()
        elif cache.scan is None or cache.is_due or cache.scan.live(cache.range_of(due.sid)) < fewest:
            # The graph stays due, so the next step begins it over the new generation.
            building.build(self._database, folder, cache.number, cache.space)
            self._alone.close()
        else:
            growing = self._growing(folder, cache, cache.scan, due.sid)
            self._work = _Work(due, cache, folder, cache.published, purges, growing, growing.done)
        return True

    def _growing(self, folder: Folder, cache: VectorCache, scan: ExactScan, sid: int) -> Growing:
        """Return the unfinished graph of a session's rows that an earlier process saved, or an empty one."""
        begin, end = cache.range_of(sid)
        with self._database as database:
            sql = "SELECT mark, checksum FROM graph WHERE space=? AND sid=? AND number=?"
            known = database.row(sql, (cache.number, _unfinished(sid), cache.published))
        if known is not None and begin <= (done := begin + (known[0] & _ROWS)) <= end:
            name = building.name_of_graph(cache.number, cache.published, _unfinished(sid), known[0])
            begun = load(folder, name, scan.generation.header.stride, known[1], grows=True)
            if begun is not None:
                return Growing(scan.generation, (done, end), scan.dead, begun)
        return Growing(scan.generation, (begin, end), scan.dead)

    def _go_on(self, work: _Work) -> bool:
        """Add some rows; True once the graph is published or obsolete."""
        with self._database as database:
            if not self._is_wanted(database, work):
                return True
        if not work.growing.step():
            if work.growing.done - work.saved >= _SAVED_EVERY:
                self._save_unfinished(work)
            return False
        # A random mark gives each version a different file name, so that a file that another process reads is
        # never overwritten.
        self._publish(work, work.due.sid, random.getrandbits(48))
        return True

    def _save_unfinished(self, work: _Work) -> None:
        """Save the finished part of a graph, so that another process can continue if this one ends."""
        done = work.growing.done - work.cache.range_of(work.due.sid)[0]
        self._publish(work, _unfinished(work.due.sid), random.getrandbits(16) * (_ROWS + 1) + done)
        work.saved = work.growing.done

    def _publish(self, work: _Work, sid: int, mark: int) -> None:
        """Write a graph and record it in the index, unless a purge ran while the graph was built."""
        name = building.name_of_graph(work.cache.number, work.generation, sid, mark)
        with temporary_file(work.folder, name + TEMPORARY) as fd:
            # The file exists before this check: a later purge removes it, even if this process is killed.
            with self._database as database:
                if not self._is_wanted(database, work):
                    return
            checksum = work.growing.save(fd)
            with self._database as database, database.writing():
                if self._is_wanted(database, work):
                    work.folder.replace(name + TEMPORARY, name)
                    row = (work.cache.number, sid, work.generation, mark, checksum)
                    database.execute("INSERT OR REPLACE INTO graph VALUES(?, ?, ?, ?, ?)", row)
                    if sid == work.due.sid:
                        sql = "DELETE FROM graph WHERE space=? AND sid=?"
                        database.execute(sql, (work.cache.number, _unfinished(sid)))
        with self._database as database:
            building.tidy(database, work.folder)

    @staticmethod
    def _is_wanted(database: Database, work: _Work) -> bool:
        """Return whether the generation is the same and nothing was purged. The caller holds the guard."""
        row = database.row("SELECT number FROM generation WHERE space=?", (work.cache.number,))
        return row == (work.generation,) and building.value(database, "purges") == work.purges


def _unfinished(sid: int) -> int:
    """Return the number under which the unfinished graph of a session is recorded."""
    return -1 - sid
