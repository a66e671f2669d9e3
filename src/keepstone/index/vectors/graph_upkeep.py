"""HNSW graphs that queries asked for, built in the background one step at a time."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import temporary_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import TEMPORARY
from keepstone.index.database import Database, UnavailableError
from keepstone.index.vectors import building
from keepstone.index.vectors.cache import VectorCache
from keepstone.index.vectors.hnsw import Growing
from keepstone.vector import Space


class Due(NamedTuple):
    """A graph that is missing."""

    space: Space
    sid: int
    """The number of the session that it is of, or ``ALL``."""


@dataclass(frozen=True, slots=True)
class _Work:
    """A graph in the making."""

    due: Due
    held: VectorCache
    folder: Folder
    generation: int
    """The number of the generation that it is of."""
    purges: int
    """How often anything was purged when it was begun."""
    growing: Growing


class GraphUpkeep:
    """Makes graphs. Any thread may call; ``held`` brings what is held of a space to what SQLite has."""

    def __init__(self, database: Database, held: Callable[[Space], VectorCache | None]) -> None:
        self._database = database
        self._held = held
        self._guard = threading.Lock()
        self._due: dict[Due, int] = {}
        self._work: _Work | None = None
        self._alone = ExitStack()

    def add(self, due: Due, fewest: int) -> bool:
        """Schedule a graph that needs at least ``fewest`` vectors; False for an index in memory."""
        if self._database.path is None:
            return False
        self._due[due] = fewest
        return True

    def step(self) -> bool:
        """Do one step of work; False if none is due or another process does it."""
        with self._guard:
            try:
                if self._work is None:
                    due = next(iter(self._due), None)
                    return due is not None and self._begin(due)
                if self._go_on(self._work):
                    self._end()
            except (KeepstoneError, OSError, RuntimeError) as error:
                # RuntimeError is what usearch raises where it cannot write.
                self._end()
                raise UnavailableError(str(error)) from error
            except BaseException:
                self._end()
                raise
            return True

    def stop(self) -> None:
        """Stop the graph that is being built."""
        with self._guard:
            self._end()

    def _end(self) -> None:
        if self._work is not None:
            self._due.pop(self._work.due, None)
        self._work = None
        self._alone.close()

    def _begin(self, due: Due) -> bool:
        """Begin with a graph, or make the generation first that it is to be of."""
        folder = self._alone.enter_context(building.files(self._database))
        if not self._alone.enter_context(building.alone(folder)):
            self._alone.close()
            return False
        fewest = self._due[due]
        with self._database.guarded() as database:
            held = self._held(due.space)
            purges = building.value(database, "purges")
            made = held is not None and held.graph(database, due.sid, wait=True) is not None
        if held is None or made or (not held.is_due and held.live(due.sid) < fewest):
            self._due.pop(due)
            self._alone.close()
        elif held.scan is None or held.is_due or held.scan.live(held.range_of(due.sid)) < fewest:
            building.build(self._database, folder, held.number, held.space)
            self._alone.close()
        else:
            growing = Growing(held.scan.generation, held.range_of(due.sid), held.scan.dead)
            self._work = _Work(due, held, folder, held.published, purges, growing)
        return True

    def _go_on(self, work: _Work) -> bool:
        """Add some rows; True once the graph is published or obsolete."""
        with self._database.guarded() as database:
            if not self._is_wanted(database, work):
                return True
        if not work.growing.step():
            return False
        mark = random.getrandbits(48)
        name = building.name_of_graph(work.held.number, work.generation, work.due.sid, mark)
        self._publish(work, name, mark)
        with self._database.guarded() as database:
            building.tidy(database, work.folder)
        return True

    def _publish(self, work: _Work, name: str, mark: int) -> None:
        """Write a finished graph and record it in the index, unless a purge came in between."""
        with temporary_file(work.folder, name + TEMPORARY) as fd:
            # The file is there before this look: a purge after it removes the name, whatever becomes of us.
            with self._database.guarded() as database:
                if not self._is_wanted(database, work):
                    return
            checksum = work.growing.save(fd)
            with self._database.guarded() as database, database.writing():
                if self._is_wanted(database, work):
                    work.folder.replace(name + TEMPORARY, name)
                    row = (work.held.number, work.due.sid, work.generation, mark, checksum)
                    database.execute("INSERT OR REPLACE INTO graph VALUES(?, ?, ?, ?, ?)", row)

    @staticmethod
    def _is_wanted(database: Database, work: _Work) -> bool:
        """Tell whether nothing was purged, and the generation is the same; the guard is held."""
        row = database.row("SELECT number FROM generation WHERE space=?", (work.held.number,))
        return row == (work.generation,) and building.value(database, "purges") == work.purges
