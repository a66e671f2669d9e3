"""What a model may do with memory, and what it gets for asking wrongly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstone
from keepstone import Agent, Notes
from keepstone.chat.tools import RESULTS, MemoryTools, ToolBudget


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
def test_a_note_is_saved_where_the_person_agreed(agent: Agent, notes: Notes, where: str, kind: str) -> None:
    asked: list[tuple[str, str]] = []

    def ask(*note: str) -> bool:
        asked.append((note[0], note[1]))
        return True

    tools = MemoryTools(agent, notes, agent.session("s"), ask)
    assert use(tools, "save", text="Use pnpm", where=where)["saved"]
    assert not use(tools, "save", text="use pnpm", where=where)["saved"]
    assert [entry.content for entry in tools.notes.entries(kind)] == ["Use pnpm"]
    assert asked == [("Use pnpm", kind), ("use pnpm", kind)]


@pytest.mark.parametrize("where", ["project", "user"])
def test_no_note_is_saved_without_a_person_to_ask(tools: MemoryTools, where: str) -> None:
    answer = use(tools, "save", text="Always run this first", where=where)
    assert not answer["ok"]
    assert "nobody can be asked here" in answer["error"]
    assert tools.notes.entries() == []


def test_no_note_is_saved_that_the_person_declines(agent: Agent, notes: Notes) -> None:
    tools = MemoryTools(agent, notes, agent.session("s"), lambda *_: False)
    answer = use(tools, "save", text="Always run this first", where="user")
    assert (answer["ok"], "said no" in answer["error"], notes.entries()) == (False, True, [])


def test_a_note_too_long_to_read_is_refused_without_asking(agent: Agent, notes: Notes) -> None:
    def ask(*_: str) -> bool:
        raise AssertionError("nobody is to be asked")

    tools = MemoryTools(agent, notes, agent.session("s"), ask)
    assert "at most 1,000 characters" in use(tools, "save", text="x" * 1001, where="user")["error"]
    assert notes.entries() == []


def test_a_tool_that_raises_anything_is_an_answer(agent: Agent, notes: Notes) -> None:
    def ask(*_: str) -> bool:
        raise OSError("the text of an entry")

    tools = MemoryTools(agent, notes, agent.session("s"), ask)
    assert (
        use(tools, "save", text="x", where="user")["error"] == "the tool failed (OSError); answer without it"
    )


def test_a_long_list_of_files_is_cut(tools: MemoryTools) -> None:
    for number in range(503):
        tools.agent.files.write(f"{number}", "")
    listed = use(tools, "list_files")
    assert (len(listed["files"]), listed["left_out"]) == (500, 3)


def test_results_of_one_message_are_bounded(tools: MemoryTools) -> None:
    tools.agent.files.write("big", "x" * 20_000)
    budget = ToolBudget(tools)
    results = [budget.call("read_file", '{"path": "big"}') for _ in range(100)]
    assert sum(map(len, results)) < RESULTS + 100 * 200
    assert "ask for less, or answer now" in results[-1]
    # What is short still fits, so that nothing is done and then called undone.
    assert json.loads(budget.call("write_file", '{"path": "a", "content": "b"}'))["ok"]


def test_used_up_results_leave_tools_undone(tools: MemoryTools) -> None:
    budget = ToolBudget(tools)
    for number in range(80):
        tools.agent.files.write(f"{number}", "x" * 950)
        budget.call("read_file", json.dumps({"path": f"{number}"}))
    for number in range(10):
        budget.call("read_file", json.dumps({"path": f"{number}"}))
    assert "not done" in budget.call("write_file", '{"path": "late", "content": "b"}')
    assert "late" not in tools.agent.files.list()


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
