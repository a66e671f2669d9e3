"""Long logs of other programs are taken in while readers and writers go on."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index, UnavailableError
from keepstone.log.log_file import Log
from keepstone.store import agent_logs, filtering, intake, lookup
from keepstone.store.agent_logs import AgentLogs
from keepstone.store.intake import Arrears, take_in_some

LINES = 2_500


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        for session in ("other", "second"):
            home.agent("a").session(session).add("note", text="a walnut", id=f"in-{session}")
        home.agent("a").recall("walnut")
        yield home


@pytest.fixture
def agent(home: Home, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent with a session that another program wrote, too long to be taken in at once."""
    write(home, 0, LINES)
    monkeypatch.setattr(intake, "AT_ONCE", 8192)
    for module in (agent_logs, filtering, lookup):
        monkeypatch.setattr(module, "FRESH", 0.0)
    return home.agent("a")


def write(home: Home, begin: int, end: int) -> None:
    with (home.root / "agents/a/memory/sessions/long.ndjson").open("a") as log:
        for n in range(begin, end):
            line = {"id": f"e{n}", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": f"pecan {n}"}
            log.write(json.dumps(line) + "\n")


@pytest.fixture
def held(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:  # noqa: ARG001  Closed later.
    """Stop whoever takes in a log in the middle of a step, until the event is set."""
    go_on, real = threading.Event(), Index.step

    def step(index: Index, session: str, log: Log) -> int | None:
        if session == "long":
            go_on.wait(60)
        return real(index, session, log)

    monkeypatch.setattr(Index, "step", step)
    yield go_on
    go_on.set()


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (lambda agent: [hit.entry.id for hit in agent.recall("walnut")], ["in-other", "in-second"]),
        (lambda agent: [one.id for one in agent.session("other").entries()], ["in-other"]),
        (lambda agent: [one.id for one in agent.entries()], ["in-other", "in-second"]),
        (lambda agent: agent.count(where={"no": {"exists": False}}), 2),
        (lambda agent: agent.entry_counts(), {"other": 1, "second": 1}),
        (
            lambda agent: {one.id: one.entries for one in agent.session_summaries()},
            {"other": 1, "second": 1, "long": 0},
        ),
        (lambda agent: agent.get("in-other").session, "other"),
        (lambda agent: agent.session("other").add("note", text="a pecan").session, "other"),
        (
            lambda agent: (agent.session("other").add("note", text="pecan"), agent.context().sources != [])[
                1
            ],
            True,
        ),
    ],
    ids=["recall", "session", "page", "count", "counts", "summaries", "get", "add", "context"],
)
@pytest.mark.usefixtures("held")
def test_no_call_waits_for_a_long_log(agent: Agent, call: Callable[[Agent], object], answer: object) -> None:
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(call(agent)), daemon=True)
    thread.start()
    thread.join(30)
    assert [sorted(one) if isinstance(one, list) else one for one in found] == [answer]


@pytest.mark.usefixtures("held")
def test_recall_of_everything_says_that_a_long_log_is_missing(agent: Agent) -> None:
    assert agent.recall("walnut").stale
    assert not agent.recall("walnut", sessions=["other"]).stale


def test_sync_takes_a_long_log_in_and_tells_its_progress(home: Home, agent: Agent) -> None:
    told: list[tuple[int, int]] = []
    home.sync(lambda done, total: told.append((done, total)))
    size = os.stat(home.root / "agents/a/memory/sessions/long.ndjson").st_size
    assert len(told) >= 2
    assert told == sorted(told)
    assert told[-1] == (size, size)
    assert told[0] < told[-1]
    hits = agent.recall("pecan 2499", limit=1)
    assert ([hit.entry.id for hit in hits], hits.stale) == (["e2499"], False)


def test_readers_do_not_wait_for_a_sync(home: Home, agent: Agent, held: threading.Event) -> None:
    syncing = threading.Thread(target=home.sync, daemon=True)
    syncing.start()
    reading = threading.Thread(target=agent.recall, args=("walnut",), daemon=True)
    reading.start()
    reading.join(30)
    assert not reading.is_alive()
    held.set()
    syncing.join(60)
    assert not agent.recall("pecan").stale


def test_background_takes_a_long_log_in_after_a_question(agent: Agent) -> None:
    while (hits := agent.recall("pecan 2499", limit=1)).stale:
        threading.Event().wait(0.01)
    assert [hit.entry.id for hit in hits] == ["e2499"]


def test_a_long_log_is_taken_in_by_turns(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home, 0, LINES)
    monkeypatch.setattr(intake, "AT_ONCE", 0)
    monkeypatch.setattr(intake, "_PIECE_SECONDS", 0.0)
    logs = AgentLogs(
        home.root,
        LAYOUTS["default"],
        "a",
        durable=False,
        create=False,
        most_logs=lambda: 9,
        finish=lambda _: None,
        language="en",
    )
    logs.look(0)
    assert [take_in_some(logs) for _ in range(3)] == [True, True, False]
    assert not logs.arrears
    logs.close()


def test_session_that_changes_while_it_is_taken_in_is_left_again() -> None:
    arrears = Arrears()
    arrears.leave({"s": 7})
    first = arrears.first()
    assert first is not None
    arrears.leave({"s": 9})
    arrears.settle(*first)
    assert ("s" in arrears, arrears.total()) == (True, 9)
    again = arrears.first()
    assert again is not None
    arrears.settle(*again)
    assert not arrears


def test_long_log_that_goes_on_growing_is_read_only_where_it_grew(home: Home, agent: Agent) -> None:
    home.sync()
    write(home, LINES, LINES + 3)
    hits = agent.recall(f"pecan {LINES + 2}", limit=1)
    assert (hits.stale, agent.session("long").entries(limit=1)[0].id) == (False, f"e{LINES + 2}")


def test_long_log_that_was_removed_is_forgotten(home: Home, agent: Agent) -> None:
    home.sync()
    (home.root / "agents/a/memory/sessions/long.ndjson").unlink()
    home.sync()
    assert agent.entry_counts() == {"other": 1, "second": 1}
    assert agent.recall("pecan") == []


def test_lists_do_not_read_a_long_log_when_the_index_is_busy(
    home: Home, agent: Agent, held: threading.Event
) -> None:
    agent.recall("walnut")
    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        logs.lag(UnavailableError("busy"))
        assert (logs.stale, logs.is_unsure) == (True, False)
    held.set()
    home.sync()
    assert agent.count() == LINES + 2


def test_a_log_that_another_process_takes_in_is_left_to_it() -> None:
    arrears = Arrears()
    assert not arrears.has_moved("s", 7)
    arrears.note("s", 7)
    assert not arrears.has_moved("s", 7)
    assert arrears.has_moved("s", 9)
    assert not arrears.has_moved("other", 3)
