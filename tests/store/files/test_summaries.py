"""Titles, counts and previews of sessions, which lists show."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Home, MemoryAdapter, SessionMemory
from keepstone.store.files.agent_logs import AgentLogs


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as opened:
        yield opened


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("default")


def test_a_title_is_the_first_message_of_a_user(agent: Agent) -> None:
    session = agent.session("s")
    session.add("message", {"role": "system", "content": "Be brief"})
    session.add("message", {"role": "user", "content": "Which\n database?"})
    session.add("message", {"role": "assistant", "content": "PostgreSQL"})
    (found,) = agent.session_summaries()
    assert (found.title, found.named, found.entries, found.preview) == (
        "Which database?",
        False,
        3,
        "assistant: PostgreSQL",
    )


def test_a_session_that_a_person_began_in_a_chat_is_one(agent: Agent) -> None:
    typed = {"role": "user", "content": "Which database?"}
    agent.on_behalf("user", "page").session("page").add("message", typed)
    agent.on_behalf("user", "terminal").session("terminal").add("message", typed)
    agent.on_behalf("model", "mcp/agent").session("model").add("message", typed)
    agent.session("program").add("message", typed)
    assert {one.id for one in agent.session_summaries() if one.is_chat} == {"page", "terminal"}
    assert not any(one.is_chat for one in agent.session_summaries(texts=False))


def test_a_given_title_is_a_line_but_no_entry(agent: Agent, home: Home) -> None:
    session = agent.new_session("s", title="Sign-in")
    session.add("message", {"role": "user", "content": "Passkeys?"}, id="a")
    session.set_title("Sign-in and passkeys")
    (found,) = agent.session_summaries()
    assert (found.title, found.named, found.entries) == ("Sign-in and passkeys", True, 1)
    assert [entry.id for entry in session.entries()] == [entry.id for entry in agent.entries()] == ["a"]
    assert [hit.entry.id for hit in agent.recall("sign-in passkeys")] == ["a"]
    assert "Sign-in" not in agent.context("sign-in").text
    assert [line["summary"] for line in session.export() if "summary" in line] == [
        "Sign-in",
        "Sign-in and passkeys",
    ]
    assert [finding for finding in home.doctor() if finding.level != "ok"] == []


def test_no_adapter_returns_a_title(tmp_path: Path) -> None:
    adapter = MemoryAdapter(tmp_path / "adapter")
    session = adapter.new_session()
    adapter.save({"id": "e", "type": "message", "text": "hi"}, session)
    with keepstone.open(tmp_path / "adapter", embedder="none") as home:
        home.agent("default").session(session).set_title("A title")
    assert [event["id"] for event in adapter.load(session)] == ["e"]
    with SessionMemory("s", tmp_path / "bmad") as memory:
        memory.add("decision", {"decision": "Use OAuth"})
        with keepstone.open(tmp_path / "bmad", layout="bmad", embedder="none") as home:
            home.agent("default").session("s").set_title("A title")
        assert [found["type"] for found in memory.query()] == ["decision"]
        assert len(memory.get_context()) == 1


def test_a_title_survives_compaction_rename_copy_and_a_lost_index(agent: Agent, tmp_path: Path) -> None:
    session = agent.session("s")
    entry = session.add("fact", text="one")
    session.set_title("Old title")
    session.set_title("Title")
    session.update(entry.id, text="two")
    session.compact()
    session.copy("copied")
    session.rename("renamed")
    home = keepstone.open(tmp_path / "home", embedder="none")
    home.rebuild()
    with home:
        found = {one.id: one.title for one in home.agent("default").session_summaries()}
    assert found == {"copied": "Title", "renamed": "Title"}
    log = tmp_path / "home/agents/default/memory/sessions/renamed.ndjson"
    assert [json.loads(line).get("summary") for line in log.read_text().splitlines()] == [None, "Title"]


def test_a_title_that_is_taken_away_purged_or_cleared_is_gone(agent: Agent, tmp_path: Path) -> None:
    session = agent.session("s")
    session.add("fact", text="one")
    for remove in (
        lambda: session.set_title(None),
        lambda: agent.purge_matching("Secret title"),
        session.clear,
    ):
        session.set_title("Secret title")
        assert agent.session_summaries(["s"])[0].title == "Secret title"
        remove()
        assert agent.session_summaries(["s"])[0].title is None
    agent.session("s").clear()
    assert not any(b"Secret title" in path.read_bytes() for path in tmp_path.rglob("*.ndjson"))


def test_a_summary_is_dated_by_its_newest_entry(agent: Agent) -> None:
    agent.session("old").add("fact", text="one", ts="2024-01-01T00:00:00Z")
    agent.session("new").add("fact", text="two", ts="2025-01-01T00:00:00Z")
    agent.session("old").compact()
    assert [(one.id, f"{one.changed:%Y}") for one in agent.session_summaries()] == [
        ("new", "2025"),
        ("old", "2024"),
    ]


@pytest.mark.parametrize("title", ["", "  ", 3])
def test_a_title_that_is_no_text_is_refused(agent: Agent, title: object) -> None:
    session = agent.new_session("s")
    with pytest.raises((TypeError, ValueError), match="title"):
        session.set_title(title)  # type: ignore[arg-type]
    with pytest.raises(LookupError):
        agent.session("missing").set_title("x")
    assert list(session.export()) == []
    assert agent.session("missing").info() is None


def test_summaries_of_some_sessions_look_at_no_others(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        agent.session(name).add("note", {"content": name})
    agent.session_summaries()

    def listed(_: AgentLogs) -> None:
        raise AssertionError("all sessions were listed")

    monkeypatch.setattr(AgentLogs, "files", listed)
    assert [one.id for one in agent.session_summaries(["a", "gone", "x" * 400, ""])] == ["a"]
