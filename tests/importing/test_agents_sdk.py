"""Databases of the OpenAI Agents SDK: branches, and tables with names of their own."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import FIXTURES, auto, sessions

from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory


def database(path: Path, table: str = "agent_messages") -> Path:
    """A session with the messages 1 to 4."""
    connection = apsw.Connection(str(path))
    connection.execute(
        f'CREATE TABLE "{table}" (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, '
        "created_at TIMESTAMP DEFAULT '2026-01-11 14:31:00')"
    )
    rows = [("s", json.dumps({"role": "user", "content": str(number)})) for number in range(1, 5)]
    connection.executemany(f'INSERT INTO "{table}" (session_id, message_data) VALUES (?, ?)', rows)  # noqa: S608
    connection.close()
    return path


def branched(path: Path, **branches: list[int]) -> Path:
    """The session with branches, each of some messages, the last one written to last."""
    connection = apsw.Connection(str(database(path)))
    connection.execute(
        "CREATE TABLE message_structure (id INTEGER PRIMARY KEY, session_id TEXT, message_id INTEGER, "
        "branch_id TEXT, sequence_number INTEGER)"
    )
    rows = [("s", number, name, place) for name, ids in branches.items() for place, number in enumerate(ids)]
    statement = "INSERT INTO message_structure (session_id, message_id, branch_id, sequence_number) VALUES "
    connection.executemany(f"{statement} (?, ?, ?, ?)", rows)
    connection.close()
    return path


def texts(agent: Agent, session: str = "s") -> list[str]:
    return [entry.data["content"] for entry in agent.session(session).entries()]


def test_the_branch_written_to_last_is_imported(agent: Agent, tmp_path: Path) -> None:
    import_memory(agent, "auto", branched(tmp_path / "x.db", main=[1, 2], other=[1, 3, 4]))
    assert texts(agent) == ["1", "3", "4"]


def test_each_other_branch_becomes_a_session_if_all_are_wanted(agent: Agent, tmp_path: Path) -> None:
    import_memory(agent, "auto", branched(tmp_path / "x.db", main=[1, 2], other=[1, 3]), branches=True)
    assert (texts(agent), texts(agent, "s/main")) == (["1", "3"], ["1", "2"])


def test_a_session_without_branches_beside_others_is_read(agent: Agent, tmp_path: Path) -> None:
    source = branched(tmp_path / "x.db", main=[1, 2])
    connection = apsw.Connection(str(source))
    connection.execute("UPDATE message_structure SET session_id = 'another'")
    connection.close()
    import_memory(agent, "auto", source)
    assert texts(agent) == ["1", "2", "3", "4"]


def test_a_table_of_another_name_is_read_once_it_is_named(agent: Agent, tmp_path: Path) -> None:
    source = database(tmp_path / "x.db", "my messages")
    for name in ("auto", "openai-agents"):
        with pytest.raises(SourceError, match=r"no table 'agent_messages'; .* messages: my messages;"):
            import_memory(agent, name, source)
    import_memory(agent, "auto", source, mapping={"messages": "my messages"})
    assert texts(agent) == ["1", "2", "3", "4"]


def test_a_mapping_of_another_field_is_refused(agent: Agent, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'text'; of openai-agents only messages"):
        import_memory(agent, "openai-agents", database(tmp_path / "x.db"), mapping={"text": "x"})
    assert agent.sessions() == []


def test_a_virtual_table_of_an_unknown_module_is_not_looked_at(agent: Agent, tmp_path: Path) -> None:
    source = database(tmp_path / "x.db")
    connection = apsw.Connection(str(source))
    virtual = "CREATE VIRTUAL TABLE v USING vec0(id, session_id, message_data)"
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("INSERT INTO sqlite_schema VALUES ('table', 'v', 'v', 0, ?)", (virtual,))
    connection.close()
    assert import_memory(agent, "auto", source).imported == 4


def test_sessions_of_the_openai_agents_sdk(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "agents.db", "openai-agents").imported == 5
    assert sessions(agent) == ["user-7", "user-8"]
    data = [entry.data for entry in agent.session("user-7").entries()]
    assert data[0] == {"role": "user", "content": "Which sign-in?"}
    assert [item.get("type") for item in data[1:]] == ["message", "function_call", "function_call_output"]
    assert agent.session("user-7").messages("openai")[-1]["output"] == "found"
