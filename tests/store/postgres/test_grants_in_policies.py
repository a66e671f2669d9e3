"""Row-level security reads the grants: a role that is not the owner finds and writes what they cover."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest
from tests.postgres_server import PASSWORD

import keepstone
from keepstone import NotGrantedError
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.schema import grant
from keepstone.testing import START, ManualClock

ROLE = "keepstone_sharer"


@pytest.fixture
def member(dsn: str) -> Iterator[str]:
    """The URL of the home for a role that owns nothing; the team has entries of two types."""
    with keepstone.open(dsn, embedder="none") as home:
        team = home.agent("team").session("main")
        team.add("decision", "walnut on Fridays", id="open", tags=["ops", "web"])
        team.add("note", "walnut salaries", id="note")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}".encode())
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'member-word'".encode())
    grant(Connections(dsn, durable=True), ROLE)
    yield dsn.replace(f"postgres:{PASSWORD}", f"{ROLE}:member-word")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {ROLE}".encode())
        connection.execute(f"DROP ROLE {ROLE}".encode())


def seen(
    member: str, table: str = "entries", setting: str = "reader", to: str = "coder", column: str = "id"
) -> list[str]:
    """The ids of the rows that the role sees of the team for another agent, or another column."""
    with psycopg.connect(member) as connection:
        connection.execute("SELECT set_config('keepstone.agent', 'team', true)")
        connection.execute(f"SELECT set_config('keepstone.{setting}', %s, true)".encode(), (to,))
        connection.execute(
            "SELECT set_config('keepstone.moment', %s, true)", (datetime.now(UTC).isoformat(),)
        )
        rows = connection.execute(f"SELECT DISTINCT {column} FROM {table} ORDER BY 1".encode()).fetchall()
    return [name for (name,) in rows]


@pytest.mark.parametrize("table", ["entries", "lines"])
def test_a_reader_sees_the_rows_that_a_grant_covers(member: str, table: str) -> None:
    with keepstone.open(member, embedder="none") as home:
        assert seen(member, table) == []
        home.agent("team").grant("coder", types=["decision"], tags=["ops"])
        assert seen(member, table) == ["open"]
        home.agent("team").grant("coder", "write")
        assert seen(member, table) == ["note", "open"]
        home.agent("team").grant("coder", tags=["else"])
        assert seen(member, table) == []
        home.agent("team").grant("coder")
        home.agent("team").revoke("coder")
        assert seen(member, table) == []
        assert seen(member, table, to="") == ["note", "open"]


@pytest.mark.parametrize("table", ["files", "suggestions"])
@pytest.mark.parametrize("setting", ["reader", "writer"])
def test_no_grant_shows_files_and_suggestions(member: str, table: str, setting: str) -> None:
    with keepstone.open(member, embedder="none") as home:
        team = home.agent("team")
        team.files.write("plan.md", "walnut")
        team.suggest("pin", ["open"], why="it is asked for each day", by="nightly")
        team.grant("coder", "write")
    assert seen(member, table, setting, column="agent") == []
    assert seen(member, table, setting, to="", column="agent") == ["team"]


def test_a_grant_ends_for_the_policies_at_its_time(member: str) -> None:
    with keepstone.open(member, embedder="none") as home:
        home.agent("team").grant("coder", until="2099-01-01")
        assert seen(member) == ["note", "open"]
        home.agent("team").grant("coder", until="2001-01-01")
        assert seen(member) == []


@pytest.mark.parametrize(("kind", "tags"), [("note", "{ops}"), ("decision", "{}")])
def test_a_writer_adds_no_row_that_the_grant_does_not_cover(member: str, kind: str, tags: str) -> None:
    with keepstone.open(member, embedder="none") as home:
        home.agent("team").grant("coder", "write", types=["decision"], tags=["ops"])
    with psycopg.connect(member) as connection:
        connection.execute("SELECT set_config('keepstone.agent', 'team', true)")
        connection.execute("SELECT set_config('keepstone.writer', 'coder', true)")
        connection.execute("SELECT set_config('keepstone.moment', '2099-01-01T00:00:00Z', true)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="granted_adding"):
            connection.execute(
                "INSERT INTO entries (agent, session, id, seq, ts, type, pinned, tags, targets, facts, head, "
                "length, terms, times) "
                "VALUES ('team', 'main', 'x', 99, now(), %s, false, %s, '{}', '{}', '', 1, '{}', '{}')",
                (kind, tags),
            )


def test_shared_memory_works_for_the_role(member: str) -> None:
    with keepstone.open(member, embedder="none") as home:
        team, coder = home.agent("team"), home.agent("coder")
        coder.add("my walnut", id="own")
        team.grant("coder", "write", types=["decision"])
        session = coder.session("main", of="team")
        added = session.add("decision", "walnut on Mondays")
        session.update(added.id, "walnut on Tuesdays")
        found = coder.recall("walnut", shared=["team"])
        assert {hit.entry.id for hit in found} == {"own", "open", added.id}
        session.delete(added.id)
        assert coder.count(shared=["team"]) == 2
        assert {hit.entry.id for hit in team.recall("walnut")} == {"open", "note"}
        home.purge_agent("coder")
        with pytest.raises(NotGrantedError):
            coder.entries(shared=["team"])


def test_the_database_uses_the_homes_clock(dsn: str) -> None:
    clock = ManualClock(START)
    with keepstone.open(dsn, embedder="none", clock=clock) as home:
        home.agent("team").add("walnut", id="open")
        home.agent("team").grant("coder", until="1h")
        assert home.agent("coder").get("open", of="team").id == "open"
        clock.advance(3600)
        with pytest.raises(NotGrantedError):
            home.agent("coder").get("open", of="team")


def test_a_recall_for_another_agent_leaves_the_owners_counts_alone(member: str) -> None:
    with keepstone.open(member, embedder="none") as home:
        team = home.agent("team")
        team.grant("coder", types=["decision"])
        before = {hit.entry.id: hit.relevance for hit in team.recall("walnut salaries")}
    with keepstone.open(member, embedder="none") as home:
        home.agent("coder").recall("walnut salaries", shared=["team"])
        after = {hit.entry.id: hit.relevance for hit in home.agent("team").recall("walnut salaries")}
    assert before == after != {}
