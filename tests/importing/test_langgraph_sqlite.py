"""LangGraph's stores: what their items become, and that the adapter finds them."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import FIXTURES, auto, entries

import keepstone
from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.importing import import_memory


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return keepstone.open(tmp_path / "home", embedder="none")


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def store(path: Path, *rows: tuple[str, str, str]) -> Path:
    """A database as SqliteStore makes it, with prefix, key and value of each item."""
    with apsw.Connection(str(path)) as connection:
        connection.execute(
            "CREATE TABLE store (prefix TEXT, key TEXT, value TEXT, created_at TIMESTAMP, "
            "updated_at TIMESTAMP, expires_at TIMESTAMP, ttl_minutes REAL);"
            "CREATE TABLE store_vectors (prefix TEXT, key TEXT, field_name TEXT, embedding BLOB)"
        )
        times = ("2026-01-11 14:31:00", "2026-01-12 09:00:00", None, None)
        connection.executemany(
            "INSERT INTO store VALUES (?, ?, ?, ?, ?, ?, ?)", [row + times for row in rows]
        )
    connection.close()
    return path


def changed(tmp_path: Path, name: str, statement: str) -> Path:
    copy = tmp_path / name
    shutil.copy(FIXTURES / name, copy)
    connection = apsw.Connection(str(copy))
    connection.execute(statement)
    connection.close()
    return copy


def texts(agent: Agent, session: str) -> list[str]:
    return [entry.data["content"] for entry in agent.session(session).entries()]


def test_the_adapter_finds_imported_items(home: Home, agent: Agent, tmp_path: Path) -> None:
    adapter = pytest.importorskip("keepstone.integrations.langgraph").KeepstoneStore(home, agent="a")
    rows = (("users.ada", "tea", '{"n": 1}'), ("users.a/b%", "", "{}"), (".".join(["x" * 90] * 3), "k", "{}"))
    import_memory(agent, "langgraph", store(tmp_path / "store.db", *rows))
    assert adapter.get(("users", "ada"), "tea").value == {"n": 1}
    assert adapter.get(("users", "a/b%"), "").value == {}
    assert len(adapter.search(("users",))) == 2
    assert set(adapter.list_namespaces()) == {("users", "ada"), ("users", "a/b%"), ("x" * 90,) * 3}


def test_an_item_that_the_adapter_puts_is_unchanged_by_an_import(
    home: Home, agent: Agent, tmp_path: Path
) -> None:
    adapter = pytest.importorskip("keepstone.integrations.langgraph").KeepstoneStore(home, agent="a")
    adapter.put(("users", "ada"), "tea", {"n": 1})
    source = store(tmp_path / "store.db", ("users.ada", "tea", '{"n": 1}'))
    connection = apsw.Connection(str(source))
    connection.execute("UPDATE store SET updated_at = created_at")
    connection.close()
    assert import_memory(agent, "langgraph", source).unchanged == 1


def test_imported_items_keep_times_and_time_to_live(home: Home, agent: Agent, tmp_path: Path) -> None:
    adapter = pytest.importorskip("keepstone.integrations.langgraph").KeepstoneStore(home, agent="a")
    source = store(tmp_path / "store.db", ("u", "k", '{"n": 1}'))
    connection = apsw.Connection(str(source))
    connection.execute("UPDATE store SET expires_at = '2096-01-01 00:00:00', ttl_minutes = 60")
    connection.close()
    import_memory(agent, "langgraph", source)
    found = adapter.get(("u",), "k", refresh_ttl=False)
    assert (found.created_at.isoformat(), found.updated_at.isoformat()) == (
        "2026-01-11T14:31:00+00:00",
        "2026-01-12T09:00:00+00:00",
    )
    assert agent.get("k").line["ttl"] == 60
    assert agent.get("k").line["expires"].startswith("2096-01-01")


def test_the_adapter_ranks_imported_items_by_their_vectors(home: Home, agent: Agent, tmp_path: Path) -> None:
    langgraph = pytest.importorskip("keepstone.integrations.langgraph")
    source = store(tmp_path / "store.db", ("u", "tea", '{"n": 1}'), ("u", "pnpm", '{"n": 2}'))
    connection = apsw.Connection(str(source))
    rows = [("u", "tea", "$", struct.pack("<2f", 1, 0)), ("u", "pnpm", "$", struct.pack("<2f", 0, 1))]
    connection.executemany("INSERT INTO store_vectors VALUES (?, ?, ?, ?)", rows)
    connection.close()
    import_memory(agent, "langgraph", source)
    index = {"dims": 2, "embed": lambda texts: [[0.0, 1.0] for _ in texts]}
    found = langgraph.KeepstoneStore(home, agent="a", index=index).search(("u",), query="packages")
    assert [(item.key, item.score) for item in found] == [("pnpm", 1), ("tea", 0)]


def test_the_value_of_an_item_that_is_no_json_is_named(agent: Agent, tmp_path: Path) -> None:
    result = import_memory(
        agent, "langgraph", store(tmp_path / "store.db", ("u", "k", "{"), ("u", "l", json.dumps([1])))
    )
    assert "is not JSON" in result.failed[0].reason
    assert agent.get("l").data == {"value": [1]}


def test_items_of_a_langgraph_store(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "store.db", "langgraph").imported == 2
    assert entries(agent, "langgraph/users/ada")["tea"].data == {"text": "Ada likes tea", "n": 1}
