"""What a model may do with memory, and what it gets for asking wrongly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstone
from keepstone import Agent, Notes
from keepstone.chat.tools import MemoryTools


@pytest.fixture
def tools(agent: Agent, notes: Notes) -> MemoryTools:
    return MemoryTools(agent, notes, agent.session("s"))


def use(tools: MemoryTools, name: str, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(tools.call(name, json.dumps(arguments)))
    assert isinstance(answer, dict)
    return answer


def test_what_is_saved_is_recalled_with_its_date(tools: MemoryTools) -> None:
    assert use(tools, "save", text="the database is PostgreSQL", type="decision")["ok"]
    entry = use(tools, "recall", query="database")["entries"][0]
    assert (entry["text"], entry["type"], entry["session"]) == ("the database is PostgreSQL", "decision", "s")
    assert len(entry["date"]) == len("2026-01-01")


@pytest.mark.parametrize(("where", "kind"), [("project", "Project"), ("user", "User")])
def test_a_note_is_saved_in_the_file_that_is_named(tools: MemoryTools, where: str, kind: str) -> None:
    assert use(tools, "save", text="Use pnpm", where=where)["saved"]
    assert not use(tools, "save", text="use pnpm", where=where)["saved"]
    assert [entry.content for entry in tools.notes.entries(kind)] == ["Use pnpm"]


def test_files_are_written_appended_read_and_listed(tools: MemoryTools) -> None:
    use(tools, "write_file", path="plans/a.md", content="one\n")
    use(tools, "append_file", path="plans/a.md", content="two\n")
    assert use(tools, "read_file", path="plans/a.md") == {"ok": True, "content": "one\ntwo\n"}
    assert use(tools, "list_files") == {"ok": True, "files": ["plans/a.md"]}


def test_a_long_file_is_cut_with_a_mark(tools: MemoryTools) -> None:
    use(tools, "write_file", path="a", content="x" * 30_000)
    assert use(tools, "read_file", path="a")["content"].endswith("[cut: 10,000 more characters]")


def test_a_path_outside_the_folder_is_refused(tools: MemoryTools) -> None:
    answer = use(tools, "write_file", path="../x", content="y")
    assert not answer["ok"]
    assert "PathEscapeError" in answer["error"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("nonsense", "{}"),
        ("__init__", "{}"),
        ("recall", "{"),
        ("recall", "[]"),
        ("recall", "{}"),
        ("recall", '{"query": 3}'),
        ("recall", '{"query": "a", "agent": "other"}'),
        ("recall", "[" * 100_000),
        ("save", '{"text": " "}'),
        ("save", '{"text": "a", "where": "everywhere"}'),
        ("save", '{"text": "a", "type": "message"}'),
        ("save", '{"text": "\\ud800"}'),
        ("read_file", '{"path": "missing"}'),
    ],
)
def test_a_wrong_call_is_answered_and_changes_nothing(tools: MemoryTools, name: str, arguments: str) -> None:
    answer = json.loads(tools.call(name, arguments))
    assert not answer["ok"]
    assert answer["error"]
    assert tools.agent.sessions() == []


@given(
    arguments=st.text()
    | st.builds(json.dumps, st.dictionaries(st.sampled_from(["query", "path"]), st.text()))
)
@settings(max_examples=30)
def test_no_arguments_of_a_model_raise(tmp_path_factory: pytest.TempPathFactory, arguments: str) -> None:
    with keepstone.open(tmp_path_factory.mktemp("home")) as home:
        agent = home.agent("default")
        tools = MemoryTools(agent, Notes(home.root), agent.session("s"))
        for name in ("recall", "read_file", "list_files"):
            assert "ok" in json.loads(tools.call(name, arguments))


def test_every_tool_is_defined_with_a_closed_schema(tools: MemoryTools) -> None:
    for tool in tools.definitions:
        assert tool["description"]
        assert tool["input_schema"]["additionalProperties"] is False
        assert {*tool["input_schema"]["required"]} <= {*tool["input_schema"]["properties"]}
