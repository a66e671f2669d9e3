"""Filters of many values are answered, or refused by name; they never count as damage of the index."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import keepstone
from keepstone import Agent
from keepstone.index.database import Database
from keepstone.log.arguments import MOST_NAMES


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="apple pie", tags=["t0", "t1"], embedding=[1.0, 0.0])
        yield agent


@pytest.mark.parametrize("name", ["tags", "types", "sessions"])
@pytest.mark.parametrize("query", [{"query": "apple"}, {"query": None, "vector": [1.0, 0.0]}])
def test_filters_of_10000_values_are_answered(
    agent: Agent, name: str, query: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        filters: dict[str, Any] = {name: [f"t{number}" for number in range(MOST_NAMES)]}
        hits = agent.recall(**query, **filters)
    assert (list(hits), hits.stale, caplog.records) == ([], False, [])


@pytest.mark.parametrize("name", ["tags", "types", "sessions"])
def test_filters_of_more_values_are_refused(agent: Agent, name: str) -> None:
    filters: dict[str, Any] = {name: [f"t{number}" for number in range(MOST_NAMES + 1)]}
    with pytest.raises(ValueError, match=f"{name} has more than 10,000 values; use fewer"):
        agent.recall("apple", **filters)


def test_all_of_several_tags_must_be_there(agent: Agent) -> None:
    assert len(agent.recall("apple", tags=["t1", "t0", "t1"])) == 1
    assert agent.recall("apple", tags=["t1", "t2"]) == []


def test_a_limit_above_sqlites_number_of_variables_is_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_few(connection: apsw.Connection) -> None:
        connection.limit(apsw.SQLITE_LIMIT_VARIABLE_NUMBER, 1_000)  # Instead of 32,766.

    monkeypatch.setattr(apsw, "connection_hooks", [*apsw.connection_hooks, with_few])
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "note", "text": f"apple {number}"} for number in range(1_100))
        assert len(agent.recall("apple", limit=1_500)) == 1_100


def test_statements_beyond_sqlites_limits_do_not_discard_the_index(tmp_path: Path) -> None:
    database = Database(tmp_path / "index.db")
    too_deep = " AND ".join(["1"] * 2_000)
    with pytest.raises(apsw.SQLError, match="too large"), database:
        database.row(f"SELECT {too_deep}")
    assert not database.replaced()
    database.close()


def test_a_where_of_more_than_100_keys_is_refused_everywhere(target: str) -> None:
    home = keepstone.open(target)
    agent = home.agent("coder")
    agent.session("s").add("note", text="apple")
    where: dict[str, Any] = {f"key{number}": number for number in range(101)}
    calls: list[Callable[[], object]] = [
        lambda: agent.recall("apple", where=where),
        lambda: agent.entries(where=where),
        lambda: agent.count(where=where),
        lambda: list(agent.iter_entries(where=where)),
        lambda: agent.delete_where(where=where),
        lambda: agent.purge_where(where=where),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="where has 101 keys; at most 100 are allowed"):
            call()
    assert agent.count() == 1
    home.close()


def test_entries_with_10000_tags_are_listed_and_counted(agent: Agent) -> None:
    tags = ["t0", "t1", *(f"more {number}" for number in range(MOST_NAMES - 2))]
    agent.session("s").add("note", text="all", tags=tags)
    assert (len(agent.entries(tags=tags)), agent.count(tags=tags)) == (1, 1)
    assert agent.count(tags=[*tags[1:], "none"]) == 0
