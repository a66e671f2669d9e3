"""The reader of an agent in PostgreSQL: what a recall asks, in four round trips for most questions.

They are the words (with what has no vector yet), the vectors, the neighbours (with how near they and all
candidates are, and how they begin), and the entries that are shown. What one of them brought is remembered.
Identifiers and rare words take another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from keepstone.model import Entry, Scope
from keepstone.store.postgres import vector_rows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_lists import FROM, LOADED, conditions, loaded
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.vector_rows import Query
from keepstone.store.postgres.word_scores import HolderCounts, WordQuery
from keepstone.store.reader_protocol import HNSW_FROM, Candidate, Matches, Similar
from keepstone.vector import Vector


class PostgresReader:
    """A ``Reader`` of what an agent's sessions hold now. A key is never given to another entry."""

    stale = False

    def __init__(
        self,
        connections: Connections,
        agent: str,
        counts: HolderCounts,
        due: set[tuple[str, str, int]],
        space: vector_rows.RecordedSpace,
        samples: vector_rows.VectorSamples,
        sizes: vector_rows.Sizes,
    ) -> None:
        self._connections = connections
        self._agent = agent
        self._counts = counts
        self._due = due
        self._space = space
        self._samples = samples
        self._sizes = sizes
        self._asked: tuple[str, Vector] | None = None
        self._near: dict[int, float | None] = {}
        self._heads: dict[int, tuple[str, datetime]] = {}
        self._pending: tuple[str, Scope, int] | None = None
        self._sampled: list[float] | None = None

    def search(self, terms: Sequence[str], scope: Scope, limit: int) -> Matches:
        """Return entries in scope that hold any of the words, best first."""
        query = WordQuery(terms, scope, limit, self._counts, self._connections.language)
        if not query.sql or not limit:
            return Matches()
        queries: list[Query] = [(query.sql, query.values), self._space.query]
        space = self._space.known
        if space is not None:
            queries += [_pending_count(space.id, scope), vector_rows.sizes(space.id, scope)]
        rows, recorded, *more = self._connections.read_all(self._agent, queries)
        self._space.take(recorded)
        if space is not None:
            self._pending = (space.id, scope, more[0][0][0])
            self._sizes.take(space.id, scope, more[1])
        ranked = query.ranked(rows)
        self._heads |= {one.key: (shown(one.head), one.ts.astimezone(UTC)) for one in ranked}
        return Matches([Candidate(one.key, one.score) for one in ranked], *query.counted(rows))

    def similar(
        self, vector: Vector, space: str, scope: Scope, limit: int, hnsw_from: int = HNSW_FROM
    ) -> Similar:
        """Return the entries in scope whose vectors of a space are nearest, best first."""
        if not limit:
            return Similar()
        self._remember(vector, space)
        by_graph, is_due = self._by_graph(space, scope, len(vector), hnsw_from)
        self._sampled = self._samples.cosines(self._agent, space, vector)
        queries: list[Query] = [vector_rows.sizes(space, scope)]
        if self._sampled is None:
            queries.append(vector_rows.sampled_cosines(vector, space, self._agent))
        if by_graph:
            queries.append((vector_rows.graph_settings(limit), ()))
            queries.append(vector_rows.nearest_by_graph(vector, space, scope, limit))
        else:
            queries.append(vector_rows.nearest(vector, space, scope, limit))
        sized, *sampled, rows = self._connections.read_all(self._agent, queries)
        self._sizes.take(space, scope, sized)
        if by_graph and len(rows) < min(limit, sized[0][0]):  # It ended before the filter let enough through.
            by_graph = False
            rows = self._connections.read(self._agent, *vector_rows.nearest(vector, space, scope, limit))
        if self._sampled is None:
            self._take_sample(space, sampled[0])
        found = sorted((Candidate(key, -far) for key, far in rows), key=lambda one: (-one.score, one.key))
        self._near |= {one.key: one.score for one in found}
        return Similar(found, "hnsw" if by_graph else "exact", is_due=is_due)

    def cosine_quartiles(self, vector: Vector, space: str) -> tuple[float, float] | None:
        """Return median and upper quartile of a vector's cosines with a sample; None if there are too few."""
        self._remember(vector, space)
        if self._sampled is None:  # Else it came with the nearest ones.
            self._sampled = self._samples.cosines(self._agent, space, vector)
        if self._sampled is None:
            query = vector_rows.sampled_cosines(vector, space, self._agent)
            self._take_sample(space, self._connections.read(self._agent, *query))
        found = sorted(self._sampled or ())
        if len(found) < vector_rows.FEWEST_SAMPLED:
            return None
        return found[len(found) // 2], found[3 * len(found) // 4]

    def _take_sample(self, space: str, rows: Sequence[tuple[Any, ...]]) -> None:
        self._sampled = [cosine for cosine, _ in rows]
        self._samples.learn(self._agent, space, rows)

    def _by_graph(self, space: str, scope: Scope, dim: int, hnsw_from: int) -> tuple[bool, bool]:
        """Tell whether the agent's graph is to be asked, and whether one is to be made."""
        is_whole = not scope.limits_within_a_session and len(scope.sessions or ("",)) == 1
        if not is_whole or dim > vector_rows.MOST_DIMENSIONS:
            return False, False
        count, is_there = self._sizes.get(space, scope) or (hnsw_from, False)
        if count >= hnsw_from and not is_there:  # Asked again, as one may have been made.
            rows = self._connections.read(self._agent, *vector_rows.sizes(space, scope))
            self._sizes.take(space, scope, rows)
            [(count, is_there)] = rows
        if count < hnsw_from:
            return False, False
        if not is_there:
            self._due.add((self._agent, space, dim))
        return is_there, not is_there

    def _remember(self, vector: Vector, space: str) -> None:
        """Forget how near entries are to another vector than this one."""
        if self._asked is None or self._asked[0] != space or not (self._asked[1] == vector).all():
            self._asked, self._near, self._sampled = (space, vector), {}, None

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return keys with the other entries in scope at most ``reach`` places from them."""
        if not keys:
            return []
        condition, values = conditions(scope)
        near = [
            f"SELECT key, row_number() OVER (ORDER BY seq {order}) AS far "
            "FROM (SELECT n.key, n.seq FROM entries n "
            f"WHERE n.agent = x.agent AND n.session = x.session AND n.seq {sign} x.seq "
            f"ORDER BY n.seq {order} LIMIT %s) a"
            for order, sign in (("DESC", "<"), ("ASC", ">"))
        ]
        # How near they are is only compared with the vector that was asked about last.
        measured, joined, given = self._measure()
        rows, own = self._connections.read_all(
            self._agent,
            [
                (
                    f"SELECT x.key, e.key, near.far, e.head, e.ts, {measured} FROM entries x "
                    f"CROSS JOIN LATERAL (({near[0]}) UNION ALL ({near[1]})) near "
                    f"JOIN entries e ON e.agent = x.agent AND e.key = near.key {joined} "
                    f"WHERE x.agent = %s AND x.key = ANY(%s) AND {condition}",
                    [*given[:1], reach, reach, *given[1:], self._agent, list(keys), *values],
                ),
                (
                    f"SELECT e.key, e.head, e.ts, {measured} FROM entries e {joined} "
                    "WHERE e.agent = %s AND e.key = ANY(%s)",
                    [*given, self._agent, list(keys)],
                ),
            ],
        )
        self._learn(row[1:2] + row[3:] for row in rows)
        self._learn(own)
        return [(key, other, far) for key, other, far, *_ in rows]

    def _measure(self) -> tuple[str, str, list[Any]]:
        if self._asked is None:
            return "NULL", "", []
        space, vector = self._asked
        joined = "LEFT JOIN vectors v ON v.agent = e.agent AND v.key = e.key AND v.space = %s"
        return "-(v.embedding <#> %s::vector)", joined, [vector, stored(space)]

    def _learn(self, rows: Iterable[Sequence[Any]]) -> None:
        for key, head, ts, near in rows:
            self._heads[key] = (shown(head), ts.astimezone(UTC))
            if self._asked is not None:
                self._near[key] = near

    def cosines(self, vector: Vector, space: str, keys: Sequence[int]) -> dict[int, float]:
        """Return how near the vectors of entries are to one; those without a vector are left out."""
        self._remember(vector, space)
        self._look_up([key for key in keys if key not in self._near])
        found = ((key, self._near.get(key)) for key in keys)
        return {key: near for key, near in found if near is not None}

    def heads(self, keys: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        """Return how the texts of entries begin, and when they were made."""
        self._look_up([key for key in keys if key not in self._heads])
        return {key: self._heads[key] for key in keys if key in self._heads}

    def _look_up(self, keys: Sequence[int]) -> None:
        if not keys:
            return
        measured, joined, given = self._measure()
        self._learn(
            self._connections.read(
                self._agent,
                f"SELECT e.key, e.head, e.ts, {measured} FROM entries e {joined} "
                "WHERE e.agent = %s AND e.key = ANY(%s)",
                [*given, self._agent, list(keys)],
            )
        )

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        """Return the entries that keys name, without those that are gone."""
        if not keys:
            return {}
        rows = self._connections.read(
            self._agent,
            f"SELECT e.key, {LOADED} {FROM} WHERE e.agent = %s AND e.key = ANY(%s)",
            (self._agent, list(keys)),
        )
        found = {key: loaded(self._agent, row) for key, *row in rows}
        return {key: found[key] for key in keys if key in found}

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the keys of entries in scope that have text and no vector of a space, the oldest first."""
        source, values = _pending(space, scope)
        if cursor is not None:
            source += f" AND e.key {'<' if newest_first else '>'} %s"
            values = [*values, cursor]
        if keys is not None:
            source += " AND e.key = ANY(%s)"
            values = [*values, list(keys)]
        sql = f"SELECT e.key {source} ORDER BY e.key {'DESC' if newest_first else 'ASC'} LIMIT %s"
        return [key for (key,) in self._connections.read(self._agent, sql, [*values, limit])]

    def pending_count(self, space: str, scope: Scope) -> int:
        """Return how many entries in scope have text and no vector of a space."""
        known, self._pending = self._pending, None  # Once: what is made later is to be seen.
        if known is not None and known[:2] == (space, scope):
            return known[2]
        queries = [_pending_count(space, scope), vector_rows.sizes(space, scope)]
        [[count]], sized = self._connections.read_all(self._agent, queries)
        self._sizes.take(space, scope, sized)
        return int(count)


def _pending_count(space: str, scope: Scope) -> Query:
    source, values = _pending(space, scope)
    return f"SELECT count(*) {source}", values


def _pending(space: str, scope: Scope) -> Query:
    """Return the SQL of entries without a vector, from FROM on; sessions that have all are not looked at."""
    condition, values = conditions(scope)
    lacking, lacking_values = conditions(Scope(scope.agent, scope.sessions), alias="s")
    made = "SELECT c.vectors FROM spaces c WHERE c.agent = s.agent AND c.session = s.session AND c.space = %s"
    sessions = (
        f"SELECT s.session FROM sessions s WHERE {lacking} "
        f"AND (s.entries > s.texts OR s.texts > coalesce(({made}), 0))"
    )
    return (
        f"FROM entries e WHERE {condition} AND e.sum IS NOT NULL "
        f"AND e.session = ANY(ARRAY({sessions})) AND NOT EXISTS (SELECT 1 FROM vectors v "
        "WHERE v.agent = e.agent AND v.key = e.key AND v.space = %s)",
        [*values, *lacking_values, stored(space), stored(space)],
    )
