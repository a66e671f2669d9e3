"""Administration of a home in PostgreSQL: create, check, scrub, distribute."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from psycopg import errors as pg

from keepstone.errors import StoreError
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.grant_rows import POLICIES
from keepstone.store.postgres.own_schema import own
from keepstone.store.postgres.postgres_maintenance import AGENT_TABLES, HOME_TABLES, TABLES, undistributed
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.schema import grant, is_distributed, trouble_of_extension, version_of


@contextmanager
def _connected(url: str) -> Iterator[tuple[Connections, Connection]]:
    connections = Connections(url, durable=True)
    with closing(connections), connections.translated(), connections.alone() as connection:
        connections.is_distributed = is_distributed(connection)
        yield connections, connection


def init(url: str, role: str | None) -> int:
    """Create or migrate the schema, grant a role access if given, and return the schema's version."""
    PostgresStore(url).close()
    with _connected(url) as (connections, connection):
        trouble = trouble_of_extension(connection)
        if trouble is not None:
            raise StoreError(trouble)
        if role is not None:
            grant(connections, role)
        return version_of(connection)


def status(url: str) -> dict[str, Any]:
    """Return the home's counts and the server's versions; nothing is changed."""
    with _connected(url) as (connections, connection):
        version = version_of(connection)
        if not version:
            raise StoreError(f"{connections.target.shown()} has no tables: run keepstone postgres init")
        [(server, size)] = connection.execute(
            f"SELECT current_setting('server_version'), sum(pg_total_relation_size({own('t')}))::bigint "
            "FROM unnest(%s::text[]) AS t".encode(),
            ([*TABLES],),
        ).fetchall()
        extensions = connection.execute(
            "SELECT extname, extversion FROM pg_extension WHERE extname IN ('vector', 'citus') ORDER BY 1"
        ).fetchall()
        counts = [0, 0, 0]
        agents = [
            name for (name,) in connection.execute("SELECT agent FROM agents ORDER BY agent").fetchall()
        ]
        # Count agent by agent, as row-level security shows only the rows of one agent at a time.
        for agent in agents:
            [row] = connections.read(
                agent,
                "SELECT (SELECT count(*) FROM sessions WHERE agent = %s), (SELECT coalesce(sum(entries), 0) "
                "FROM sessions WHERE agent = %s), "
                "(SELECT coalesce(sum(vectors), 0) FROM spaces WHERE agent = %s)",
                (agent, agent, agent),
            )
            counts = [count + int(more) for count, more in zip(counts, row, strict=True)]
        return {
            "home": connections.target.shown(),
            "schema": version,
            "server": server,
            "extensions": dict(extensions),
            "agents": len(agents),
            "sessions": counts[0],
            "entries": counts[1],
            "vectors": counts[2],
            "size": int(size),
        }


def scrub(url: str) -> list[str]:
    """Rewrite all tables, so that no removed byte is left in their files; return their names."""
    store = PostgresStore(url)
    with closing(store):
        return store.maintenance.scrub()


def distribute(url: str) -> list[str]:
    """Distribute the tables by agent over the nodes of a Citus cluster; return the tables' names."""
    PostgresStore(url).close()
    with _connected(url) as (_, connection):
        try:
            connection.execute("CREATE EXTENSION IF NOT EXISTS citus")
        except (pg.UndefinedFile, pg.FeatureNotSupported, pg.InsufficientPrivilege) as error:
            raise StoreError(
                f"Citus cannot be used here ({error.diag.message_primary}): install it, add citus to "
                "shared_preload_libraries, restart the server, and run this as a superuser"
            ) from None
        lacking = undistributed(connection)
        for table in ("keepstone_schema", *HOME_TABLES):
            if table in lacking:
                connection.execute("SELECT create_reference_table(%s)", (table,))
        for table, policy in (name.split() for name in POLICIES):
            # Citus allows no policies with subqueries: on a cluster, only the library checks grants.
            connection.execute(f"DROP POLICY IF EXISTS {policy} ON {table}".encode())
        first = AGENT_TABLES[0]
        for table in AGENT_TABLES:
            if table not in lacking:
                continue
            # Colocate all tables with the first one, so that the joins of one agent stay on one node.
            together = "default" if table == first else first
            connection.execute(
                "SELECT create_distributed_table(%s, 'agent', colocate_with => %s)", (table, together)
            )
        return list(AGENT_TABLES)
