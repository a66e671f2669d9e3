"""Checkpoints, writes and values of one thread as entries of its session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint")

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

import keepstone
from keepstone import Agent
from keepstone.integrations.langgraph_checkpoints import BLOB, CHECKPOINT, WRITE, Place, Thread

LARGE = "The ferry to Dover leaves at noon. " * 100
TS = "2026-01-11T12:00:00+00:00"


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home.agent("a")


@pytest.fixture
def thread(agent: Agent) -> Thread:
    return Thread(agent, "t", JsonPlusSerializer())


def put(thread: Thread, name: str, parent: str | None = None, **values: Any) -> Place:
    """Store a checkpoint of this id, with values of version 1."""
    place = Place("", name)
    about = {"checkpoint": {"id": name}, "metadata": {"step": 1}}
    thread.put(place, about, {key: ("1", value) for key, value in values.items()}, parent, TS)
    return place


def kinds(agent: Agent, kind: str) -> int:
    return sum(record["type"] == kind for record in agent.session("t").records())


def test_a_checkpoint_comes_back_with_its_values(thread: Thread) -> None:
    place = put(thread, "c1", steps=["a"], large=LARGE)
    data = thread.checkpoints()[place]
    assert thread.loaded(data["checkpoint"]) == {"id": "c1"}
    assert {name: thread.loaded(part) for name, part in data["channels"].items()} == {
        "steps": ["a"],
        "large": LARGE,
    }


def test_a_large_value_is_one_blob_however_many_checkpoints_have_it(agent: Agent, thread: Thread) -> None:
    put(thread, "c1", large=LARGE)
    put(thread, "c2", "c1", large=LARGE)
    put(thread, "c3", None, large=LARGE, other=LARGE)
    assert (kinds(agent, CHECKPOINT), kinds(agent, BLOB)) == (3, 1)


def test_a_small_value_is_in_its_line(agent: Agent, thread: Thread) -> None:
    put(thread, "c1", small="x" * 1000)
    assert kinds(agent, BLOB) == 0


def test_a_value_of_many_pieces_is_joined_again(
    agent: Agent, thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.integrations.langgraph_checkpoints._PIECE", 1000)
    place = put(thread, "c1", large=LARGE)
    assert kinds(agent, BLOB) > 1
    assert thread.loaded(thread.checkpoints()[place]["channels"]["large"]) == LARGE


def test_ids_with_slashes_and_percent_signs_stay_distinct() -> None:
    ids = {
        Place(space, name).entry_id
        for space, name in [("a/b", "c"), ("a", "c"), ("b", "c/a"), ("", "c"), ("a%2Fb", "c")]
    }
    assert len(ids) == 5


def test_a_task_writes_once_and_its_errors_are_replaced(thread: Thread) -> None:
    place = put(thread, "c1")
    thread.put_writes(place, [("steps", "first")], "task", "")
    thread.put_writes(place, [("steps", "second")], "task", "")
    thread.put_writes(place, [("__error__", "first")], "task", "")
    thread.put_writes(place, [("__error__", "second")], "task", "")
    found = {write["channel"]: thread.loaded(write) for write in thread.writes()[place]}
    assert found == {"steps": "first", "__error__": "second"}


def test_a_removed_checkpoint_takes_its_writes_and_the_values_of_nobody_else(
    agent: Agent, thread: Thread
) -> None:
    first = put(thread, "c1", own="own " * 1000, shared=LARGE)
    thread.put_writes(first, [("steps", "x")], "task", "")
    second = put(thread, "c2", shared=LARGE)
    thread.remove([first])
    assert (kinds(agent, CHECKPOINT), kinds(agent, WRITE), kinds(agent, BLOB)) == (1, 0, 1)
    assert thread.loaded(thread.checkpoints()[second]["channels"]["shared"]) == LARGE


def test_removing_no_checkpoint_removes_nothing(agent: Agent, thread: Thread) -> None:
    put(thread, "c1", large=LARGE)
    thread.remove([])
    assert (kinds(agent, CHECKPOINT), kinds(agent, BLOB)) == (1, 1)


def test_a_thread_that_is_removed_leaves_no_session(agent: Agent, thread: Thread) -> None:
    put(thread, "c1", large=LARGE)
    thread.remove_all()
    assert agent.sessions() == []
    thread.remove_all()


def test_a_copy_has_everything_and_stays_when_the_first_goes(agent: Agent, thread: Thread) -> None:
    place = put(thread, "c1", large=LARGE)
    other = Thread(agent, "copy", JsonPlusSerializer())
    thread.copy_to(other)
    thread.remove_all()
    assert other.loaded(other.checkpoints()[place]["channels"]["large"]) == LARGE


def test_a_blob_that_was_purged_in_between_is_written_again(agent: Agent, thread: Thread) -> None:
    put(thread, "c1", large=LARGE)
    blob = next(record["id"] for record in agent.session("t").records() if record["type"] == BLOB)
    agent.session("t").purge(blob)
    place = put(thread, "c2", "c1", large=LARGE)
    assert thread.loaded(thread.checkpoints()[place]["channels"]["large"]) == LARGE


def test_a_missing_value_names_its_thread_and_the_remedy(agent: Agent, thread: Thread) -> None:
    place = put(thread, "c1", large=LARGE)
    blob = next(record["id"] for record in agent.session("t").records() if record["type"] == BLOB)
    agent.session("t").purge(blob)
    with pytest.raises(OSError, match=r"thread 't': blob/.* is missing, .*restore it from a backup"):
        thread.loaded(thread.checkpoints()[place]["channels"]["large"])


def test_lines_of_a_thread_with_a_long_name_say_it(agent: Agent) -> None:
    name = "x" * 500
    put(Thread(agent, name, JsonPlusSerializer()), "c1")
    (info,) = agent.sessions()
    (record,) = agent.session(info.id).records()
    assert (info.id != name, record["thread_id"]) == (True, name)
