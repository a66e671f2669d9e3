"""Vectors in pgvector: storage, lookup, and search by an exact scan or a graph (HNSW)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from psycopg import sql

from keepstone.model import Entry, Scope
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.entry_lists import conditions
from keepstone.store.postgres.entry_rows import digest, shown, stored
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.own_schema import own
from keepstone.store.postgres.session_lines import insert_vectors
from keepstone.store.postgres.vector_format import vector_of
from keepstone.store.reader import HNSW_FROM
from keepstone.vector import Space, Vector

Query: TypeAlias = "tuple[str, Sequence[Any]]"

MOST_DIMENSIONS = 2000
"""Maximum number of dimensions of a pgvector graph."""

_MOST_SIZES = 10_000
_SPACE = "space"
_DROP = sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}")
_SPACES = "SELECT space, max(dim) FROM spaces WHERE agent = %s AND vectors > 0 GROUP BY space ORDER BY space"
_TABLE = own("'vectors'")
_FRESH = 1.0
"""Seconds for which a cached value is valid."""


_Sized: TypeAlias = "tuple[str, str, tuple[str, ...] | None]"
"""Cache key: a space, an agent and its sessions (None: all)."""


class Sizes:
    """Cache of the number of vectors in each scope, and of whether its space has a graph.

    A slightly outdated value can only select the slower of two ways to the same answer.
    """

    def __init__(self) -> None:
        self._known: dict[_Sized, tuple[int, bool, float]] = {}

    def get(self, space: str, scope: Scope) -> tuple[int, bool] | None:
        """Return the cached sizes of a scope."""
        known = self._known.get((space, scope.agent, scope.sessions))
        return None if known is None else known[:2]

    def is_due(self, space: str, scope: Scope) -> bool:
        """Return whether the next search should read the sizes again."""
        known = self._known.get((space, scope.agent, scope.sessions))
        return known is None or time.monotonic() - known[2] >= _FRESH

    def take(self, space: str, scope: Scope, rows: Sequence[tuple[Any, ...]]) -> None:
        """Cache the result of the query ``sizes``."""
        if len(self._known) > _MOST_SIZES:
            self._known = {}
        known = (int(rows[0][0]), rows[0][1], time.monotonic())
        self._known[space, scope.agent, scope.sessions] = known


def sizes(space: str, scope: Scope) -> Query:
    """Return the query for the number of vectors of a scope's sessions, and whether the agent has a graph.

    The number is 0 for large sessions with less than half of the agent's vectors, so that no graph is used: a
    graph loses recall if the filter rejects most of the vectors that it finds.
    """
    condition, values = conditions(Scope(scope.agent, scope.sessions), alias="s")
    return (
        f"SELECT CASE WHEN n >= {HNSW_FROM} AND 2 * n < "
        "(SELECT sum(s.vectors) FROM spaces s WHERE s.agent = %s AND s.space = %s) THEN 0 ELSE n END, "
        f"coalesce((SELECT indisvalid FROM pg_index WHERE indexrelid = {own('%s')}), false) "
        f"FROM (SELECT coalesce(sum(s.vectors), 0) AS n FROM spaces s WHERE {condition} AND s.space = %s) c",
        [scope.agent, stored(space), graph_name(scope.agent, space), *values, stored(space)],
    )


class RecordedSpace:
    """Cache of the recorded space of the home's embedder, valid for a short time."""

    query = ("SELECT value FROM home WHERE key = %s", (_SPACE,))
    """The query that reads the space, sent with the first queries of a recall."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self.known: Space | None = None
        self._at = float("-inf")

    def get(self) -> Space | None:
        """Return the space, or None if none is recorded."""
        if time.monotonic() - self._at >= _FRESH:
            self.take(self._connections.read("", *self.query))
        return self.known

    def take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Cache the result of ``query``."""
        self.known = next((Space(**json.loads(value)) for (value,) in rows), None)
        self._at = time.monotonic()

    def set(self, space: Space) -> None:
        """Record the space."""
        probe = {"probe": space.probe} if space.probe else {}
        value = json.dumps({"id": space.id, "dim": space.dim} | probe)
        self._connections.read(
            "",
            "INSERT INTO home VALUES (%s, %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (_SPACE, value),
        )
        self.known, self._at = space, time.monotonic()


class AgentSpaces:
    """Cache of the spaces of the last used agent, valid for a short time and until the next write."""

    def __init__(self, connections: Connections, home: RecordedSpace) -> None:
        self.home = home
        self._connections = connections
        self._known: dict[str, tuple[float, int, list[Space]]] = {}

    def get(self, agent: str) -> list[Space]:
        """Return the spaces of an agent."""
        if not self.is_due(agent) and self._known[agent][2]:  # An empty list is read again: it may be old.
            return list(self._known[agent][2])
        writes = self._connections.writes
        rows, recorded = self._connections.read_all(agent, [self.query(agent), self.home.query])
        self.home.take(recorded)  # The caller needs it next.
        return self.take(agent, writes, rows)

    def query(self, agent: str) -> Query:
        """Return the statement for an agent's spaces, sent with the first queries of a recall."""
        return _SPACES, (agent,)

    def is_due(self, agent: str) -> bool:
        """Return whether the next search should read the agent's spaces again."""
        at, written, _ = self._known.get(agent, (float("-inf"), 0, []))
        return written != self._connections.writes or time.monotonic() - at >= _FRESH

    def take(self, agent: str, writes: int, rows: Sequence[tuple[Any, ...]]) -> list[Space]:
        """Cache the result of the query; ``writes`` is the number of writes before it was sent."""
        found = [Space(shown(name), dim) for name, dim in rows]
        self._known = {agent: (time.monotonic(), writes, found)}
        return list(found)


def vectors(
    connections: Connections, agent: str, session: str, space: str, ids: Sequence[str]
) -> dict[str, Vector]:
    """Return the vectors that a session's entries have in a space, by id."""
    rows = connections.read(
        agent,
        "SELECT e.id, vector_send(v.embedding) FROM entries e "
        "JOIN vectors v ON v.agent = e.agent AND v.key = e.key "
        "WHERE e.agent = %s AND e.session = %s AND e.id = ANY(%s) AND v.space = %s",
        (agent, stored(session), [*map(stored, ids)], stored(space)),
    )
    return {shown(name): vector_of(raw) for name, raw in rows}


def vectors_today(
    connections: Connections, agent: str, space: str, sessions: Mapping[str, Sequence[Entry]]
) -> dict[str, dict[str, Vector]]:
    """Return the current vectors of past entries whose text is unchanged, by session and id."""
    rows = connections.read(
        agent,
        "SELECT e.session, e.id, e.sum, vector_send(v.embedding) FROM entries e "
        "JOIN vectors v ON v.agent = e.agent AND v.key = e.key "
        "WHERE e.agent = %s AND e.session = ANY(%s) AND v.space = %s",
        (agent, [*map(stored, sessions)], stored(space)),
    )
    today = {(shown(session), shown(name)): (total, raw) for session, name, total, raw in rows}
    found: dict[str, dict[str, Vector]] = {}
    for session, entries in sessions.items():
        pairs = ((entry, today.get((session, entry.id))) for entry in entries)
        found[session] = {
            entry.id: vector_of(row[1]) for entry, row in pairs if row and row[0] == digest(entry.text)
        }
    return found


def keep(connections: Connections, agent: str, space: str, made: Sequence[tuple[Entry, Vector]]) -> int:
    """Store vectors of entries and return their number; discard them for entries whose text has changed."""
    by_session: dict[str, list[tuple[Entry, Vector]]] = {}
    for entry, vector in made:
        by_session.setdefault(entry.session, []).append((entry, vector))
    return sum(
        _keep(connections, agent, session, space, of_session) for session, of_session in by_session.items()
    )


def _keep(
    connections: Connections, agent: str, session: str, space: str, made: Sequence[tuple[Entry, Vector]]
) -> int:
    vectors = {entry.id: (entry.text, vector) for entry, vector in made if entry.text}

    def work(locked: LockedSession | None) -> int:
        if locked is None:
            return 0
        rows = locked.connection.execute(
            "SELECT e.id, e.key, e.sum, v.key IS NULL FROM entries e LEFT JOIN vectors v "
            "ON v.agent = e.agent AND v.key = e.key AND v.space = %s "
            "WHERE e.agent = %s AND e.session = %s AND e.id = ANY(%s)",
            (stored(space), *locked.place, [*map(stored, vectors)]),
        )
        found = [(key, is_lacking, total, *vectors[shown(name)]) for name, key, total, is_lacking in rows]
        # The vectors were made without the lock, so check that the texts are unchanged.
        same = [
            (key, is_lacking, vector)
            for key, is_lacking, total, text, vector in found
            if total == digest(text)
        ]
        insert_vectors(locked, space, [(key, vector) for key, is_lacking, vector in same if is_lacking])
        return len(same)

    return locked(connections, agent, session, [], work)


def forget(connections: Connections, agent: str, space: str) -> int:
    """Remove an agent's vectors of a space and return their number."""
    rows = connections.read_all(
        agent,
        [
            (
                "WITH gone AS (DELETE FROM vectors WHERE agent = %s AND space = %s RETURNING 1) "
                "SELECT count(*) FROM gone",
                (agent, stored(space)),
            ),
            ("DELETE FROM spaces WHERE agent = %s AND space = %s", (agent, stored(space))),
        ],
    )
    connections.writes += 1
    return int(rows[0][0][0])


# Searching


def nearest(vector: Vector, space: str, scope: Scope, limit: int) -> Query:
    """Return the query for the nearest entries in scope, with distances: an exact scan.

    The operand is not the indexed expression of a graph, so that PostgreSQL does not use a graph.
    """
    condition, values = conditions(Scope(scope.agent, scope.sessions), alias="v")
    joined, more = "", list[object]()
    if scope.limits_within_a_session:
        rest, more = conditions(replace(scope, sessions=None))
        joined = f"JOIN entries e ON e.agent = v.agent AND e.key = v.key AND {rest}"
    return (
        f"SELECT v.key, v.embedding <#> %s::vector AS distance FROM vectors v {joined} "
        f"WHERE {condition} AND v.space = %s ORDER BY distance, v.key LIMIT {limit}",
        [vector, *more, *values, stored(space)],
    )


def nearest_by_graph(vector: Vector, space: str, scope: Scope, limit: int) -> Query:
    """Return the query for the nearest entries by an agent's graph, in one session or in all sessions."""
    condition, values = conditions(Scope(scope.agent, scope.sessions), alias="v")
    statement = sql.SQL(
        # Agent and space are literals: PostgreSQL uses a partial index only if the planner can see that the
        # condition of the index is met.
        "SELECT v.key, (v.embedding::vector({dim})) <#> %s::vector({dim}) AS distance FROM vectors v "
        "WHERE {condition} AND v.agent = {agent} AND v.space = {space} ORDER BY distance LIMIT {limit}"
    ).format(
        condition=sql.SQL(condition),
        agent=sql.Literal(scope.agent),
        space=sql.Literal(stored(space)),
        dim=sql.SQL(str(len(vector))),
        limit=sql.Literal(limit),
    )
    return statement.as_string(), [vector, *values]


def graph_name(agent: str, space: str) -> str:
    """Return the name of the graph for an agent's vectors in a space."""
    return f"vectors_graph_{digest(agent, stored(space)) & 0xFFFFFFFFFFFF:012x}"


def graph_settings(limit: int) -> str:
    """Return the statement that makes a graph search continue until enough rows pass the filter."""
    width = max(200, min(4 * limit, 1000))
    return (
        f"SELECT set_config('hnsw.ef_search', '{width}', true), "
        "set_config('hnsw.iterative_scan', 'strict_order', true), "
        "set_config('hnsw.max_scan_tuples', '200000', true)"
    )


def make_graph(connections: Connections, agent: str, space: str, dim: int) -> None:
    """Build the graph of an agent's vectors of a space, without blocking writers.

    The graph has no vectors of other agents: among these, a search would end before it found the agent's own.
    """
    statement = sql.SQL(
        # Vectors have unit length, so the inner product is the cosine, and takes less time.
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON vectors USING hnsw "
        "((embedding::vector({dim})) vector_ip_ops) WHERE agent = {agent} AND space = {space}"
    ).format(
        name=sql.Identifier(graph_name(agent, space)),
        dim=sql.SQL(str(dim)),
        agent=sql.Literal(agent),
        space=sql.Literal(stored(space)),
    )
    with connections.translated(), connections.alone() as connection:
        # An interrupted attempt leaves an invalid index, which PostgreSQL does not use.
        broken = connection.execute(
            f"SELECT 1 FROM pg_index i WHERE i.indexrelid = {own('%s')} AND NOT i.indisvalid".encode(),
            (graph_name(agent, space),),
        ).fetchall()
        if broken:
            connection.execute(_DROP.format(sql.Identifier(graph_name(agent, space))))
        connection.execute(
            "SELECT set_config('maintenance_work_mem', '512MB', false) "
            "WHERE pg_size_bytes(current_setting('maintenance_work_mem')) < 512 << 20"
        )
        connection.execute(statement)


def owns_vectors(connections: Connections) -> bool:
    """Return whether the role may build graphs, which only an owner of the table may."""
    owner = f"SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = {_TABLE}"
    return any(is_owner for (is_owner,) in connections.read("", owner))


def without_graph(connections: Connections, agent: str) -> list[tuple[str, int, int]]:
    """Return an agent's large spaces without a graph, each with its dimension and number of vectors."""
    rows = connections.read(
        agent,
        "SELECT space, max(dim), sum(vectors)::bigint FROM spaces WHERE agent = %s GROUP BY space "
        f"HAVING sum(vectors) >= {HNSW_FROM} AND max(dim) <= {MOST_DIMENSIONS} ORDER BY space",
        (agent,),
    )
    found = [(shown(space), dim, count) for space, dim, count in rows]
    valid = f"SELECT 1 FROM pg_index WHERE indexrelid = {own('%s')} AND indisvalid"
    return [row for row in found if not connections.read(agent, valid, (graph_name(agent, row[0]),))]


def drop_graphs(connections: Connections, agent: str) -> None:
    """Drop the graphs of a purged agent, whose definitions contain its name, if the role owns them.

    The drops are concurrent, so that other agents are not blocked.
    """
    with connections.translated(), connections.alone() as connection:
        graphs = connection.execute(
            "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            f"WHERE i.indrelid = {_TABLE} AND pg_has_role(c.relowner, 'USAGE') AND strpos("
            "pg_get_expr(i.indpred, i.indrelid), format('(agent = %%L::text)', %s::text)) > 0".encode(),
            (agent,),
        ).fetchall()
        for (name,) in graphs:
            connection.execute(_DROP.format(sql.Identifier(name)))
