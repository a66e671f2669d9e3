"""Messages of LangGraph's threads, from checkpoints and from the writes of a delta channel."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import FIXTURES, auto

from keepstone.agent import Agent
from keepstone.importing import import_memory


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
