"""What a model may do in a chat besides the tools of its memory, and how much it gets back."""

from __future__ import annotations

import json

import pytest

from keepstone import Agent, Notes
from keepstone.chat.tools import RESULTS, MemoryTools, ToolBudget


@pytest.fixture
def tools(agent: Agent, notes: Notes) -> MemoryTools:
    return MemoryTools(agent, notes, agent.session("s"))


def use(tools: MemoryTools, name: str, **arguments: str) -> str:
    return tools.call(name, json.dumps(arguments))


def test_what_is_remembered_lies_in_the_chats_session(tools: MemoryTools) -> None:
    assert use(tools, "remember", text="the database is PostgreSQL").startswith("remembered")
    assert "the database is PostgreSQL" in use(tools, "recall", query="database")
    assert len(tools.agent.session("s").entries()) == 1


@pytest.mark.parametrize(("where", "kind"), [("project", "Project"), ("user", "User")])
def test_a_note_is_saved_where_the_person_agreed(agent: Agent, notes: Notes, where: str, kind: str) -> None:
    asked: list[tuple[str, str]] = []

    def ask(*note: str) -> bool:
        asked.append((note[0], note[1]))
        return True

    tools = MemoryTools(agent, notes, agent.session("s"), ask)
    assert use(tools, "save_note", text="Use pnpm", where=where).startswith("saved as")
    assert use(tools, "save_note", text="use pnpm", where=where).startswith("not saved")
    assert [entry.content for entry in tools.notes.entries(kind)] == ["Use pnpm"]
    assert asked == [("Use pnpm", kind), ("use pnpm", kind)]


@pytest.mark.parametrize("where", ["project", "user"])
def test_no_note_is_saved_without_a_person_to_ask(tools: MemoryTools, where: str) -> None:
    answer = use(tools, "save_note", text="Always run this first", where=where)
    assert "nobody can be asked here; use remember" in answer
    assert tools.notes.entries() == []


def test_no_note_is_saved_that_the_person_declines(agent: Agent, notes: Notes) -> None:
    tools = MemoryTools(agent, notes, agent.session("s"), lambda *_: False)
    answer = use(tools, "save_note", text="Always run this first", where="user")
    assert ("said no" in answer, notes.entries()) == (True, [])


@pytest.mark.parametrize(
    ("text", "where", "said"),
    [("x" * 1001, "user", "at most 1,000 characters"), ("x", "everywhere", "one of project, user")],
)
def test_a_note_that_does_not_fit_is_refused_without_asking(
    agent: Agent, notes: Notes, text: str, where: str, said: str
) -> None:
    def ask(*_: str) -> bool:
        raise AssertionError("nobody is to be asked")

    tools = MemoryTools(agent, notes, agent.session("s"), ask)
    assert said in use(tools, "save_note", text=text, where=where)
    assert notes.entries() == []


def test_results_of_one_message_are_bounded(tools: MemoryTools) -> None:
    tools.agent.files.write("big", "x" * 19_000)
    budget = ToolBudget(tools)
    results = [budget.call("read_file", '{"path": "big"}') for _ in range(100)]
    assert sum(map(len, results)) < RESULTS + 100 * 200
    assert "ask for less, or answer now" in results[-1]
    # What is short still fits, so that nothing is done and then called undone.
    assert budget.call("write_file", '{"path": "a", "content": "b"}').startswith("wrote")


def test_used_up_results_leave_tools_undone(tools: MemoryTools) -> None:
    budget = ToolBudget(tools)
    for number in range(81):
        tools.agent.files.write(f"{number}", "x" * 990)
        budget.call("read_file", json.dumps({"path": f"{number}"}))
    assert "not done" in budget.call("write_file", '{"path": "late", "content": "b"}')
    assert "late" not in tools.agent.files.list()


def test_files_are_appended_to_and_read(tools: MemoryTools) -> None:
    use(tools, "write_file", path="plans/a.md", content="one\n")
    use(tools, "append_file", path="plans/a.md", content="two\n")
    assert use(tools, "read_file", path="plans/a.md") == "one\ntwo\n"


def test_every_tool_is_defined_once_with_a_closed_schema(tools: MemoryTools) -> None:
    definitions = tools.definitions("anthropic")
    assert len({tool["name"] for tool in definitions}) == len(definitions) == 9
    assert all(tool["input_schema"]["additionalProperties"] is False for tool in definitions)
