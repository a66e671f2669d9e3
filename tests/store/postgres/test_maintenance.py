"""The doctor of a database says what is missing, and who can make it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.model import Finding, Scope
from keepstone.store.postgres import vector_rows
from keepstone.store.postgres.administration import init
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.vector import unit

ROLE = "keepstone_user"


@pytest.fixture
def graphless(dsn: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a home whose agent has vectors enough for a graph, and none."""
    monkeypatch.setattr(vector_rows, "HNSW_FROM", 2)
    with keepstone.open(dsn, embedder="none") as home:
        for number in (1, 2):
            home.agent("a").session("s").add("note", text=f"{number}", embedding=[1, number])
    return dsn


@pytest.fixture
def member(graphless: str) -> Iterator[str]:
    """The same for a role that owns nothing."""
    with psycopg.connect(graphless, autocommit=True) as connection:
        connection.execute(f"DROP ROLE IF EXISTS {ROLE}".encode())
        connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD 'member-word'".encode())
    init(graphless, ROLE)
    yield graphless.replace(f"postgres:{PASSWORD}", f"{ROLE}:member-word")
    with psycopg.connect(graphless, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {ROLE}".encode())
        connection.execute(f"DROP ROLE {ROLE}".encode())


def _graphs(dsn: str, *, fix: bool = False) -> list[Finding]:
    with keepstone.open(dsn, embedder="none") as home:
        return [finding for finding in home.doctor(fix=fix) if finding.subject == "graph"]


def test_the_doctor_names_a_missing_graph_and_makes_it(graphless: str) -> None:
    [finding] = _graphs(graphless)
    assert (finding.level, finding.agent) == ("warning", "a")
    assert finding.remedy == "keepstone postgres doctor --fix"
    [made] = _graphs(graphless, fix=True)
    assert made.level == "ok"
    assert _graphs(graphless) == []


def test_the_doctor_says_that_only_the_owner_can_make_a_graph(graphless: str, member: str) -> None:
    for fix in (False, True):
        [finding] = _graphs(member, fix=fix)
        assert finding.remedy == "keepstone postgres doctor --fix --home OWNER_DSN"
    _graphs(graphless, fix=True)
    assert _graphs(member) == []


def test_a_graph_that_the_role_cannot_make_is_logged_once(
    member: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(PostgresStore(member)) as store, caplog.at_level(logging.WARNING):
        for _ in range(3):
            with store.reader("a") as reader:
                assert reader.similar(unit([1, 0]), "given:2", Scope("a"), 1, hnsw_from=1).is_due
            store.sync()
    assert sum("OWNER_DSN" in record.getMessage() for record in caplog.records) == 1
