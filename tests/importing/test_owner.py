"""Imports into an agent for each user or namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.importing.sources import FIXTURES, jsonl

import keepstone
from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.importing import SourceError, import_memory
from keepstone.importing.item import Item
from keepstone.importing.owner import AgentFrom


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


def test_each_namespace_gets_an_agent_of_its_own(home: Home, agent: Agent, tmp_path: Path) -> None:
    source = store(tmp_path / "store.db", ("users.ada", "k", '{"n": 1}'), ("users.Bob", "k", '{"n": 2}'))
    assert import_memory(agent, "langgraph", source, agent_from="namespace").imported == 2
    assert home.agents() == sorted([keepstone.slug("users.ada"), keepstone.slug("users.Bob")])
    assert import_memory(agent, "langgraph", source, agent_from="namespace").unchanged == 2
    assert agent.sessions() == []


def test_a_label_of_the_namespace_names_the_agent(home: Home, agent: Agent, tmp_path: Path) -> None:
    rows = (("ada.facts", "k", '{"n": 1}'), ("ada.plans", "k", '{"n": 2}'), ("bob.facts", "k", '{"n": 3}'))
    import_memory(agent, "langgraph", store(tmp_path / "store.db", *rows), agent_from="namespace.0")
    assert {slug: home.agent(slug).count() for slug in home.agents()} == {"ada": 2, "bob": 1}


def test_a_thread_goes_to_the_agent_of_its_user(home: Home, agent: Agent) -> None:
    import_memory(agent, "langgraph", FIXTURES / "delta.db", agent_from="user_id")
    assert {slug: home.agent(slug).count() for slug in home.agents()} == {"a": 1, "ada": 10}


def test_memories_of_mem0_go_to_the_agents_of_their_users(home: Home, agent: Agent) -> None:
    import_memory(agent, "mem0", FIXTURES / "mem0", agent_from="user_id")
    assert {slug: home.agent(slug).count() for slug in home.agents()} == {"a": 1, "ada": 1, "bob": 1}


def test_equal_records_of_two_users_are_both_kept(home: Home, agent: Agent, tmp_path: Path) -> None:
    source = jsonl(
        tmp_path / "x.jsonl", [{"text": "Tea", "user_id": "ada"}, {"text": "Tea", "user_id": "bob"}]
    )
    assert import_memory(agent, "jsonl", source, agent_from="user_id", dry_run=True).imported == 2
    assert import_memory(agent, "jsonl", source, agent_from="user_id").imported == 2
    assert home.agents() == ["ada", "bob"]


def test_a_source_without_users_is_refused(home: Home, agent: Agent, tmp_path: Path) -> None:
    source = jsonl(tmp_path / "x.jsonl", [{"text": "Tea"}])
    with pytest.raises(SourceError, match="no record of jsonl says namespace"):
        import_memory(agent, "jsonl", source, agent_from="namespace")
    with pytest.raises(ValueError, match="must be user_id"):
        import_memory(agent, "jsonl", source, agent_from="owner")
    assert home.agents() == []


def slug_of(field: str, **owner: Any) -> str | None:
    return AgentFrom(field).slug_of(Item("s", {"data": {"user_id": "inner"}}, "", owner=owner))


def test_the_owner_beside_a_record_goes_before_the_one_in_it() -> None:
    assert slug_of("user_id", user_id="outer") == "outer"
    assert slug_of("user_id") == "inner"


def test_a_flat_record_says_its_user_too() -> None:
    assert AgentFrom("user_id").slug_of(Item("s", {"user_id": "ada"}, "")) == "ada"


def test_a_whole_number_is_a_user() -> None:
    assert slug_of("user_id", user_id=7) == "7"


def test_a_label_that_a_namespace_does_not_have_is_nobody() -> None:
    assert slug_of("namespace.1", namespace=("a", "b")) == "b"
    assert slug_of("namespace.2", namespace=("a", "b")) is None
    assert slug_of("namespace") is None


@pytest.mark.parametrize(
    "field",
    ["", "user", "user_id.0", "namespace.", "namespace.-1", "namespace.1234", "namespace.0.1", "User_id"],
)
def test_another_field_is_refused(field: str) -> None:
    with pytest.raises(ValueError, match="must be user_id, namespace or namespace"):
        AgentFrom(field)


@pytest.mark.parametrize("field", ["user_id", "namespace", "namespace.0", "namespace.12"])
def test_a_field_is_shown_as_it_was_given(field: str) -> None:
    assert str(AgentFrom(field)) == field
