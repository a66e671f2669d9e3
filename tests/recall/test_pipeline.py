"""What recall returns, in which order, and what it says about it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Entry, Hits
from keepstone.testing import ManualClock


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path, durability="os", clock=ManualClock()) as home:
        yield home.agent("a")


def remember(agent: Agent, *contents: str, session: str = "s") -> None:
    items = ({"type": "event", "id": f"{session}{n}", "content": text} for n, text in enumerate(contents))
    agent.session(session).add_many(items)


def ids(hits: Hits) -> list[str]:
    return [hit.entry.id for hit in hits]


def test_the_entry_that_fits_best_comes_first(agent: Agent) -> None:
    remember(agent, "nothing", "the walnut tree in the garden", "nothing", "nothing", "walnut walnut walnut")
    hits = agent.recall("walnut tree")
    assert hits[0].entry.id == "s1"
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_hit_says_which_words_found_it_and_at_what_rank(agent: Agent) -> None:
    remember(agent, "we deployed on Friday", "nothing", "nothing", "nothing", "the deployment failed")
    best = agent.recall("why did deployments fail?")[0]
    assert best.entry.id == "s4"
    assert best.why.ranks["words"] == 1
    assert set(best.why.words) == {"deployments", "fail"}
    assert "deployments" in str(best.why)
    assert sum(best.why.parts.values()) == pytest.approx(best.score)


def test_the_answer_beside_the_question_is_found_and_says_why(agent: Agent) -> None:
    remember(agent, "Which database do we take?", "PostgreSQL, because of the backups.", "Fine.", "Bye.")
    hits = agent.recall("database")
    assert ids(hits)[:2] == ["s0", "s1"]
    assert hits[1].why.words == ()
    assert "neighbours" in str(hits[1].why)


def test_a_limit_bounds_the_hits_and_zero_gives_none(agent: Agent) -> None:
    remember(agent, *["walnut"] * 30)
    assert [len(agent.recall("walnut", limit=limit)) for limit in (0, 1, 7, 500)] == [0, 1, 7, 30]
    assert len(agent.recall("walnut")) == 10


@pytest.mark.parametrize("query", ["", " ", "?!", "\0", "nobodysaidthis"])
def test_a_query_that_finds_nothing_gives_no_hits_and_no_error(agent: Agent, query: str) -> None:
    remember(agent, "walnut")
    hits = agent.recall(query)
    assert hits == []
    assert (hits.lexical_only, hits.pending, hits.stale) == (True, 0, False)
    assert hits.took_ms >= 0


def test_a_query_of_a_megabyte_is_answered(agent: Agent) -> None:
    remember(agent, "walnut")
    assert ids(agent.recall("walnut " + "filler " * 150_000)) == ["s0"]


@pytest.mark.parametrize("scope", [{"sessions": []}, {"types": []}, {"sessions": ["none"]}])
def test_a_scope_that_allows_nothing_finds_nothing(agent: Agent, scope: dict[str, list[str]]) -> None:
    remember(agent, "walnut", "beside it")
    assert agent.recall("walnut", sessions=scope.get("sessions"), types=scope.get("types")) == []


def test_a_time_may_be_a_date_or_an_instant(agent: Agent) -> None:
    agent.session("s").add("note", {"content": "walnut"}, id="old", ts="2026-01-01T23:00:00-02:00")
    agent.session("t").add("note", {"content": "walnut"}, id="new", ts="2026-01-03T00:00:00Z")
    assert ids(agent.recall("walnut", until="2026-01-03")) == ["old"]
    assert ids(agent.recall("walnut", since="2026-01-02", until="2026-01-03T00:00:00Z")) == ["old"]
    assert ids(agent.recall("walnut", since="2026-01-02T01:00:00.000001Z")) == ["new"]


def test_neighbours_outside_the_scope_are_not_returned(agent: Agent) -> None:
    session = agent.session("s")
    for n, kind in enumerate(["note", "fact", "note"]):
        session.add(kind, {"content": "walnut" if kind == "fact" else "beside"}, id=str(n))
    assert ids(agent.recall("walnut", types=["fact"])) == ["1"]
    assert ids(agent.recall("walnut", types=["note"])) == []


def test_what_where_asks_for_is_found_among_the_first_hundreds(agent: Agent) -> None:
    remember(agent, *["walnut walnut"] * 300)
    agent.session("s").add("note", {"content": "walnut and much more", "topic": "rare"}, id="it")
    assert ids(agent.recall("walnut", where={"topic": "rare"})) == ["it"]


def test_what_where_asks_for_is_found_however_many_fit_better(agent: Agent) -> None:
    remember(agent, *["walnut walnut"] * 3000)
    agent.session("t").add("note", {"content": "walnut and much more", "topic": "rare"}, id="it")
    assert ids(agent.recall("walnut", where={"topic": "rare"})) == ["it"]


@pytest.mark.parametrize("way", ["entries", "newest", "get", "recall", "add"])
def test_changing_what_was_returned_changes_no_memory(agent: Agent, way: str) -> None:
    session = agent.session("s")
    ways: dict[str, Callable[[], Entry]] = {
        "entries": lambda: session.entries()[0],
        "newest": lambda: session.entries(1)[0],
        "get": lambda: agent.get("it"),
        "recall": lambda: agent.recall("walnut")[0].entry,
        "add": lambda: session.add("note", {"content": "walnut", "list": [1]}, id="it"),
    }
    ways["add"]().data["list"].append(2)
    given = ways[way]()
    given.data["list"].append(2)
    given.as_dict()["type"] = "changed"
    assert ways[way]().as_dict() == agent.get("it").as_dict()
    assert ways[way]().data == {"content": "walnut", "list": [1]}


def test_an_entry_that_another_program_moved_is_found_where_it_is_now(tmp_path: Path) -> None:
    with keepstone.open(tmp_path) as home:
        session = home.agent("a").session("s")
        for name in ("first", "second"):
            session.add("note", text=f"{name} walnut", id=name)
        assert len(home.agent("a").recall("walnut")) == 2

        [log] = tmp_path.rglob("s.ndjson")
        log.write_bytes(b"\n" * 7 + log.read_bytes())

        assert {hit.entry.id for hit in home.agent("a").recall("walnut")} == {"first", "second"}


def test_a_hit_of_a_long_entry_has_its_best_passage(agent: Agent) -> None:
    long = "We met at noon. " * 40 + "The door is made of walnut. " + "Then we had tea. " * 40
    remember(agent, long, "walnut oil")
    passages = {hit.entry.id: hit.passage for hit in agent.recall("walnut doors")}
    assert passages["s1"] == "walnut oil"
    assert "The door is made of walnut." in passages["s0"]
    assert len(passages["s0"]) <= 400
