"""What a watch tells of sessions, in whatever process they change."""

import copy
import multiprocessing
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Change, EntryNotFoundError, Home, Session
from keepstone.store import changes as store_changes


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        yield home


@pytest.fixture
def session(home: Home) -> Session:
    session = home.agent("a").session("s")
    session.add_many({"type": "note", "text": name, "id": name} for name in "xyz")
    return session


def told(changes: Iterable[Change]) -> list[tuple[str, str | None]]:
    return [(change.kind, change.id) for change in changes]


def test_each_change_of_an_entry_has_its_kind(home: Home, session: Session) -> None:
    watch = home.watch(timeout=0)
    session.add("note", text="new", id="new")
    session.update("new", priority=0.5)
    session.count({"new": 3})
    session.delete("new")
    session.restore("new")
    session.purge("x")
    assert told(watch) == [("purge", "x"), ("add", "new")]
    watch = home.watch(timeout=0)
    session.update("new", text="other")
    session.delete("new")
    session.restore("new")
    assert told(watch) == [("update", "new"), ("delete", "new"), ("add", "new")]


def test_compaction_and_access_counts_are_no_changes(home: Home, session: Session) -> None:
    session.update("x", text="other", tags=["t"])
    session.delete("y")
    watch = home.watch(timeout=0)
    session.count({"x": 1})
    session.compact()
    assert told(watch) == []


def test_changes_before_a_compaction_are_reported(home: Home, session: Session) -> None:
    watch = home.watch(timeout=0)
    session.update("x", text="other")
    session.delete("y")
    session.compact()
    session.add("note", text="later", id="later")
    assert told(watch) == [("delete", "y"), ("update", "x"), ("add", "later")]


def test_purge_of_a_deleted_entry_is_reported(home: Home, session: Session) -> None:
    session.delete("x")
    watch = home.watch(timeout=0)
    session.purge("x")
    assert told(watch) == [("purge", "x")]


def test_cleared_and_removed_sessions_have_no_id(home: Home, session: Session) -> None:
    other = home.agent("a").session("other")
    other.add("note", text="x")
    watch = home.watch(timeout=0)
    session.clear()
    other.remove()
    assert [(change.session, change.kind, change.id) for change in watch] == [
        ("s", "clear", None),
        ("other", "remove", None),
    ]


def test_only_named_agents_are_watched(home: Home, session: Session) -> None:
    watch = home.watch(agents=["b"], timeout=0)
    session.add("note", text="x")
    home.agent("b").session("s").add("note", text="x", id="new")
    assert [(change.agent, change.id) for change in watch] == [("b", "new")]


def test_a_cursor_goes_on_after_its_change(home: Home, session: Session) -> None:
    watch = home.watch(timeout=0)
    for name in "abc":
        session.add("note", text=name, id=name)
    home.agent("b").session("t").add("note", text="x", id="t")
    changes = list(watch)
    home.close()
    for number, change in enumerate(changes, 1):
        assert told(home.watch(since=change.cursor, timeout=0)) == told(changes[number:])


def test_each_of_many_cursors_goes_on_after_its_change(
    home: Home, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_changes, "_MOST_MOVES", 7)
    watch = home.watch(timeout=0)
    for number in range(20):
        home.agent("ab"[number % 2]).session(f"s{number % 3}").add("note", text="x", id=f"n{number}")
    session.remove()
    changes = list(watch)
    for number, change in enumerate(copy.deepcopy(changes), 1):
        assert told(home.watch(since=change.cursor, timeout=0)) == told(changes[number:])


def test_a_change_takes_no_more_memory_where_there_are_many_sessions(home: Home) -> None:
    def memory() -> int:
        """Return the bytes that 300 changes take."""
        watch = home.watch(timeout=0)
        agent = home.agent("a")
        agent.session("many").add_many({"type": "note", "text": "x"} for _ in range(300))
        tracemalloc.start()
        changes = [change for change in watch if change.session == "many"]
        taken, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(changes) == 300
        return taken

    few = memory()
    for number in range(300):
        home.agent("a").session(f"s{number}").add("note", text="x")
    assert memory() < 3 * few + 100_000


def test_a_cursor_holds_over_a_compaction(home: Home, session: Session) -> None:
    watch = home.watch(timeout=0)
    session.update("x", text="other")
    (change,) = watch
    session.compact()
    session.add("note", text="later", id="later")
    assert told(home.watch(since=change.cursor, timeout=0)) == [("add", "later")]


def test_after_a_purge_a_cursor_tells_the_session_as_a_whole(home: Home, session: Session) -> None:
    watch = home.watch(timeout=0)
    session.update("x", text="other")
    (change,) = watch
    session.purge("y")
    assert told(home.watch(since=change.cursor, timeout=0)) == [("clear", None), ("add", "x"), ("add", "z")]


@pytest.mark.parametrize("cursor", ["", "x", "x.y", "eJyrrgUAAXUA-Q.eJyLBgAAXQBd", "a" * 100])
def test_a_cursor_that_was_made_up_is_refused(home: Home, cursor: str) -> None:
    with pytest.raises(ValueError, match="not the cursor of a change"):
        home.watch(since=cursor)


@pytest.mark.usefixtures("session")
def test_a_batch_is_reported_once_it_is_whole(home: Home) -> None:
    log = home.root / "agents/a/memory/sessions/s.ndjson"
    watch = home.watch(timeout=0)
    whole = [f'{{"id":"{n}","type":"note","text":"x","batch":[{n},3]}}\n' for n in (1, 2, 3)]
    with log.open("a") as file:
        file.write("".join(whole[:2]))
    assert told(watch) == []
    watch = home.watch(timeout=0)
    with log.open("a") as file:
        file.write(whole[2])
    assert told(watch) == [("add", "1"), ("add", "2"), ("add", "3")]


ADD = """
import sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    for number in range(int(sys.argv[2])):
        home.agent("a").session(f"s{number % 3}").add("note", {"content": "x"}, id=f"{number}")
"""


def test_changes_of_other_processes_come_in_the_order_of_each_session(home: Home) -> None:
    watch = home.watch(agents=["a"], timeout=60)
    process = subprocess.Popen([sys.executable, "-c", ADD, str(home.root), "60"])
    seen: dict[str, list[int]] = {}
    for count, change in enumerate(watch, 1):
        seen.setdefault(change.session, []).append(int(change.id or 0))
        if count == 60:
            break
    assert process.wait(60) == 0
    assert seen == {f"s{first}": list(range(first, 60, 3)) for first in range(3)}


def _count(root: Path, cursor: str, answer: "multiprocessing.queues.Queue[list[str | None]]") -> None:
    with keepstone.open(root, embedder="none") as home:
        answer.put([change.id for change in home.watch(since=cursor, timeout=0)])


def test_a_cursor_holds_in_another_process(home: Home, session: Session) -> None:
    watch = home.watch(timeout=0)
    session.add("note", text="one", id="one")
    (change,) = watch
    session.add("note", text="two", id="two")
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_count, args=(home.root, change.cursor, answer))
    process.start()
    assert answer.get(timeout=60) == ["two"]
    process.join()


def test_a_watch_closed_by_another_thread_ends(home: Home) -> None:
    watch = home.watch()
    waiting = threading.Thread(target=lambda: [*watch], daemon=True)
    waiting.start()
    watch.close()  # type: ignore[attr-defined]
    waiting.join(30)
    assert not waiting.is_alive()


STEPS = st.sampled_from(
    ["add", "update", "delete", "restore", "purge", "compact", "clear", "remove", "look", "look", "resume"]
)


@given(st.lists(st.tuples(STEPS, st.sampled_from("xyz"), st.sampled_from("st")), max_size=25))
def test_replayed_changes_give_what_the_sessions_hold(steps: list[tuple[str, str, str]]) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        keepstone.open(folder, durability="os", embedder="none") as home,
    ):
        agent = home.agent("a")
        agent.session("s").add("note", text="x", id="x")
        poll, cursor = home._store.changes(None, None), ""  # noqa: SLF001  Polls when the test says so.
        held: dict[str, set[str | None]] = {"s": {"x"}}
        for number, (step, entry_id, name) in enumerate([*steps, ("look", "", ""), ("resume", "", "")]):
            if step == "resume" and cursor:
                poll = home._store.changes(None, cursor)  # noqa: SLF001  As above.
            for change in poll() if step in ("look", "resume") else ():
                cursor = change.cursor
                entries = held.setdefault(change.session, set())
                if change.kind in ("clear", "remove"):
                    entries.clear()
                elif change.kind in ("add", "update"):
                    entries.add(change.id)
                else:
                    entries.discard(change.id)
            _do(agent.session(name or "s"), step, entry_id, number)
        found = {name: {entry.id for entry in agent.session(name).entries()} for name in "st"}
    assert {name: held.get(name, set()) for name in "st"} == found


def _do(session: Session, step: str, entry_id: str, number: int) -> None:
    calls = {
        "add": lambda: session.put({"id": entry_id, "type": "note", "text": f"{number}"}),
        "update": lambda: session.update(entry_id, priority=1 / (number + 1)),
        "delete": lambda: session.delete(entry_id),
        "restore": lambda: session.restore(entry_id),
        "purge": lambda: session.purge(entry_id),
        "compact": session.compact,
        "clear": session.clear,
        "remove": session.remove,
    }
    try:
        calls.get(step, lambda: None)()
    except EntryNotFoundError:
        return
