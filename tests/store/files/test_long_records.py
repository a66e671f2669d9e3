"""Records of a long log are read when they are asked for."""

import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent
from keepstone.store.files import file_store, lookup, writing

LINES = 10_000
SHARE = 0.8
"""Of the bytes of a log, what may be held: 1,000 records at a time, as objects."""


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """An agent with a session whose log counts as long."""
    for module in (file_store, lookup, writing):
        monkeypatch.setattr(module, "WHOLE", 0)
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        session = home.agent("a").session("s")
        for begin in range(0, LINES, 100):  # A batch is held whole.
            session.add_many(
                {
                    "id": f"e{n}",
                    "type": "note",
                    "data": {"content": f"walnut {n} " + "word " * 100, "number": n},
                }
                for n in range(begin, begin + 100)
            )
        session.update("e7", priority=0.5)
        session.update("e8", data_merge={"number": -8})
        session.delete("e9")
        yield home.agent("a")


def peak_of(call: Callable[[], object]) -> int:
    """Return the most memory that a call takes at a time, once it was made before."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def size_of(agent: Agent) -> int:
    [info] = agent.sessions()
    return info.size


def test_records_of_a_long_log_are_those_of_its_entries(agent: Agent) -> None:
    session = agent.session("s")
    records = session.records()
    assert list(records) == [entry.as_dict() for entry in session.entries()]
    assert len(records) == LINES - 1
    assert records[-1]["id"] == f"e{LINES - 1}"
    assert [record["id"] for record in records[7:10]] == ["e7", "e8", "e10"]


def test_records_hold_less_than_their_log(agent: Agent) -> None:
    session = agent.session("s")
    assert peak_of(lambda: deque(session.records(), maxlen=0)) < size_of(agent) * SHARE


def test_count_by_payload_holds_less_than_the_log(agent: Agent) -> None:
    assert agent.count(where={"number": {"gte": 0}}) == LINES - 2
    agent.count(where={"number": {"in": [5]}})
    assert peak_of(lambda: agent.count(where={"number": {"not_in": [5]}})) < size_of(agent) * SHARE


def test_counts_of_a_log_that_ends_in_the_middle_of_a_line_hold_less_than_it(
    agent: Agent, tmp_path: Path
) -> None:
    with next(tmp_path.rglob("s.ndjson")).open("a") as log:
        log.write('{"id":')
    assert agent.entry_counts() == {"s": LINES - 1}
    assert peak_of(agent.entry_counts) < size_of(agent) * SHARE


def test_access_counts_of_a_long_log_are_added_to_named_entries_only(agent: Agent) -> None:
    session = agent.session("s")
    session.count({"e3": 2, "gone": 1})
    session.count({"e3": 1})
    assert agent.get("e3").access == 3
    assert peak_of(lambda: session.count({"e3": 1})) < size_of(agent) * SHARE


def test_records_follow_what_changes_while_they_are_read(agent: Agent) -> None:
    session = agent.session("s")
    records = iter(session.records())
    first = next(records)
    session.purge("e2000")
    session.compact()
    session.update("e2001", text="pecan")
    found = {record["id"]: record for record in [first, *records]}
    assert len(found) == LINES - 2
    assert "e2000" not in found
    assert found["e2001"]["text"] == "pecan"


def test_records_are_read_on_once_the_index_is_rebuilt(agent: Agent, tmp_path: Path) -> None:
    records = iter(agent.session("s").records())
    first = next(records)
    with keepstone.open(tmp_path, embedder="none") as home:
        home.rebuild()
    ids = [record["id"] for record in [first, *records]]
    assert ids == [f"e{n}" for n in range(LINES) if n != 9]
