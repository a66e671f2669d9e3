"""Resources and prompts, without a transport."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import MCPError

import keepstone
from keepstone import Home
from keepstone.mcp.memory_tools import McpTools
from keepstone.mcp.resources import GRAPH, View, completed, listed, prompt, prompts, read, uri_of
from keepstone.operations.agent_tools import AS_DATA


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home


def view_of(home: Home, *, notes: keepstone.Notes | None = None, graph: bool = False) -> View:
    agent = home.agent("coder")
    return View(agent, McpTools(agent, profile="reference" if graph else "keepstone"), home, notes)


@pytest.fixture
def view(home: Home) -> View:
    return view_of(home)


def uris(view: View, cursor: str | None = None) -> list[str]:
    return [str(resource.uri) for resource in listed(view, cursor).resources]


def text_of(view: View, uri: str) -> str:
    (contents,) = read(view, uri).contents
    return contents.text  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("kind", "name", "uri"),
    [
        ("sessions", "a/b", "keepstone://sessions/a%2Fb"),
        ("files", "plans/a b.md", "keepstone://files/plans/a%20b.md"),
        ("sessions", "50%", "keepstone://sessions/50%25"),
        ("sessions", "ä", "keepstone://sessions/%C3%A4"),
    ],
)
def test_a_name_is_quoted_and_only_files_keep_their_slashes(kind: str, name: str, uri: str) -> None:
    assert uri_of(kind, name) == uri


@pytest.mark.parametrize("name", ["50%", "a/b", "a?b#c", "a b", "ä", "%2F"])
def test_a_listed_resource_can_be_read(view: View, name: str) -> None:
    view.agent.session(name).add("note", text=f"fact of {name}")
    (uri,) = uris(view)
    assert f"fact of {name}" in text_of(view, uri)


def test_a_page_goes_on_behind_a_resource_that_was_removed(view: View) -> None:
    for number in range(101):
        view.agent.session(f"s{number:03}").add("note", text="x")
    cursor = listed(view, None).next_cursor
    assert cursor == "keepstone://sessions/s099"
    view.agent.session("s099").remove()
    assert uris(view, cursor) == ["keepstone://sessions/s100"]


def test_an_exact_page_has_no_next_one(view: View) -> None:
    for number in range(100):
        view.agent.session(f"s{number:03}").add("note", text="x")
    assert listed(view, None).next_cursor is None


def test_the_graph_is_a_resource_of_its_profile_only(home: Home) -> None:
    with_graph = view_of(home, graph=True)
    assert uris(with_graph) == [GRAPH]
    assert '"entities": []' in text_of(with_graph, GRAPH)
    with pytest.raises(MCPError, match="no resource 'memory://knowledge-graph'"):
        read(view_of(home), GRAPH)


def test_notes_are_resources_where_there_are_notes(home: Home, tmp_path: Path) -> None:
    notes = keepstone.Notes(tmp_path, user_file=tmp_path / "user.md")
    notes.add("Use pnpm", "Project")
    view = view_of(home, notes=notes)
    assert uris(view) == ["keepstone://notes/project", "keepstone://notes/user"]
    assert text_of(view, "keepstone://notes/project") == "- Use pnpm\n"
    assert text_of(view, "keepstone://notes/user") == ""


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "keepstone://",
        "keepstone://sessions",
        "keepstone://sessions/",
        "keepstone://agents/coder",
        "keepstone://notes/project",
        "KEEPSTONE://sessions/main",
        "sessions/main",
    ],
)
def test_another_address_is_no_resource(view: View, uri: str) -> None:
    view.agent.session("main").add("note", text="x")
    with pytest.raises(MCPError, match="list the resources") as refused:
        read(view, uri)
    assert refused.value.error.data == {"uri": uri}


def test_an_empty_session_is_listed_and_has_nothing_to_read(view: View) -> None:
    view.agent.new_session("empty")
    assert uris(view) == ["keepstone://sessions/empty"]
    with pytest.raises(MCPError, match="no resource"):
        read(view, "keepstone://sessions/empty")


def test_at_most_a_hundred_values_are_completed_and_the_total_is_said(view: View) -> None:
    for number in range(101):
        view.agent.files.write(f"f{number:03}.md", "x")
    found = completed(view, "path", "f").completion
    assert (len(found.values), found.total, found.has_more) == (100, 101, True)


@pytest.mark.parametrize(("argument", "typed"), [("which", "pro"), ("agent", ""), ("session", "x")])
def test_what_nothing_completes_has_no_values(view: View, argument: str, typed: str) -> None:
    found = completed(view, argument, typed).completion
    assert (found.values, found.total, found.has_more) == ([], 0, False)


def test_each_prompt_that_is_listed_is_answered(view: View) -> None:
    for one in prompts():
        assert prompt(view, one.name, {"topic": "tea"}).messages


@pytest.mark.parametrize("arguments", [{}, {"topic": " "}])
def test_a_prompt_without_its_topic_says_what_is_missing(view: View, arguments: dict[str, str]) -> None:
    with pytest.raises(MCPError, match="topic is missing; say what to remember of"):
        prompt(view, "remember", arguments)


def test_an_unknown_prompt_names_those_there_are(view: View) -> None:
    with pytest.raises(MCPError, match="no prompt 'forget'; there are context and remember"):
        prompt(view, "forget", {})


def test_what_is_found_is_framed_as_data(view: View) -> None:
    view.agent.add("Ada prefers tea")
    text = prompt(view, "remember", {"topic": "tea"}).messages[0].content.text  # type: ignore[union-attr]
    assert text.startswith(f"What do you remember of tea?\n\n{AS_DATA}")


def test_an_empty_memory_says_so_in_words(view: View) -> None:
    text = prompt(view, "remember", {"topic": "tea"}).messages[0].content.text  # type: ignore[union-attr]
    assert "\n\nThe memory says: nothing is remembered here yet\n" in text
