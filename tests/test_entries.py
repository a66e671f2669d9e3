"""Lists, counts and removal of an agent's entries by filters."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Agent, Entry
from keepstone.testing import ManualClock

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path, embedder="none", durability="os", clock=ManualClock()) as home:
        yield home.agent("a")


def fill(agent: Agent, count: int = 30) -> list[str]:
    """Entries of two sessions, in the order of their times."""
    for name in ("s1", "s2"):
        numbers = [n for n in range(count) if n % 2 == (name == "s2")]
        agent.session(name).add_many(
            {
                "id": f"{n:03}",
                "type": "fact" if n % 3 else "note",
                "ts": START + timedelta(minutes=n),
                "data": {"n": n, "user": {"city": "Zürich" if n % 5 == 0 else "Bern"}, "flag": n % 2 == 0},
                "tags": [f"t{n % 4}", "all"],
            }
            for n in numbers
        )
    return [f"{n:03}" for n in range(count)]


def ids(entries: list[Entry]) -> list[str]:
    return [entry.id for entry in entries]


def test_entries_of_all_sessions_come_by_time(agent: Agent) -> None:
    expected = fill(agent)
    assert ids(agent.entries()) == expected
    assert ids(agent.entries(newest_first=True)) == expected[::-1]
    assert ids(list(agent.iter_entries())) == expected
    assert agent.count() == 30
    assert agent.entries().next is None


def test_an_entry_written_alone_has_no_batch_mark(agent: Agent, tmp_path: Path) -> None:
    agent.session("main").add_many([{"type": "note", "text": "walnut"}])
    (log,) = tmp_path.rglob("main.ndjson")
    assert b"batch" not in log.read_bytes()


def test_ties_come_by_session_and_place(agent: Agent) -> None:
    for name in ("b", "a"):
        agent.session(name).add_many(
            {"type": "note", "id": f"{name}{n}", "text": "x", "ts": START} for n in (3, 1, 2)
        )
    expected = ["a3", "a1", "a2", "b3", "b1", "b2"]
    assert ids(agent.entries()) == expected
    assert ids(agent.entries(newest_first=True)) == expected[::-1]


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"types": ["note"]}, lambda n: n % 3 == 0),
        ({"types": []}, lambda _: False),
        ({"tags": ["t1", "all"]}, lambda n: n % 4 == 1),
        ({"where": {"user.city": "Zürich"}}, lambda n: n % 5 == 0),
        ({"where": {"n": {"gte": 3, "lt": 7}}}, lambda n: 3 <= n < 7),
        ({"where": {"n": {"in": [1, 2.0, "3"]}}}, lambda n: n in (1, 2)),
        ({"where": {"n": {"not_in": [1, 2]}}}, lambda n: n not in (1, 2)),
        ({"where": {"flag": True}}, lambda n: n % 2 == 0),
        ({"where": {"flag": 1}}, lambda _: False),
        ({"where": {"flag": {"ne": True}, "n": {"gt": 20}}}, lambda n: n % 2 and n > 20),
        ({"where": {"none": {"exists": False}}, "types": ["note"]}, lambda n: n % 3 == 0),
        ({"where": {"user": {"exists": True}}}, lambda _: True),
        ({"where": {"user.city": {"gt": "C"}}}, lambda n: n % 5 == 0),
        ({"where": {}}, lambda _: True),
        (
            {"since": START + timedelta(minutes=3), "until": START + timedelta(minutes=5)},
            lambda n: n in (3, 4),
        ),
        ({"ids": ["004", "007", "none"]}, lambda n: n in (4, 7)),
    ],
)
def test_filters_choose_entries(agent: Agent, filters: dict[str, Any], numbers: Any) -> None:
    expected = [entry_id for entry_id in fill(agent) if numbers(int(entry_id))]
    for _ in range(2):  # The first use of a path indexes it.
        assert ids(agent.entries(**filters)) == expected
        assert ids(list(agent.iter_entries(newest_first=True, **filters))) == expected[::-1]
        assert agent.count(**filters) == len(expected)


def test_an_indexed_value_follows_changes(agent: Agent) -> None:
    fill(agent)
    assert agent.count(where={"n": 4}) == 1
    agent.update("004", data_merge={"n": 99})
    agent.session("s1").add("note", {"n": 99}, id="new")
    agent.delete("006")
    agent.purge("008")
    assert [agent.count(where={"n": n}) for n in (4, 6, 8, 99)] == [0, 0, 0, 2]
    agent.session("s1").compact()
    assert agent.count(where={"n": 99}) == 2


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("spread", [0, 1])
def test_pages_hold_while_entries_come_and_go(agent: Agent, newest_first: bool, spread: int) -> None:  # noqa: FBT001
    everything = [f"{n:03}" for n in range(30)]
    for name, some in (("s1", everything[:15]), ("s2", everything[15:])):
        agent.session(name).add_many(
            {"type": "note", "id": one, "text": "x", "ts": START + timedelta(minutes=spread * int(one))}
            for one in some
        )
    seen, cursor = [], None
    while True:
        page = agent.entries(limit=4, cursor=cursor, newest_first=newest_first)
        seen += ids(page)
        if page.next is None:
            break
        cursor = page.next
        agent.purge(page[0].id)
        agent.purge(page[-1].id)
        agent.session("s1").add("note", text="new", id=f"new{len(seen)}", ts=START - timedelta(days=1))
    old = [one for one in seen if not one.startswith("new")]
    assert old == (everything[::-1] if newest_first else everything)


def test_a_cursor_holds_after_reopening_with_a_new_index(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        expected = fill(home.agent("a"))
        page = home.agent("a").entries(limit=7, where={"n": {"gte": 2}})
    shutil.rmtree(tmp_path / ".index")
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        rest = home.agent("a").entries(where={"n": {"gte": 2}}, cursor=page.next)
        assert ids(page) + ids(rest) == expected[2:]


def test_only_entries_that_hold_are_listed_when_asked(agent: Agent) -> None:
    session = agent.session("s")
    session.add("note", text="old", id="old", expires="2020-01-01")
    session.add("note", text="now", id="now")
    assert ids(agent.entries()) == ["now"]
    assert (agent.count(include_superseded=True), agent.count()) == (2, 1)


@pytest.mark.parametrize("remove", ["delete_where", "purge_where"])
def test_removal_by_filters_takes_what_they_choose(agent: Agent, remove: str) -> None:
    fill(agent)
    call = getattr(agent, remove)
    assert (call(types=["note"], dry_run=True), agent.count()) == (10, 30)
    assert (call(types=["note"]), agent.count(), agent.count(types=["note"])) == (10, 20, 0)
    assert call(types=["note"]) == 0


@pytest.mark.parametrize("filters", [{}, {"where": {}}, {"tags": []}, {"include_superseded": True}])
def test_removal_without_a_filter_is_refused(agent: Agent, filters: dict[str, Any]) -> None:
    fill(agent, 3)
    for call in (agent.delete_where, agent.purge_where):
        with pytest.raises(ValueError, match="needs a filter"):
            call(**filters)
    assert agent.count() == 3


def test_deleting_many_entries_of_a_session_is_one_write(agent: Agent, tmp_path: Path) -> None:
    fill(agent)
    agent.delete_where(types=["note"])
    last = (tmp_path / "agents/a/memory/sessions/s1.ndjson").read_text().splitlines()[-5:]
    assert all('"batch":[' in line and '"deleted":true' in line for line in last)
