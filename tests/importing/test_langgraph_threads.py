"""Messages of LangGraph's threads, from checkpoints and from the writes of a delta channel."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.importing.sources import FIXTURES, auto, items, read, reasons

from keepstone.agent import Agent
from keepstone.importing import import_memory
from keepstone.importing.langgraph_sqlite import read_langgraph


def changed(tmp_path: Path, name: str, statement: str) -> Path:
    copy = tmp_path / name
    shutil.copy(FIXTURES / name, copy)
    connection = apsw.Connection(str(copy))
    connection.execute(statement)
    connection.close()
    return copy


def texts(agent: Agent, session: str) -> list[str]:
    return [entry.data["content"] for entry in agent.session(session).entries()]


def test_messages_of_a_delta_channel_come_from_its_writes(agent: Agent) -> None:
    result = import_memory(agent, "auto", FIXTURES / "delta.db")
    assert (result.source, result.imported, result.failed) == ("langgraph", 11, [])
    assert texts(agent, "t1") == ["edited", "question h2", "reply 3", "question h3", "reply 5"]
    times = [entry.ts for entry in agent.session("t1").entries()]
    assert times == sorted(set(times))
    assert import_memory(agent, "auto", FIXTURES / "delta.db").unchanged == 11


def test_a_snapshot_of_a_delta_channel_is_where_its_writes_begin(agent: Agent) -> None:
    import_memory(agent, "langgraph", FIXTURES / "delta.db")
    assert texts(agent, "snapshots") == texts(agent, "t1")


def test_an_overwrite_replaces_what_a_delta_channel_had(agent: Agent) -> None:
    import_memory(agent, "langgraph", FIXTURES / "delta.db")
    assert texts(agent, "overwritten") == ["Fresh"]


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("DROP TABLE writes", "table writes, which is missing"),
        ("DELETE FROM checkpoints WHERE parent_checkpoint_id IS NULL", "cannot be read"),
        ("UPDATE writes SET type = 'pickle' WHERE channel = 'messages'", "can run code"),
    ],
)
def test_a_thread_whose_writes_are_lost_is_named(
    agent: Agent, tmp_path: Path, statement: str, reason: str
) -> None:
    result = import_memory(agent, "langgraph", changed(tmp_path, "delta.db", statement))
    assert any("thread t1" in one.place and reason in one.reason for one in result.failed)


def test_a_circle_of_checkpoints_ends(agent: Agent, tmp_path: Path) -> None:
    statement = "UPDATE checkpoints SET parent_checkpoint_id = checkpoint_id WHERE thread_id = 't1'"
    result = import_memory(agent, "langgraph", changed(tmp_path, "delta.db", statement))
    assert "cannot be read" in result.failed[0].reason


def test_messages_of_langgraph_checkpoints_keep_id_role_and_time(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "checkpoints.db", "langgraph").imported == 4
    found = agent.session("t1").entries()
    assert [entry.id for entry in found] == ["h1", "a1", "h2", "a3"]
    assert [entry.data["role"] for entry in found] == ["user", "assistant", "user", "assistant"]
    assert found[1].data["tool_calls"][0]["name"] == "f"
    assert [entry.ts for entry in found] == sorted({entry.ts for entry in found})


def test_a_pickled_checkpoint_is_listed_and_not_loaded(agent: Agent, tmp_path: Path) -> None:
    copy = tmp_path / "checkpoints.db"
    shutil.copy(FIXTURES / "checkpoints.db", copy)
    bomb = b"cos\nsystem\n(S'touch " + str(tmp_path / "ran").encode() + b"'\ntR."
    connection = apsw.Connection(str(copy))
    connection.execute("UPDATE checkpoints SET type = 'pickle', checkpoint = ?", (bomb,))
    connection.close()
    result = import_memory(agent, "langgraph", copy)
    assert result.imported == 0
    assert "can run code" in result.failed[0].reason
    assert not (tmp_path / "ran").exists()


def thread(path: Path, *messages: Any, user: str | None = None, namespace: str = "") -> Path:
    """A database of one thread, each of whose checkpoints has one more message."""
    with closing(apsw.Connection(str(path))) as database:
        database.execute(
            "CREATE TABLE checkpoints(thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata)"
        )
        for number in range(1, len(messages) + 1):
            state = {"ts": f"2026-01-0{number}T00:00:00Z", "channel_values": {"messages": messages[:number]}}
            row = ("t", namespace, f"c{number}", "json", json.dumps(state), json.dumps({"user_id": user}))
            database.execute("INSERT INTO checkpoints VALUES(?, ?, ?, ?, ?, ?)", row)
    return path


def said(tmp_path: Path, *messages: Any) -> list[dict[str, Any]]:
    return [item.line["data"] for item in items(read_langgraph, thread(tmp_path / "x.db", *messages))]


@pytest.mark.parametrize(
    "message",
    [
        "Hi",
        ["user", "Hi"],
        {"role": "user", "content": "Hi"},
        {"type": "human", "content": "Hi", "additional_kwargs": {}, "example": False},
        {"type": "constructor", "kwargs": {"type": "human", "content": "Hi"}},
    ],
)
def test_each_form_of_a_message_has_its_role_and_content(tmp_path: Path, message: Any) -> None:
    assert said(tmp_path, message) == [{"role": "user", "content": "Hi"}]


def test_what_json_can_hold_of_a_message_is_kept(tmp_path: Path) -> None:
    calls = [{"id": "c", "args": {"n": [1, None]}}]
    message: dict[str, Any] = {
        "type": "ai",
        "content": "",
        "tool_calls": calls,
        "name": None,
        "usage_metadata": {},
    }
    assert said(tmp_path, message) == [{"role": "assistant", "content": "", "tool_calls": calls}]


def test_a_message_has_the_time_of_the_first_checkpoint_that_has_it(tmp_path: Path) -> None:
    messages = [{"id": name, "role": "user", "content": name} for name in ("a", "b")]
    found = items(read_langgraph, thread(tmp_path / "x.db", *messages))
    assert [(item.line["id"], item.line["ts"][:10]) for item in found] == [
        ("a", "2026-01-01"),
        ("b", "2026-01-02"),
    ]


def test_a_message_without_an_id_is_named_by_its_checkpoint_and_place(tmp_path: Path) -> None:
    found = items(read_langgraph, thread(tmp_path / "x.db", "Hi", "Yes"))
    assert [item.line["id"] for item in found] == ["c2-1", "c2-2"]


def test_a_subgraph_has_a_session_of_its_own(tmp_path: Path) -> None:
    found = items(read_langgraph, thread(tmp_path / "x.db", "Hi", namespace="child:1"))
    assert [item.session for item in found] == ["t/child:1"]


def test_the_user_of_a_thread_is_the_owner_of_its_messages(tmp_path: Path) -> None:
    (found,) = items(read_langgraph, thread(tmp_path / "x.db", "Hi", user="ada"))
    assert found.owner == {"user_id": "ada"}
    (found,) = items(read_langgraph, thread(tmp_path / "y.db", "Hi"))
    assert found.owner == {}


def test_a_message_of_no_known_form_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    found = read(read_langgraph, thread(tmp_path / "x.db", "Hi", 7))
    assert reasons(found) == [
        (
            "x.db: checkpoint c2 of thread t, message 2",
            "it is damaged, or an object of an unknown class, which is not made",
        )
    ]
    assert len(found) == 2


def test_a_damaged_newest_checkpoint_is_named(tmp_path: Path) -> None:
    path = thread(tmp_path / "x.db", "Hi", "Yes")
    with closing(apsw.Connection(str(path))) as database:
        database.execute("UPDATE checkpoints SET checkpoint = '{' WHERE checkpoint_id = 'c2'")
    ((place, _),) = reasons(read(read_langgraph, path))
    assert place == "x.db: checkpoint c2 of thread t"


def delta(path: Path, *writes: Any) -> list[str]:
    """Return the contents of a thread whose messages are only in writes, one at each checkpoint."""
    with closing(apsw.Connection(str(path))) as database:
        database.execute(
            "CREATE TABLE checkpoints(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, "
            "checkpoint); CREATE TABLE writes(thread_id, checkpoint_ns, checkpoint_id, task_id, idx, "
            "channel, type, value)"
        )
        state = json.dumps({"ts": "2026-01-01", "channel_values": {}, "channel_versions": {"messages": 1}})
        for number in range(len(writes) + 1):
            before = f"c{number - 1}" if number else None
            row = ("t", "", f"c{number}", before, "json", state)
            database.execute("INSERT INTO checkpoints VALUES(?, ?, ?, ?, ?, ?)", row)
        for number, write in enumerate(writes):
            made = ("t", "", f"c{number}", "task", 0, "messages", "json", json.dumps(write))
            database.execute("INSERT INTO writes VALUES(?, ?, ?, ?, ?, ?, ?, ?)", made)
    return [item.line["data"]["content"] for item in items(read_langgraph, path)]


def of(name: str, content: str = "", **keys: Any) -> dict[str, Any]:
    return {"id": name, "role": "user", "content": content or name, **keys}


def test_a_write_of_a_known_id_replaces_its_message_in_place(tmp_path: Path) -> None:
    assert delta(tmp_path / "x.db", [of("a"), of("b")], of("a", "edited")) == ["edited", "b"]


def test_a_removal_takes_one_message_away_or_all_of_them(tmp_path: Path) -> None:
    assert delta(tmp_path / "x.db", [of("a"), of("b")], of("a", type="remove")) == ["b"]
    everything = [of("__remove_all__", type="remove"), of("c")]
    assert delta(tmp_path / "y.db", [of("a"), of("b")], everything) == ["c"]


@pytest.mark.parametrize(
    "overwrite",
    [{"__overwrite__": [of("c")]}, {"type": "__overwrite__", "value": [of("c")]}],
)
def test_an_overwrite_in_json_replaces_all(tmp_path: Path, overwrite: Any) -> None:
    assert delta(tmp_path / "x.db", [of("a"), of("b")], overwrite, of("d")) == ["c", "d"]


def test_an_overwrite_with_nothing_empties_the_thread(tmp_path: Path) -> None:
    assert delta(tmp_path / "x.db", of("a"), {"__overwrite__": None}, of("b")) == ["b"]
