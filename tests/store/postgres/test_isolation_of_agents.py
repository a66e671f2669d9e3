"""Row-level security is the second fence: a role that is not the owner sees one agent at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.postgres_maintenance import AGENT_TABLES
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.schema import grant

ROLE = "keepstone_member"


@pytest.fixture
def member(dsn: str) -> Iterator[str]:
    """The URL of the home for a role that owns nothing; agents a and b have an entry and a file each."""
    with keepstone.open(dsn) as home:
        for agent in ("a", "b"):
            home.agent(agent).session("s").add("note", text=f"walnut of {agent}", id="one", embedding=[1, 0])
            home.agent(agent).files.write("f.md", agent)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}".encode())
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'member-word'".encode())
    grant(Connections(dsn, durable=True), ROLE)
    yield dsn.replace(f"postgres:{PASSWORD}", f"{ROLE}:member-word")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {ROLE}".encode())
        connection.execute(f"DROP ROLE {ROLE}".encode())


@pytest.mark.parametrize("table", AGENT_TABLES)
def test_a_query_without_an_agent_sees_no_rows(member: str, table: str) -> None:
    with psycopg.connect(member) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchall() == [(0,)]


@pytest.mark.parametrize("table", ["sessions", "lines", "entries", "vectors", "spaces", "files", "events"])
def test_a_query_sees_the_rows_of_its_agent_only(member: str, table: str) -> None:
    with psycopg.connect(member) as connection:
        connection.execute("SELECT set_config('keepstone.agent', 'b', false)")
        assert connection.execute(f"SELECT DISTINCT agent FROM {table}".encode()).fetchall() == [("b",)]


def test_each_table_that_names_agents_has_a_policy_that_binds_its_owner(dsn: str) -> None:
    with keepstone.open(dsn), psycopg.connect(dsn) as connection:
        unbound = connection.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' "
            "AND a.attname = 'agent' AND NOT (c.relrowsecurity AND c.relforcerowsecurity "
            "AND EXISTS (SELECT 1 FROM pg_policy p WHERE p.polrelid = c.oid AND p.polpermissive))"
        ).fetchall()
    assert unbound == [("agents",)]  # The list of their names, which holds no memory.


def test_a_response_is_seen_by_the_role_of_its_agent_only(dsn: str, member: str) -> None:
    with closing(PostgresStore(dsn)) as store:
        for agent in ("a", "b", ""):
            assert store.answers.claim(("holder", f"key {agent}"), agent, b"request", 1, 600) is None
            store.answers.keep(("holder", f"key {agent}"), 1, 201, (b"", b"quotes memory"), 600)
    with psycopg.connect(member) as connection:
        seen = [connection.execute("SELECT agent FROM answers").fetchall()]
        for name in ("", "b"):
            connection.execute("SELECT set_config('keepstone.agent', %s, false)", (name,))
            seen.append(connection.execute("SELECT agent FROM answers").fetchall())
    assert seen == [[], [], [("b",)]]


def test_a_purge_by_the_role_removes_the_responses_that_may_quote_it(member: str) -> None:
    with closing(PostgresStore(member)) as store:
        for agent in ("a", "b", ""):
            assert store.answers.claim(("holder", agent), agent, b"request", 1, 600) is None
            store.answers.keep(("holder", agent), 1, 201, (b"", b"quotes memory"), 600)
        store.purge("b", "s", ["one"])
        found = [
            store.answers.claim(("holder", agent), agent, b"request", 2, 600) for agent in ("a", "b", "")
        ]
    assert [one and one.body for one in found] == [b"quotes memory", None, None]


def test_a_row_of_another_agent_cannot_be_written(member: str) -> None:
    with psycopg.connect(member) as connection:
        connection.execute("SELECT set_config('keepstone.agent', 'a', false)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("INSERT INTO sessions (agent, session) VALUES ('b', 'x')")


def test_the_role_uses_the_home_like_its_owner(member: str) -> None:
    with keepstone.open(member) as home:
        agent = home.agent("b")
        agent.session("s").add("note", text="pecan", id="two")
        assert [hit.entry.id for hit in agent.recall("walnut pecan")] == ["two", "one"]
        changes = home.watch(timeout=0)
        agent.session("s").purge("two")
        assert list(home.watch(timeout=0)) == []
        assert [(change.kind, change.id) for change in changes] == [("purge", "two")]
        assert home.agents() == ["a", "b"]


def test_the_role_may_use_the_tables_that_a_later_version_adds(dsn: str, member: str) -> None:
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP TABLE answers, purged, suggestions")
        connection.execute("DELETE FROM keepstone_schema WHERE version >= 3")
    with pytest.raises(keepstone.StoreError, match="keepstone postgres init"):
        keepstone.open(member)
    keepstone.open(dsn).close()
    with keepstone.open(member) as home:
        home.agent("b").purge("one")
        home.purge_agent("a")
        assert home.agents() == ["b"]


def test_the_role_adds_many_entries_at_once(member: str) -> None:
    tags, links = ['"{a,\\', "\0 NULL"], [{"to": '\\"x', "rel": "of"}]
    items = [
        {"type": "note", "text": f"oak {at}", "embedding": [1, at], "tags": tags, "links": links}
        for at in range(150)
    ]
    with keepstone.open(member) as home:
        home.agent("b").session("many").add_many(items)
        assert home.agent("b").count() == 151
        assert len(home.agent("b").recall(None, vector=[1, 0], sessions=["many"], limit=200)) == 150
        assert all(home.agent("b").count(tags=[tag]) == 150 for tag in tags)
        assert home.agent("a").count() == 1


def test_many_entries_need_no_right_to_temporary_tables(dsn: str, member: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC, {ROLE}".encode())
        try:
            with keepstone.open(member) as home:
                home.agent("b").session("many").add_many(
                    [{"type": "note", "text": f"{at}"} for at in range(150)]
                )
                assert home.agent("b").count() == 151
        finally:
            connection.execute("GRANT TEMPORARY ON DATABASE postgres TO PUBLIC")


def test_a_watch_hears_that_an_agent_was_purged(member: str) -> None:
    with keepstone.open(member) as home, keepstone.open(member) as other:
        changes, of_b = home.watch(timeout=20), home.watch(agents=["b"], timeout=0)
        other.agent("a").session("new").add("note", text="walnut")
        assert next(changes).kind == "add"
        assert list(of_b) == []
        other.purge_agent("a")
        found = {(change.agent, change.session, change.kind) for change in (next(changes), next(changes))}
        assert found == {("a", "s", "remove"), ("a", "new", "remove")}
