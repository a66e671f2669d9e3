"""Empty homes in PostgreSQL that are lent, emptied and lent again, as making their tables costs the most.

A home that comes back gets another name, so that no connection that was left open finds it by its old one.
It is dropped instead if its tables, their rights or their statistics are no longer as they were made, if it
has grown, or if a transaction still uses it: then the next home is a new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from tests.postgres_server import drop_schema, new_name, url_in

from keepstone.store.postgres.postgres_store import PostgresStore

MOST_BYTES = 1 << 20
"""The most that a home may take with its indexes to be lent again, in bytes."""

_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'r'"
_MADE = """
SELECT md5(string_agg(line, ',' ORDER BY line)), sum(size)::bigint FROM (
    SELECT c::text AS line, pg_relation_size(c.oid) AS size FROM pg_class c
        WHERE relnamespace = %(schema)s::regnamespace
    UNION ALL SELECT sum(a.xmin::text::bigint)::text, 0
        FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid
        WHERE relnamespace = %(schema)s::regnamespace
    UNION ALL SELECT p::text, 0 FROM pg_policy p JOIN pg_class c ON c.oid = polrelid
        WHERE relnamespace = %(schema)s::regnamespace
    UNION ALL SELECT concat(nspowner, nspacl), 0 FROM pg_namespace WHERE oid = %(schema)s::regnamespace
    UNION ALL SELECT concat(version, xmin), 0 FROM keepstone_schema
) AS made
"""
_RESTART = """
SELECT setval(oid, 1, false) FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind = 'S'
"""


@dataclass
class _Home:
    schema: str
    made: str
    """The digest of its tables when they were made."""
    tables: list[sql.Identifier]


class _Lender:
    """The homes of a server that wait to be lent again, and the connection that empties them."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._connection: psycopg.Connection[Any] | None = None
        self._idle: list[_Home] = []

    def lend(self) -> _Home:
        return self._idle.pop() if self._idle else self._made()

    def take_back(self, home: _Home) -> None:
        with suppress(psycopg.OperationalError), self._connected() as connection:
            if self._emptied(connection, home):
                self._idle.append(home)
            else:
                drop_schema(connection, home.schema)

    def close(self) -> None:
        with self._connected() as connection:
            for home in self._idle:
                drop_schema(connection, home.schema)
            connection.close()

    @contextmanager
    def _connected(self) -> Iterator[psycopg.Connection[Any]]:
        """Keep the connection: a new one would have to read all catalogs again."""
        if self._connection is None or self._connection.closed:
            self._connection = psycopg.connect(self.dsn, autocommit=True)
        yield self._connection

    def _made(self) -> _Home:
        schema = new_name()
        with self._connected() as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema)))
            PostgresStore(url_in(self.dsn, schema)).close()
            with connection.transaction():
                _enter(connection, schema)
                made, _ = _state(connection, schema)
                tables = [name for (name,) in connection.execute(_TABLES, (schema,))]
        return _Home(schema, made, [sql.Identifier(name) for name in tables if name != "keepstone_schema"])

    def _emptied(self, connection: psycopg.Connection[Any], home: _Home) -> bool:
        """Empty a home and give it another name; return False if it cannot be lent again."""
        name = new_name()
        try:
            with connection.transaction():
                _enter(connection, home.schema)
                tables = sql.SQL(", ").join(home.tables)
                connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE NOWAIT").format(tables))
                made, size = _state(connection, home.schema)
                if made != home.made or size > MOST_BYTES:
                    return False
                deletes = (sql.SQL("DELETE FROM {}").format(table) for table in home.tables)
                connection.execute(sql.SQL("; ").join(deletes))
                connection.execute(_RESTART, (home.schema,))
                renamed = sql.SQL("ALTER SCHEMA {} RENAME TO {}")
                connection.execute(renamed.format(sql.Identifier(home.schema), sql.Identifier(name)))
        except psycopg.Error:
            return False
        home.schema = name
        return True


def _enter(connection: psycopg.Connection[Any], schema: str) -> None:
    connection.execute(sql.SQL("SET LOCAL search_path TO {}, public").format(sql.Identifier(schema)))


def _state(connection: psycopg.Connection[Any], schema: str) -> tuple[str, int]:
    [(made, size)] = connection.execute(_MADE, {"schema": schema}).fetchall()
    return made, size


_lenders = dict[str, _Lender]()
"""By the URL of the server."""


@contextmanager
def home_of(dsn: str) -> Iterator[str]:
    """Lend an empty home whose tables are made, in a schema of its own, and yield its URL."""
    lender = _lenders.setdefault(dsn, _Lender(dsn))
    home = lender.lend()
    try:
        yield url_in(dsn, home.schema)
    finally:
        lender.take_back(home)


def end_lending(dsn: str) -> None:
    """Drop the homes of a server that wait to be lent again, and leave it."""
    if (lender := _lenders.pop(dsn, None)) is not None:
        lender.close()
