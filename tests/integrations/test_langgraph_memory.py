"""The whole memory of an agent, read through a LangGraph store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.store")

from langgraph.store.base import GetOp, SearchOp

import keepstone
from keepstone import Agent
from keepstone.integrations.langgraph_memory import is_memory, recalled, remembered


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        agent = home.agent("a")
        agent.add("Use pnpm", id="pnpm", session="tools")
        agent.session("trip").add("booking", {"to": "Dover", "n": 2}, id="ferry")
        yield agent


def get(agent: Agent, *namespace: str, key: str = "pnpm") -> Any:
    return remembered(agent, GetOp(namespace, key))


def search(agent: Agent, *prefix: str, **keys: Any) -> list[str]:
    return [item.key for item in recalled(agent, SearchOp(prefix, **keys))]


@pytest.mark.parametrize(
    ("namespace", "expected"),
    [(("keepstone",), True), (("keepstone", "s"), True), ((), False), (("k",), False)],
)
def test_the_memory_is_below_one_root(namespace: tuple[str, ...], *, expected: bool) -> None:
    assert is_memory(namespace) == expected


def test_an_entry_is_an_item_with_its_payload_or_its_text(agent: Agent) -> None:
    text, payload = get(agent, "keepstone", "tools"), get(agent, "keepstone", "trip", key="ferry")
    assert (text.namespace, text.key, text.value) == (("keepstone", "tools"), "pnpm", {"text": "Use pnpm"})
    assert payload.value == {"to": "Dover", "n": 2}
    assert text.created_at == agent.get("pnpm").ts


@pytest.mark.parametrize(
    ("namespace", "key"),
    [
        (("keepstone",), "pnpm"),
        (("keepstone", "tools", "more"), "pnpm"),
        (("keepstone", "trip"), "pnpm"),
        (("keepstone", "tools"), ""),
        (("keepstone", "tools"), "gone"),
    ],
)
def test_another_place_has_no_item(agent: Agent, namespace: tuple[str, ...], key: str) -> None:
    assert get(agent, *namespace, key=key) is None


def test_an_entry_that_does_not_hold_any_more_is_no_item(agent: Agent) -> None:
    agent.update("pnpm", valid_to="2020-01-01")
    assert get(agent, "keepstone", "tools") is None


def test_a_search_without_a_query_lists_one_session_or_all(agent: Agent) -> None:
    assert search(agent, "keepstone") == ["pnpm", "ferry"]
    assert search(agent, "keepstone", "trip") == ["ferry"]
    assert search(agent, "keepstone", "trip", "more") == []


def test_a_search_with_a_query_is_a_recall_with_scores(agent: Agent) -> None:
    (item,) = recalled(agent, SearchOp(("keepstone",), query="pnpm"))
    assert (item.key, item.score) == ("pnpm", agent.recall("pnpm")[0].relevance)
    assert search(agent, "keepstone", "trip", query="pnpm") == []


def test_a_filter_applies_to_payloads_before_the_page_is_cut(agent: Agent) -> None:
    assert search(agent, "keepstone", filter={"n": {"$gt": 1}}, limit=1) == ["ferry"]
    assert search(agent, "keepstone", filter={"n": {"$gt": 2}}) == []


def test_pages_follow_one_another(agent: Agent) -> None:
    assert search(agent, "keepstone", limit=1) == ["pnpm"]
    assert search(agent, "keepstone", limit=1, offset=1) == ["ferry"]
    assert search(agent, "keepstone", limit=1, offset=2) == []


def test_a_limit_that_is_no_count_is_refused(agent: Agent) -> None:
    with pytest.raises(ValueError, match="limit"):
        search(agent, "keepstone", limit=-1)
