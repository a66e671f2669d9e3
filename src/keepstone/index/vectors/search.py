"""Vector search: exact, or by an HNSW graph if a large scope has one.

A scope is applied before anything is compared. Candidates among the older vectors come from the int8 rows of
a generation or from a graph over them, candidates among newer vectors from the float32 write buffer. SQLite
then returns the older candidates that still exist, and float32 ranks all candidates. A vector whose entry
moves to another scope gets another number, so every vector that SQLite returns is in scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keepstone.index.database import Database, UnavailableError
from keepstone.index.vectors import building, packages, vector_table
from keepstone.index.vectors.buffer import ROUNDING, nearest, times
from keepstone.index.vectors.cache import ALL, VectorCache
from keepstone.index.vectors.graph_upkeep import Due, GraphUpkeep
from keepstone.index.vectors.scope_filter import EVERYTHING, filter_of
from keepstone.index.vectors.segment import ChangedError
from keepstone.model import Scope
from keepstone.vector import SAMPLE, Space, Vector, quartiles

_TRIES = 3
"""Maximum number of times that one query makes or opens a generation; then it reads every vector."""


class Nearest(list[tuple[int, float]]):
    """Rows of entries with cosines, best first.

    Attributes:
        searched: ``"hnsw"`` if a graph chose among the older vectors, ``"exact"`` if all were compared.
        is_due: Whether upkeep can make the next such query faster.
    """

    def __init__(
        self, found: Iterable[tuple[int, float]] = (), searched: str = "exact", *, is_due: bool = False
    ) -> None:
        super().__init__(found)
        self.searched = searched
        self.is_due = is_due


class VectorSearch:
    """Vector search in one index, with a cache for each space. The caller need not hold the index's guard."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._spaces: dict[Space, VectorCache] = {}
        self.upkeep = GraphUpkeep(database, self.cache_of)

    def nearest(
        self, vector: Vector, space: Space, scope: Scope, limit: int, hnsw_from: int | None
    ) -> Nearest:
        """Return the entries in scope whose vectors have the largest cosine with the query, best first."""
        for _ in range(_TRIES):
            with self._database:
                cache = self.cache_of(space)
                if cache is None:
                    return Nearest()
                if not cache.is_due:
                    query = _Query(self._database, cache, vector, scope, limit)
                    try:
                        return query.answer(hnsw_from, self.upkeep)
                    except ChangedError:
                        # The file was changed after it was opened. It is reopened and checked as a whole; if
                        # that fails, the vectors count as newer and are read from SQLite.
                        cache.distrust()
                        continue
            # The guard of the index is released here: making a generation takes seconds, and other threads
            # must not wait for it.
            if not self._made(cache):
                break
        # The fallback, also while another process makes the generation: every vector in SQLite is compared.
        with self._database as database:
            blocks = vector_table.stream(
                database, vector_table.number_of(database, space) or 0, len(vector), scope
            )
            return Nearest(nearest(blocks, vector, limit))

    def close(self) -> None:
        """Stop the graph that is being built, and close all files."""
        self.upkeep.stop()
        self._spaces.clear()

    def memory(self) -> int:
        """Return how many bytes ``release_memory`` would free. The caller holds the index's guard."""
        return sum(cache.memory() for cache in self._spaces.values())

    def release_memory(self) -> None:
        """Drop all cached vectors. The caller holds the index's guard."""
        self._spaces.clear()

    def cosines(self, vector: Vector, space: Space, eids: Sequence[int]) -> dict[int, float]:
        """Return the cosines of a vector with the vectors of some rows, for rows that have a vector."""
        with self._database as database:
            cache = self.cache_of(space)
            if cache is None:
                return {}
            # While too many vectors wait for a generation, the newer ones are not in memory.
            found = {} if cache.is_due else cache.buffer.cosines(eids, vector)
            others = [eid for eid in eids if eid not in found]
            return found | vector_table.cosines(database, cache.number, others, vector)

    def cosine_quartiles(self, vector: Vector, space: Space) -> tuple[float, float] | None:
        """Return median and upper quartile of a vector's cosines with a space; None if it has few vectors."""
        with self._database as database:
            cache = self._spaces.get(space)
            # A full sample may be as old as the last comparison; a smaller one must have all vectors.
            is_whole = cache is not None and cache.sample is not None and len(cache.sample) >= SAMPLE
            if cache is None or not is_whole or cache.connection is not database.connection:
                cache = self.cache_of(space)
            if cache is None:
                return None
            matrix = cache.take_sample(database) if cache.sample is None else cache.sample
        return quartiles(times(matrix, vector).tolist())

    def cache_of(self, space: Space) -> VectorCache | None:
        """Return the updated cache of a space, None if it never had vectors. The caller holds the guard."""
        database, cache = self._database, self._spaces.get(space)
        if cache is None or cache.connection is not database.connection:
            # A recreated index file numbers its spaces differently.
            number = vector_table.number_of(database, space)
            if number is None:
                return None
            cache = self._spaces[space] = VectorCache(database, number, space)
        stamp = database.stamp()
        if stamp != cache.stamp:
            cache.follow(database, stamp)
        return cache

    def _made(self, cache: VectorCache) -> bool:
        """Make the generation that is due; False if another process does, a purge ran, or the disk fails."""
        try:
            with building.files(self._database) as folder, building.alone(folder) as allowed:
                return allowed and building.build(self._database, folder, cache.number, cache.space)
        except (UnavailableError, OSError):
            return False


class _Query:
    """One query: a vector that is compared with the vectors in a scope. The caller holds the guard."""

    def __init__(
        self, database: Database, cache: VectorCache, vector: Vector, scope: Scope, limit: int
    ) -> None:
        self._database = database
        self._cache = cache
        self._vector = vector
        self._scope = scope
        self._limit = limit
        is_limited = scope.sessions is not None or scope.limits_within_a_session
        self._filter = filter_of(database, cache.number, scope, cache.sids) if is_limited else EVERYTHING
        self._newer = cache.buffer.nearest(vector, self._filter, limit, ROUNDING)

    def answer(self, hnsw_from: int | None, upkeep: GraphUpkeep) -> Nearest:
        """Return the nearest vectors, by a graph if there is one; schedule a graph that is missing."""
        is_due, sid = False, None if hnsw_from is None else self._whole()
        fewest, cache = max(hnsw_from or 0, 1), self._cache
        # ``live`` counts rows, so two cheap bounds come first: most indexes are too small for a graph.
        if cache.scan is None and cache.buffer.count < fewest:
            sid = None
        if sid is not None and cache.may_have(sid, fewest) and (count := cache.live(sid)) >= fewest:
            found = self._by_graph(sid) if packages.is_installed(packages.USEARCH) else None
            if found is None:
                is_due = upkeep.add(Due(self._cache.space, sid), fewest)
            # A graph's answer is approximate, and removed rows are left out of it. If too few hits remain,
            # all rows are compared.
            elif len(found) >= min(self._limit, count):
                return Nearest(found, "hnsw")
        base = self._cache.scan
        vids = base.nearest(self._vector, self._filter, self._limit) if base else []
        return Nearest(self._compared(vids), is_due=is_due)

    def _whole(self) -> int | None:
        """Return the session if exactly one is searched whole, ``ALL`` for all sessions, else None."""
        scope_filter = self._filter
        if self._scope.where or not (scope_filter is EVERYTHING or scope_filter.is_plain):
            return None
        sids = [ALL] if scope_filter.sids is None else scope_filter.sids
        return sids[0] if len(sids) == 1 else None

    def _by_graph(self, sid: int) -> list[tuple[int, float]] | None:
        graph = self._cache.graph(self._database, sid, wait=False)
        if graph is None or self._cache.scan is None:
            return None
        return self._compared(self._cache.scan.nearest_by(graph, self._vector, self._limit))

    def _compared(self, vids: list[int]) -> list[tuple[int, float]]:
        number, dim = self._cache.number, self._cache.space.dim
        older = vector_table.fetch(self._database, number, dim, vids) if vids else None
        blocks = [block for block in (older, self._newer) if block is not None]
        return nearest(blocks, self._vector, self._limit)
