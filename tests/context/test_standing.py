from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Entry, Home, Session
from keepstone.context.standing import MOST
from keepstone.index.database import Database
from keepstone.index.table_schema import IS_STANDING
from keepstone.store.files.file_store import FileStore
from keepstone.testing import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def home(tmp_path: Path, clock: ManualClock) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", clock=clock) as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def standing(agent: Agent, query: str | None = None) -> list[str]:
    parts = {part.kind: part for part in agent.context(query).parts}
    return [entry.id for entry in parts["standing"].entries] if "standing" in parts else []


def test_preferences_and_decisions_of_all_sessions_are_listed_by_creation(
    agent: Agent, clock: ManualClock
) -> None:
    for session, kind in [("one", "decision"), ("two", "preference"), ("one", "preference"), ("two", "note")]:
        clock.advance(60)
        agent.session(session).add(kind, text=f"{kind} of {session}", id=f"{kind}-{session}")
    assert standing(agent) == ["decision-one", "preference-two", "preference-one"]


def test_a_decision_added_later_is_there_at_once(agent: Agent) -> None:
    agent.session("s").add("decision", text="We take walnut", id="first")
    assert standing(agent) == ["first"]
    agent.session("s").add("decision", text="We take oak", id="second")
    assert standing(agent) == ["first", "second"]


def test_a_decision_that_another_process_adds_is_there_at_once(home: Home, agent: Agent) -> None:
    assert standing(agent) == []
    with keepstone.open(home.root, durability="os") as other:
        other.agent("a").session("s").add("decision", text="We take walnut", id="foreign")
    assert standing(agent) == ["foreign"]


@pytest.mark.parametrize("forget", [Session.delete, Session.purge])
def test_a_forgotten_decision_is_not_listed(agent: Agent, forget: Callable[[Session, str], None]) -> None:
    session = agent.session("s")
    session.add("decision", text="We take walnut", id="it")
    assert standing(agent) == ["it"]
    forget(session, "it")
    assert standing(agent) == []


def test_a_decision_that_is_edited_keeps_its_place(agent: Agent) -> None:
    session = agent.session("s")
    session.add("decision", text="We take walnut", id="first")
    session.add("decision", text="We take oil", id="second")
    session.update("first", text="We take oak")
    [part] = [part for part in agent.context().parts if part.kind == "standing"]
    assert [entry.text for entry in part.entries] == ["We take oak", "We take oil"]


def test_a_pinned_decision_is_listed_among_the_pinned_only(agent: Agent) -> None:
    agent.session("s").add("decision", text="We take walnut", id="it", pinned=True)
    assert [part.kind for part in agent.context("walnut").parts] == ["pinned"]


@pytest.mark.parametrize("key", ["valid_to", "expires"])
def test_a_decision_that_has_ended_is_not_listed(agent: Agent, clock: ManualClock, key: str) -> None:
    agent.session("s").add("decision", {"text": "We take walnut"}, **{key: clock()})  # type: ignore[arg-type]
    clock.advance(1)
    assert standing(agent) == []


def test_only_the_newest_are_looked_at(agent: Agent) -> None:
    agent.session("s").add_many({"type": "decision", "text": f"{n}", "id": f"{n}"} for n in range(MOST + 9))
    parts = agent.context(budget=100_000).parts
    assert next(part.entries[0].id for part in parts if part.kind == "standing") == "9"


def test_preferences_keep_to_their_share_and_the_newest_stay(agent: Agent) -> None:
    for n in range(40):
        agent.session("s").add("preference", text=f"preference number {n}", id=f"{n}")
    context = agent.context(budget=1000)
    [part] = [part for part in context.parts if part.kind == "standing"]
    assert part.tokens <= 1000 // 5
    assert part.entries[-1].id == "39"
    assert any(left.kind == "standing" and left.source == "s/0" for left in context.left_out)


def test_those_that_ended_take_no_place_of_others(agent: Agent, clock: ManualClock) -> None:
    session = agent.session("s")
    session.add("decision", text="We take walnut", id="old")
    ended = {"valid_to": clock()}
    session.add_many({"type": "decision", "text": f"{n}", **ended} for n in range(3 * MOST))
    clock.advance(1)
    assert standing(agent) == ["old"]


def test_decisions_of_one_moment_are_listed_by_session_and_place(agent: Agent) -> None:
    for session in ("two", "one"):
        for number in (1, 2):
            agent.session(session).add("decision", text=f"{session} {number}", id=f"{session}-{number}")
    assert standing(agent) == ["one-1", "one-2", "two-1", "two-2"]


def test_standing_decisions_come_from_the_index_without_a_session(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(10):
        agent.session(f"s{number}").add("decision", text=f"decision {number}")
    asked: list[str] = []
    entries = FileStore.entries

    def counted(store: FileStore, agent: str, session: str, *rest: Any) -> list[Entry]:
        asked.append(session)
        return entries(store, agent, session, *rest)

    monkeypatch.setattr(FileStore, "entries", counted)
    assert len(standing(agent)) == 10
    assert len(asked) == 1  # The newest session's turns, for the end of the context.


def test_an_index_of_their_own_finds_standing_decisions() -> None:
    rows = f"SELECT eid FROM entry e INDEXED BY entry_standing WHERE e.{IS_STANDING}"  # noqa: S608
    sql = f"EXPLAIN QUERY PLAN {rows} ORDER BY e.ts DESC"
    plan = Database(None).rows(sql)
    assert "entry_standing" in str(plan)
