"""The tables of a home. Numbered SQL files create and migrate them in order, under a lock."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

from psycopg import errors as pg
from psycopg import sql

from keepstone.errors import StoreError
from keepstone.store.postgres.connecting import POOL_SECONDS, Connection, Connections
from keepstone.store.postgres.own_schema import own

_LOCK = "SELECT pg_advisory_xact_lock(hashtext('keepstone.schema'), hashtext(current_schema()))"
_VERSIONS, _ENTRIES = own("'keepstone_schema'"), own("'entries'")
_FILE = re.compile(r"(\d{4})_\w+\.sql")


class Migration(NamedTuple):
    """One step of the schema."""

    version: int
    sql: str


LEAST_PGVECTOR = (0, 8)
"""The oldest supported version: its graph searches continue until enough rows pass the filter."""


def migrations() -> Sequence[Migration]:
    """Return all migrations in order."""
    folder = resources.files("keepstone.store.postgres") / "migrations"
    found = [(match, file) for file in folder.iterdir() if (match := _FILE.fullmatch(file.name))]
    return sorted(Migration(int(match[1]), file.read_text(encoding="utf-8")) for match, file in found)


NEWEST = max(migration.version for migration in migrations())
"""The version of the schema that this keepstone reads and writes."""


def version_of(connection: Connection) -> int:
    """Return the version of the schema, or 0 if it has no tables yet."""
    [(name,)] = connection.execute(f"SELECT {_VERSIONS}".encode()).fetchall()
    if name is None:
        return 0
    found = connection.execute("SELECT max(version) FROM keepstone_schema").fetchone()
    return int(found[0] or 0) if found else 0


def is_distributed(connection: Connection) -> bool:
    """Return whether tables of the home are distributed by Citus."""
    # Without Citus the name is null, and a query of the table would be an error.
    [(name,)] = connection.execute("SELECT to_regclass('pg_dist_partition')").fetchall()
    if name is None:
        return False
    sql = f"SELECT 1 FROM pg_dist_partition WHERE logicalrelid = {_ENTRIES}"
    return bool(connection.execute(sql.encode()).fetchall())


def prepare(connections: Connections) -> None:
    """Create or migrate the schema if it is missing or outdated.

    Raises:
        StoreError: The schema is newer than this keepstone, or the role may not create it.
    """
    with connections.translated(), connections.alone(seconds=POOL_SECONDS) as connection:
        version = version_of(connection)
        connections.is_distributed = is_distributed(connection)
        if version > NEWEST:
            raise StoreError(
                f"the schema of {connections.target.shown()} has version {version}, and this keepstone knows "
                f"{NEWEST}: nothing was changed; install a newer keepstone"
            )
        if version < NEWEST:
            _migrate(connections, connection)


def _migrate(connections: Connections, connection: Connection) -> None:
    try:
        # Tables are created and changed in one transaction, so a killed migration leaves the old schema.
        with connection.transaction():
            connection.execute(_LOCK)
            # Read the version again under the lock: another process may have migrated the tables.
            version = version_of(connection)
            if not version:
                _make_extension(connection)
                connection.execute("CREATE TABLE keepstone_schema (version integer PRIMARY KEY)")
            for step in migrations():
                if step.version > version:
                    connection.execute(step.sql.encode())
                    connection.execute("INSERT INTO keepstone_schema VALUES (%s)", (step.version,))
    except pg.InsufficientPrivilege as error:
        raise StoreError(
            f"the role may not make the tables of {connections.target.shown()} "
            f"({error.diag.message_primary}): let the role that shall own them, or does, run "
            "keepstone postgres init --home DSN; it needs CREATE on the schema"
        ) from None
    except (pg.DuplicateTable, pg.DuplicateObject) as error:
        raise StoreError(
            f"the schema has tables of another program ({error.diag.message_primary}): give keepstone a "
            "database or a schema of its own: CREATE SCHEMA kb, and ?options=-csearch_path%3Dkb%2Cpublic"
        ) from None


def _make_extension(connection: Connection) -> None:
    try:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    except (pg.UndefinedFile, pg.FeatureNotSupported):
        package = f"postgresql-{connection.info.server_version // 10_000}-pgvector"
        raise StoreError(
            f"the server has no pgvector: install its package ({package}), then try again"
        ) from None
    except pg.InsufficientPrivilege:
        raise StoreError(
            f"database {connection.info.dbname} lacks the extension vector, and this role may not make it: "
            "run CREATE EXTENSION vector as a superuser in this database, then try again as this role"
        ) from None
    trouble = trouble_of_extension(connection)
    if trouble is not None:
        raise StoreError(trouble)


def trouble_of_extension(connection: Connection) -> str | None:
    """Return why the database's pgvector cannot be used, or None if it can."""
    rows = connection.execute(
        "SELECT extversion, extnamespace::regnamespace::text, to_regtype('vector') IS NOT NULL "
        "FROM pg_extension WHERE extname = 'vector'"
    ).fetchall()
    if not rows:
        return "the extension vector is missing: run CREATE EXTENSION vector as a superuser in this database"
    [(version, schema, is_seen)] = rows
    least = ".".join(map(str, LEAST_PGVECTOR))
    if tuple(map(int, re.findall(r"\d+", version)))[:2] < LEAST_PGVECTOR:
        return (
            f"pgvector {version} is too old, {least} or newer is needed: install a newer package, then run "
            "ALTER EXTENSION vector UPDATE in this database"
        )
    if not is_seen:
        return f"the extension vector is in the schema {schema}: add it at the end of search_path"
    return None


def grant(connections: Connections, role: str) -> None:
    """Grant a non-owner role access to the home; row-level security limits it to one agent at a time."""
    name = sql.Identifier(role)
    with connections.translated(), connections.alone() as connection:
        [(schema,)] = connection.execute("SELECT current_schema()").fetchall()
        for statement in (
            "GRANT USAGE ON SCHEMA {schema} TO {role}",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
            "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
            # Only the owner may change the version of the schema.
            "REVOKE INSERT, UPDATE, DELETE ON keepstone_schema FROM {role}",
        ):
            connection.execute(sql.SQL(statement).format(schema=sql.Identifier(schema), role=name))
