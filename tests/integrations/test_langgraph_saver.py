"""LangGraph's checkpointer: threads as sessions, values stored once, purges, and graphs that go on."""

from __future__ import annotations

import asyncio
import json
import operator
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import keepstone
from keepstone import Agent, Home

pytest.importorskip("langgraph.checkpoint")

from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import CheckpointTuple, empty_checkpoint
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from keepstone.integrations.langgraph import KeepstoneSaver

MONDAY: RunnableConfig = {"configurable": {"thread_id": "monday"}}
LARGE = "The ferry to Dover leaves at noon. " * 100


class State(TypedDict):
    """What the graphs count."""

    steps: Annotated[list[str], operator.add]


def joined(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(one for write in writes for one in write)]


class Deltas(TypedDict):
    """What a graph counts whose checkpoints have only what changed."""

    steps: Annotated[list[str], DeltaChannel(joined)]


class Cipher:
    """Gives another ciphertext for the same text each time."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "turned", os.urandom(16) + plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "turned"
        return ciphertext[:15:-1]


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("default")


@pytest.fixture
def saver(home: Home) -> KeepstoneSaver:
    return KeepstoneSaver(home)


def counting(saver: KeepstoneSaver) -> Any:
    graph = StateGraph(State)
    graph.add_node("count", lambda state: {"steps": [str(len(state["steps"]))]})
    graph.add_edge(START, "count")
    graph.add_edge("count", END)
    return graph.compile(checkpointer=saver)


def put(saver: KeepstoneSaver, config: RunnableConfig, run: str = "r", **values: Any) -> RunnableConfig:
    """Put a checkpoint with values, each of version 1."""
    versions: Any = dict.fromkeys(values, "1")
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
    place: Any = {"configurable": {"checkpoint_ns": "", **config["configurable"]}}
    return saver.put(place, checkpoint, {"source": "loop", "step": 1, "run_id": run}, versions)


def found(saver: KeepstoneSaver, config: RunnableConfig) -> CheckpointTuple:
    one = saver.get_tuple(config)
    assert one is not None
    return one


def bytes_below(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_graph_goes_on_where_its_thread_was_left(target: str) -> None:
    for expected in (["a", "1"], ["a", "1", "b", "3"]):
        with keepstone.open(target, embedder="none") as home:
            added = "a" if len(expected) == 2 else "b"
            assert counting(KeepstoneSaver(home)).invoke({"steps": [added]}, MONDAY)["steps"] == expected


def test_a_graph_goes_on_from_an_earlier_checkpoint(saver: KeepstoneSaver) -> None:
    app = counting(saver)
    for said in "ab":
        app.invoke({"steps": [said]}, MONDAY)
    earlier = next(one for one in app.get_state_history(MONDAY) if one.values["steps"] == ["a", "1"])
    assert app.invoke({"steps": ["c"]}, earlier.config)["steps"] == ["a", "1", "c", "3"]


def test_an_interrupt_is_answered_by_another_saver(home: Home) -> None:
    graph = StateGraph(State)
    graph.add_node("ask", lambda _: {"steps": [interrupt("ferry or train?")]})
    graph.add_edge(START, "ask")
    graph.compile(checkpointer=KeepstoneSaver(home)).invoke({"steps": []}, MONDAY)
    app = graph.compile(checkpointer=KeepstoneSaver(home))
    assert app.invoke(Command(resume="ferry"), MONDAY)["steps"] == ["ferry"]


def test_a_thread_is_a_session_that_no_recall_returns(saver: KeepstoneSaver, agent: Agent) -> None:
    put(saver, MONDAY, said=LARGE)
    assert [info.id for info in agent.sessions()] == ["monday"]
    assert agent.recall("ferry to Dover") == []
    assert agent.context("When does the ferry to Dover leave?").text == ""


def test_a_large_value_is_stored_once(saver: KeepstoneSaver, agent: Agent) -> None:
    first = put(saver, MONDAY, said=LARGE)
    second = put(saver, first, said=LARGE, more="x")
    assert found(saver, second).checkpoint["channel_values"] == {"said": LARGE, "more": "x"}
    assert agent.count(types=["checkpoint_blob"], include_superseded=True) == 1


def test_a_value_longer_than_a_line_is_kept(saver: KeepstoneSaver) -> None:
    value = bytes(range(256)) * 80_000
    assert found(saver, put(saver, MONDAY, raw=value)).checkpoint["channel_values"] == {"raw": value}


def test_a_value_of_the_parent_is_not_encrypted_again(home: Home, agent: Agent) -> None:
    saver = KeepstoneSaver(home, serde=EncryptedSerializer(Cipher()))
    second = put(saver, put(saver, MONDAY, said=LARGE), said=LARGE)
    assert found(saver, second).checkpoint["channel_values"] == {"said": LARGE}
    assert agent.count(types=["checkpoint_blob"], include_superseded=True) == 1


def test_a_second_write_of_a_task_changes_nothing(saver: KeepstoneSaver) -> None:
    config = put(saver, MONDAY)
    for value in (1, 2):
        saver.put_writes(config, [("n", value), ("__error__", value)], "task")
    assert found(saver, config).pending_writes == [("task", "__error__", 2), ("task", "n", 1)]


def test_writes_come_in_the_order_of_their_paths(saver: KeepstoneSaver) -> None:
    config = put(saver, MONDAY)
    for task, path in (("a", "~2"), ("b", "~1")):
        saver.put_writes(config, [("n", task)], task, path)
    assert [value for *_, value in found(saver, config).pending_writes or ()] == ["b", "a"]


def test_a_deleted_thread_leaves_no_byte(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        saver = KeepstoneSaver(home)
        put(saver, MONDAY, said="c2VjcmV0IGZlcnJ5")
        assert b"checkpoint_id" in bytes_below(tmp_path)
        saver.delete_thread("monday")
        assert home.agent("default").sessions() == []
    assert b"checkpoint_id" not in bytes_below(tmp_path)


def test_deleting_a_thread_keeps_other_entries_of_its_session(saver: KeepstoneSaver, agent: Agent) -> None:
    agent.add("Ada takes the ferry", session="monday")
    put(saver, MONDAY, said=LARGE)
    saver.delete_thread("monday")
    assert [entry.text for entry in agent.session("monday").entries(include_superseded=True)] == [
        "Ada takes the ferry"
    ]


def test_a_removed_run_takes_along_only_values_of_its_own(saver: KeepstoneSaver, agent: Agent) -> None:
    first = put(saver, MONDAY, run="one", said=LARGE, gone=LARGE + "!")
    second = put(saver, first, run="two", said=LARGE)
    saver.delete_for_runs(["one"])
    assert saver.get_tuple(first) is None
    assert found(saver, second).checkpoint["channel_values"] == {"said": LARGE}
    assert agent.count(types=["checkpoint_blob"], include_superseded=True) == 1


def test_pruning_keeps_what_a_delta_channel_is_rebuilt_from(saver: KeepstoneSaver) -> None:
    graph = StateGraph(Deltas)
    graph.add_node("count", lambda state: {"steps": [str(len(state["steps"]))]})
    graph.add_edge(START, "count")
    app = graph.compile(checkpointer=saver)
    for said in "ab":
        app.invoke({"steps": [said]}, MONDAY)
    saver.prune(["monday"])
    assert app.get_state(MONDAY).values["steps"] == ["a", "1", "b", "3"]


def test_pruning_by_an_unknown_strategy_removes_nothing(saver: KeepstoneSaver) -> None:
    config = put(saver, MONDAY)
    with pytest.raises(ValueError, match="unknown strategy 'all'; use 'keep_latest' or 'delete'"):
        saver.prune(["monday"], strategy="all")
    assert saver.get_tuple(config) is not None


def test_ids_of_threads_and_namespaces_may_be_anything(saver: KeepstoneSaver) -> None:
    configs: list[Any] = [
        {"configurable": {"thread_id": thread, "checkpoint_ns": namespace}}
        for thread in ("../x", "ü" * 300, 7)
        for namespace in ("", "a/b", "a%2Fb")
    ]
    for number, config in enumerate(configs):
        put(saver, config, number=number)
    assert [found(saver, one).checkpoint["channel_values"]["number"] for one in configs] == [*range(9)]
    assert {one.config["configurable"]["thread_id"] for one in saver.list(None)} == {"../x", "ü" * 300, "7"}


def test_branches_never_share_a_version(saver: KeepstoneSaver) -> None:
    first = saver.get_next_version(None, None)
    assert first < saver.get_next_version(first, None) != saver.get_next_version(first, None)


def test_a_damaged_value_is_named(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        config = put(KeepstoneSaver(home), MONDAY, said=LARGE)
    log = next(tmp_path.rglob("monday.ndjson"))
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    blob = next(line for line in lines if line["type"] == "checkpoint_blob")
    log.write_text(log.read_text().replace(blob["data"]["base64"], "AAAA"))
    with keepstone.open(tmp_path, embedder="none") as home, pytest.raises(OSError, match="is damaged"):
        KeepstoneSaver(home).get_tuple(config)


@pytest.mark.parametrize("secrets", ["refuse", "mask"])
def test_a_home_without_secrets_refuses_a_state_that_has_one(tmp_path: Path, secrets: Any) -> None:
    with keepstone.open(tmp_path, embedder="none", secrets=secrets) as home:
        with pytest.raises(ValueError, match="secret"):
            put(KeepstoneSaver(home), MONDAY, said="push with ghp_" + 9 * "a1B2")
        assert home.agent("default").sessions() == []


def test_async_savers_list_what_they_put(saver: KeepstoneSaver) -> None:
    async def main() -> list[Any]:
        app = counting(saver)
        await app.ainvoke({"steps": ["a"]}, MONDAY)
        return [one.metadata["step"] async for one in saver.alist(MONDAY, filter={"source": "loop"}, limit=2)]

    assert asyncio.run(main()) == [1, 0]
