"""The functions of a model's tools, called with checked arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, EntryNotFoundError, Home, MemoryFileNotFoundError
from keepstone.operations.agent_tools import AS_DATA
from keepstone.operations.tool_calls import ToolCalls


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


@pytest.fixture
def memory(agent: Agent) -> ToolCalls:
    return ToolCalls(agent, None)


def test_a_memory_goes_to_the_named_session_or_to_main(agent: Agent, memory: ToolCalls) -> None:
    for session, holder in ((None, "main"), ("trip", "trip")):
        saved = memory.save("Tea", session=session)
        assert saved.data["session"] == holder
        assert agent.get(saved.data["id"]).session == holder


def test_the_session_of_a_conversation_takes_the_place_of_main(agent: Agent) -> None:
    memory = ToolCalls(agent, None, "chat")
    assert memory.save("Tea").data["session"] == "chat"
    assert memory.history().data["session"] == "chat"


def test_a_derived_memory_links_to_its_sources(agent: Agent, memory: ToolCalls) -> None:
    first = memory.save("Ada lives in Dover").data["id"]
    second = memory.save("Ada lives by the sea", derived_from=[first]).data["id"]
    assert [entry.id for entry in agent.sources(second)] == [first]


def test_a_search_says_that_only_words_were_compared(memory: ToolCalls) -> None:
    memory.save("Use pnpm")
    found = memory.search("pnpm")
    assert found.data["lexical_only"] is True
    assert found.text.endswith("try other words if something is missing.\n")


def test_a_search_without_an_own_bound_marks_what_is_weak(memory: ToolCalls) -> None:
    memory.save("Use pnpm as the package manager")
    assert [hit.get("weak") for hit in memory.search("What about tulips?").data["hits"]] in ([], [True])
    assert "note" not in memory.search("package manager").data


def test_a_search_keeps_to_what_is_trusted(agent: Agent, memory: ToolCalls) -> None:
    agent.on_behalf("tool").add("The ferry leaves at noon")
    assert len(memory.search("ferry").data["hits"]) == 1
    assert memory.search("ferry", trust="model").data["hits"] == []
    assert memory.search("ferry", trust="model", session="main").data["hits"] == []


def test_where_nothing_is_found_the_newest_trusted_memory_is_shown(agent: Agent, memory: ToolCalls) -> None:
    agent.add("Use pnpm", id="ours")
    for _ in range(30):
        agent.on_behalf("tool").add("The ferry leaves at noon")
    for session in (None, "main"):
        found = memory.search("tulips", trust="model", session=session).data["hits"]
        assert [hit["id"] for hit in found] == ["ours"]


def test_a_memory_is_read_whole_with_its_payload(agent: Agent, memory: ToolCalls) -> None:
    agent.session("main").add("note", {"n": [1]}, text="Tea", id="t", tags=["x"])
    document = memory.get("t").data
    assert (document["data"], document["tags"], document["text"]) == ({"n": [1]}, ["x"], "Tea")
    assert memory.get("t").text.startswith(AS_DATA)


def test_a_payload_that_is_too_long_for_a_model_is_left_out(agent: Agent, memory: ToolCalls) -> None:
    agent.session("main").add("note", {"long": "x" * 200_000}, text="Tea", id="t")
    document = memory.get("t").data
    assert ("data" in document, document["text"]) == (False, "Tea")


def test_forgetting_hides_and_erasing_erases(agent: Agent, memory: ToolCalls, tmp_path: Path) -> None:
    for name in ("hidden", "erased"):
        agent.add(f"the {name} one", id=name)
    assert memory.forget_or_purge("hidden").data == {"id": "hidden", "purged": False}
    assert memory.forget_or_purge("erased", purge=True).text == "erased erased"
    raw = b"".join(path.read_bytes() for path in (tmp_path / "home").rglob("*.ndjson"))
    assert (b"the hidden one" in raw, b"the erased one" in raw) == (True, False)


@pytest.mark.parametrize("purge", [False, True])
def test_an_unknown_id_says_where_ids_come_from(memory: ToolCalls, *, purge: bool) -> None:
    with pytest.raises(EntryNotFoundError, match="memory_search"):
        memory.forget_or_purge("none", purge=purge)


def test_a_history_that_fits_is_whole(agent: Agent, memory: ToolCalls) -> None:
    agent.session("main").add("note", text="x" * 20_000)
    assert "[cut" not in memory.history().text


def test_each_text_of_a_longer_history_is_cut_to_its_share(agent: Agent, memory: ToolCalls) -> None:
    for name in "ab":
        agent.session("main").add("note", text=name * 15_000)
    texts = [entry["text"] for entry in memory.history().data["entries"]]
    assert all(10_000 <= len(text) < 11_000 for text in texts)


def test_of_very_many_texts_each_shows_its_beginning(agent: Agent, memory: ToolCalls) -> None:
    agent.session("main").add_many([{"type": "note", "text": "word " * 100} for _ in range(150)])
    texts = [entry["text"] for entry in memory.history(limit=150).data["entries"]]
    assert len(texts) == 150
    assert all(len(text) >= 200 for text in texts)


def test_a_session_without_entries_says_so(memory: ToolCalls) -> None:
    assert memory.history("none").text == "session 'none' has no entries"


@pytest.mark.parametrize("action", ["read", "write", "append", "delete"])
def test_a_call_for_a_file_names_what_is_missing(memory: ToolCalls, action: str) -> None:
    with pytest.raises(ValueError, match=f"path is missing; {action} needs the path of a file"):
        memory.files(action)


@pytest.mark.parametrize("action", ["write", "append"])
def test_a_call_that_writes_a_file_needs_its_content(memory: ToolCalls, action: str) -> None:
    with pytest.raises(ValueError, match=f"content is missing; {action} needs the text to {action}"):
        memory.files(action, "a.md")


def test_an_empty_content_is_a_content(agent: Agent, memory: ToolCalls) -> None:
    memory.files("write", "a.md", "")
    assert agent.files.read("a.md") == ""


def test_appended_text_is_counted_in_bytes(agent: Agent, memory: ToolCalls) -> None:
    memory.files("write", "a.md", "one")
    assert memory.files("append", "a.md", "é").data == {"path": "a.md", "bytes": 2}
    assert agent.files.read("a.md") == "oneé"


def test_a_file_that_is_not_there_names_the_tool_that_lists(memory: ToolCalls) -> None:
    with pytest.raises(MemoryFileNotFoundError, match="memory_files with action list says which there are"):
        memory.files("delete", "a.md")


def test_what_another_agent_shares_is_found_and_read_with_its_name(home: Home, agent: Agent) -> None:
    home.agent("team").add("The office is in Bern", id="office")
    memory = ToolCalls(agent, None, shared=["team"])
    assert memory.sharing() == []
    home.agent("team").grant("a", "read")
    assert memory.sharing() == ["team"]
    hit: dict[str, Any] = memory.search("office").data["hits"][0]
    assert (hit["id"], hit["agent"]) == ("office", "team")
    assert memory.get("office").data["agent"] == "team"


def test_a_grant_that_ends_takes_the_entries_away_at_once(home: Home, agent: Agent) -> None:
    home.agent("team").add("The office is in Bern", id="office")
    home.agent("team").grant("a", "read")
    memory = ToolCalls(agent, None, shared=["team"])
    memory.get("office")
    home.agent("team").revoke("a")
    assert memory.search("office").data["hits"] == []
    with pytest.raises(EntryNotFoundError):
        memory.get("office")


def test_a_context_names_the_entry_of_each_reference(agent: Agent, memory: ToolCalls) -> None:
    agent.add("Use pnpm", id="pnpm", pinned=True)
    data = memory.context().data
    assert [source["id"] for source in data["sources"]] == ["pnpm"]
    assert "Use pnpm" in data["text"]


def test_an_empty_context_says_why(memory: ToolCalls) -> None:
    found = memory.context("tea")
    assert found.data["text"] == ""
    assert found.text
