"""Long logs of other programs are taken in while readers and writers go on."""

import errno
import json
import logging
import math
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

import keepstone
from keepstone import Agent, Home
from keepstone.errors import AccessDeniedError, LockTimeoutError
from keepstone.filesystem.folder_lock import FolderLock
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index, UnavailableError, database, reading
from keepstone.index.turn import Turn
from keepstone.index.vectors import vector_table
from keepstone.log.log_file import Log
from keepstone.store.files import agent_logs, intake
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.intake import Arrears, take_in_some

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
    monkeypatch.setattr(agent_logs, "FRESH", 0.0)
    return home.agent("a")


def write(home: Home, begin: int, end: int) -> None:
    with (home.root / "agents/a/memory/sessions/long.ndjson").open("a") as log:
        for n in range(begin, end):
            line = {"id": f"e{n}", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": f"pecan {n}"}
            log.write(json.dumps(line) + "\n")


@pytest.fixture
def held(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:  # noqa: ARG001  Closed later.
    """Stop the thread that takes in a log in the middle of a step, until the event is set."""
    go_on, real = threading.Event(), Index.step

    def step(index: Index, session: str, log: Log) -> int | None:
        if session == "long":
            go_on.wait(60)
        return real(index, session, log)

    monkeypatch.setattr(Index, "step", step)
    yield go_on
    go_on.set()


@pytest.fixture
def held_within(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:  # noqa: ARG001
    """Stop the background within a transaction of its intake, until the event is set."""
    go_on, real = threading.Event(), vector_table.give_back

    def give_back(*arguments: Any) -> None:
        if threading.current_thread().name == "keepstone":
            within.set()
            go_on.wait(60)
        real(*arguments)

    within = threading.Event()
    monkeypatch.setattr(vector_table, "give_back", give_back)
    yield within
    go_on.set()


def test_recall_does_not_wait_for_a_transaction_of_the_intake(
    agent: Agent, held_within: threading.Event
) -> None:
    agent.recall("walnut")
    assert held_within.wait(60)
    found: list[set[str]] = []

    def ask() -> None:
        found.append({hit.entry.id for hit in agent.recall("walnut")})
        found.append({hit.entry.id for hit in agent.recall("walnut", sessions=["other"])})

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(30)
    assert found == [{"in-other", "in-second"}, {"in-other"}]


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


def test_sync_takes_a_long_log_in_and_tells_its_progress(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_PIECE_SECONDS", 0.0)
    monkeypatch.setattr(reading, "STEP_SECONDS", math.inf)
    told: list[tuple[int, int]] = []
    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        monkeypatch.setattr(logs, "_leave", lambda _: None)
        home.sync(lambda done, total: told.append((done, total)))
    size = os.stat(home.root / "agents/a/memory/sessions/long.ndjson").st_size
    assert [total for _, total in told] == [size] * len(told)
    assert len(told) == 3
    assert 0 < told[0][0] < told[1][0] < told[2][0] == size
    hits = agent.recall("pecan 2499", limit=1)
    assert ([hit.entry.id for hit in hits], hits.stale) == (["e2499"], False)


def test_sync_tells_what_the_background_takes_in(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps, asked, told, real = (
        [threading.Event(), threading.Event()],
        threading.Event(),
        set[int](),
        Index.step,
    )
    waits = iter(steps)

    def step(index: Index, session: str, log: Log) -> int | None:
        asked.set()
        if wait := next(waits, None):
            assert wait.wait(60)
        return real(index, session, log)

    def tell(done: int, total: int) -> None:
        steps[done > 0].set()
        told.add(done)
        assert total == size

    size = os.stat(home.root / "agents/a/memory/sessions/long.ndjson").st_size
    monkeypatch.setattr(reading, "STEP_SECONDS", math.inf)
    monkeypatch.setattr(intake, "_PIECE_SECONDS", 1000.0)
    monkeypatch.setattr(Index, "step", step)
    agent.recall("walnut")
    assert asked.wait(60)
    home.sync(tell)
    assert {0, size} < told


def test_sync_does_not_wait_for_a_process_that_hangs(
    home: Home, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_PATIENCE", 0.3)
    elsewhere = FolderLock(home.root / ".index" / agent.slug)
    assert elsewhere.take()
    with pytest.raises(LockTimeoutError, match="end that process if it hangs"):
        home.sync()
    elsewhere.give_back()
    home.sync()
    assert not agent.recall("pecan").stale


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
    monkeypatch.setattr(reading, "STEP_SECONDS", math.inf)
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
    logs.refresh(0)
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
        assert logs.stale
    held.set()
    home.sync()
    assert agent.count() == LINES + 2


@pytest.fixture(params=["denied", "bad sector"])
def broken(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The sessions whose logs cannot be read, by the system's or the disk's fault."""
    broken = {"long"}
    at_once, in_steps, lines = Index.catch_up, Index.step, reading.read_on

    def refuse(session: str) -> None:
        if request.param == "denied" and session in broken:
            raise AccessDeniedError(f"permission denied for {session}")

    def catch_up(index: Index, session: str, *others: Any, **bound: Any) -> bool:
        refuse(session)
        return at_once(index, session, *others, **bound)

    def step(index: Index, session: str, log: Log) -> int | None:
        refuse(session)
        return in_steps(index, session, log)

    def read_on(database: Any, session: str, *others: Any) -> int | None:
        if request.param == "bad sector" and session in broken:
            raise OSError(errno.EIO, "input/output error")
        return lines(database, session, *others)

    monkeypatch.setattr(Index, "catch_up", catch_up)
    monkeypatch.setattr(Index, "step", step)
    monkeypatch.setattr(reading, "read_on", read_on)
    return broken


@pytest.mark.parametrize("at_once", [0, 1 << 30])
def test_log_that_cannot_be_read_holds_no_other_up(
    home: Home,
    agent: Agent,
    broken: set[str],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    at_once: int,
) -> None:
    monkeypatch.setattr(intake, "AT_ONCE", at_once)
    append(home, "behind")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            home.sync()
            hits = agent.recall("almond")
            assert ([hit.entry.session for hit in hits], hits.stale) == (["behind"], True)
    assert [one for one in caplog.messages if "'long'" in one] == caplog.messages[:1]
    broken.clear()
    write(home, LINES, LINES + 1)
    home.sync()
    hits = agent.recall("pecan 2500", limit=1)
    assert ([hit.entry.id for hit in hits], hits.stale) == (["e2500"], False)


def append(home: Home, session: str) -> None:
    path = home.root / f"agents/a/memory/sessions/{session}.ndjson"
    path.write_text('{"id":"b","ts":"2026-01-11T14:31:00Z","type":"note","text":"an almond"}\n')


def test_intake_asks_after_each_step_whether_others_are_at_work(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(home, 0, LINES)
    monkeypatch.setattr(intake, "AT_ONCE", 0)
    monkeypatch.setattr(intake, "_PIECE_SECONDS", 1000.0)
    steps, real = list[str](), Index.step
    asked: set[int] = set()

    def is_wanted() -> bool:
        asked.add(len(steps))
        return False

    def step(index: Index, session: str, log: Log) -> int | None:
        steps.append(session)
        return real(index, session, log)

    monkeypatch.setattr(Index, "step", step)
    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        monkeypatch.setattr(logs, "_leave", lambda _: None)
        logs.refresh(0)
        take_in_some(logs, is_wanted)
    assert asked == set(range(1, len(steps) + 1))


@pytest.mark.parametrize("piece", [0.0, 1000.0], ids=["steps outlast a piece", "a long piece"])
def test_waiting_connection_has_its_turn_before_each_step(
    home: Home, monkeypatch: pytest.MonkeyPatch, piece: float
) -> None:
    write(home, 0, LINES)
    for name in ("short", "shorter"):
        append(home, name)
    monkeypatch.setattr(intake, "AT_ONCE", 0)
    monkeypatch.setattr(intake, "_PIECE_SECONDS", piece)
    overtaken: list[bool] = []
    step, is_wanted = Index.step, Turn.is_wanted

    def step_and_wait(index: Index, session: str, log: Log) -> int | None:
        overtaken.append(waiting.is_waiting)
        try:
            return step(index, session, log)
        finally:
            waiting.wait(0)

    def end_if_wanted(turn: Turn) -> bool:
        found = is_wanted(turn)
        if found:
            waiting.end()
        return found

    with home._store._using("a") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        monkeypatch.setattr(logs, "_leave", lambda _: None)
        logs.refresh(0)
        waiting = Turn(logs.index._database.path)  # noqa: SLF001
        monkeypatch.setattr(Index, "step", step_and_wait)
        monkeypatch.setattr(Turn, "is_wanted", end_if_wanted)
        while take_in_some(logs):
            pass
    assert len(overtaken) >= 5
    assert not any(overtaken)


OVERLAPPING = """
import apsw, sys, time
readers = [apsw.Connection(sys.argv[1]) for _ in range(2)]
while True:
    for reader in readers:
        if reader.in_transaction:
            reader.execute("COMMIT")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM meta").fetchall()
        print(flush=True)
        time.sleep(0.01)
"""


@contextmanager
def overlapping_readers(index: Path) -> Iterator[None]:
    """Let another process read all the while: each of its transactions begins before another ends."""
    command = [sys.executable, "-c", OVERLAPPING, str(index)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.kill()


def test_journal_stays_short_while_readers_overlap(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 1 << 20
    monkeypatch.setattr(database, "LONG_JOURNAL", longest)
    monkeypatch.setattr("keepstone.index.index.BUSY_TIMEOUT", 60.0)
    monkeypatch.setattr(intake, "AT_ONCE", 2048)
    write(home, 0, 10_000)
    [index] = home.root.rglob("index.db")
    journal = Path(f"{index}-wal")
    sizes: list[int] = []
    with overlapping_readers(index):
        home.sync(lambda *_: sizes.append(journal.stat().st_size))
    assert max(sizes) < 2 * longest
    assert home.agent("a").recall("pecan 9999", limit=1)[0].entry.id == "e9999"


def test_intake_goes_on_beside_a_reader_that_never_ends(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "LONG_JOURNAL", 1)
    monkeypatch.setattr("keepstone.index.index.BUSY_TIMEOUT", 0.0)
    monkeypatch.setattr(intake, "AT_ONCE", 8192)
    write(home, 0, LINES)
    [index] = home.root.rglob("index.db")
    reader = apsw.Connection(str(index))
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM meta").fetchall()
    home.sync()
    reader.close()
    assert home.agent("a").count() == LINES + 2


def test_logs_that_another_process_takes_in_are_left_to_it(home: Home, agent: Agent) -> None:
    using = home._store._using("a")  # type: ignore[attr-defined]  # noqa: SLF001
    with using as logs, logs.second_index() as first:
        assert agent.recall("pecan").stale
        assert take_in_some(logs)
        assert "long" in logs.arrears
        with logs.second_index() as second:
            assert (first is None, second is None) == (False, True)
    home.sync()
    assert not agent.recall("pecan").stale
