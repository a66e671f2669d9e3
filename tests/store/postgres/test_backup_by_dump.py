"""A home is backed up by pg_dump and restored by psql, with the roles that docs/scale.md names."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from tests.postgres_server import PASSWORD, programs

import keepstone

_OWNER = f"keepstone_owner_{os.getpid()}"
_NAMES = [f"memory_{os.getpid()}", f"restored_{os.getpid()}"]


@pytest.fixture
def servers(postgres: str) -> Iterator[tuple[str, str]]:
    """The beginnings of URLs for a superuser and for a plain role that owns two databases."""
    server = postgres.rpartition("/")[0] + "/"
    owner = server.replace(f"postgres:{PASSWORD}", f"{_OWNER}:owner-word")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {_OWNER} LOGIN PASSWORD 'owner-word'".encode())
        for name in _NAMES:
            connection.execute(f"CREATE DATABASE {name} OWNER {_OWNER}".encode())
            with psycopg.connect(f"{server}{name}", autocommit=True) as inside:
                inside.execute("CREATE EXTENSION vector")
    yield server, owner
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name in _NAMES:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        connection.execute(f"DROP ROLE {_OWNER}".encode())


def _dump(url: str) -> subprocess.CompletedProcess[bytes]:
    dump = [f"{programs()}/pg_dump", "--schema=public", "--no-owner", "--no-privileges", url]
    return subprocess.run(dump, check=False, capture_output=True)


def test_a_dump_restores_everything_to_the_owner(servers: tuple[str, str]) -> None:
    superuser, owner = servers
    with keepstone.open(f"{owner}{_NAMES[0]}", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add("note", text="walnut\0", id="one", embedding=[1, 0])
        session.update("one", text="pecan\0")
        home.agent("a").files.write("plan.md", "today")
    dumped = _dump(f"{superuser}{_NAMES[0]}")
    assert dumped.returncode == 0, dumped.stderr
    # Of the schema public, which is there, and its comment nothing can be made by a plain role.
    restore = [f"{programs()}/psql", "--quiet", f"{owner}{_NAMES[1]}"]
    subprocess.run(restore, input=dumped.stdout, check=True, capture_output=True)
    with keepstone.open(f"{owner}{_NAMES[1]}", embedder="none") as home:
        agent = home.agent("a")
        assert [version.text for version in agent.history("one")] == ["walnut\0", "pecan\0"]
        assert agent.files.read("plan.md") == "today"
        agent.session("s").add("note", text="written after the restore")
        assert len(agent.recall("restore pecan")) == 2
        assert {finding.level for finding in home.doctor(deep=True)} <= {"ok", "warning"}
    with psycopg.connect(f"{superuser}{_NAMES[1]}") as connection:
        owners = connection.execute("SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
        assert owners.fetchall() == [(_OWNER,)]


def test_a_dump_by_the_owner_fails_aloud(servers: tuple[str, str]) -> None:
    _, owner = servers
    keepstone.open(f"{owner}{_NAMES[0]}").close()
    dumped = _dump(f"{owner}{_NAMES[0]}")
    assert dumped.returncode == 1
    assert b"row-level security" in dumped.stderr
