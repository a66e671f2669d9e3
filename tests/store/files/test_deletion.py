"""Deleting many entries at once, while others use their session."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.processes import elsewhere, run_until_killed

import keepstone
from keepstone import EntryNotFoundError, Home, Session
from keepstone.index import Index, reading
from keepstone.log.log_file import Log
from keepstone.model import Scope
from keepstone.store.files import deletion, live_entries, writing
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.file_store import FileStore

COUNT = 1_500
MANY = [f"d{n}" for n in range(COUNT)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add_many({"id": name, "type": "note", "text": f"chestnut {name}"} for name in MANY)
        session.add_many({"id": f"left{n}", "type": "left", "text": f"hazel {n}"} for n in range(5))
        home.sync()
        yield home


def delete_all(home: Home) -> int:
    return home.agent("a").delete_where(ids=MANY)


def texts(home: Home) -> dict[str, str]:
    """What the session says by its log, once the index was found to say the same."""
    agent, session = home.agent("a"), home.agent("a").session("s")
    found = {entry.id: entry.text for entry in session.entries()}
    assert agent.count() == session.entry_count() == len(found)
    assert {hit.entry.id for hit in agent.recall("chestnut hazel pecan", limit=50)} == found.keys()
    return found


LEFT = {f"left{n}": f"hazel {n}" for n in range(5)}


def when_first(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, act: Callable[[], object]) -> None:
    """Act before the first call of a function."""
    called = getattr(owner, name)

    def acting(*args: Any, **keywords: Any) -> Any:
        monkeypatch.setattr(owner, name, called)
        act()
        return called(*args, **keywords)

    monkeypatch.setattr(owner, name, acting)


def test_tombstones_of_one_call_are_one_batch(home: Home) -> None:
    before = (home.root / "agents/a/memory/sessions/s.ndjson").stat().st_size
    assert delete_all(home) == COUNT
    written = (home.root / "agents/a/memory/sessions/s.ndjson").read_bytes()[before:].splitlines()
    assert [json.loads(line)["batch"] for line in written] == [[n + 1, COUNT] for n in range(COUNT)]
    assert texts(home) == LEFT


def test_others_write_while_the_index_hides_deleted_entries(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "s.add('note', id='new', text='pecan'); s.update('left0', text='hazel again'); s.delete('left1'); "
        "s.add('note', id='d7', text='chestnut again')"
    )
    when_first(monkeypatch, Index, "catch_up", lambda: elsewhere(home, code))
    assert delete_all(home) == COUNT
    left = {key: text for key, text in LEFT.items() if key != "left1"}
    wanted = left | {"new": "pecan", "left0": "hazel again", "d7": "chestnut again"}
    assert texts(home) == wanted
    home.rebuild()
    assert texts(home) == wanted


def reopen_before(monkeypatch: pytest.MonkeyPatch, home: Home, name: str) -> None:
    """Let another process take one entry out of a filter when a store's method is called."""
    code = "s.update('d7', tags=['open'])"
    when_first(monkeypatch, FileStore, name, lambda: elsewhere(home, code))


@pytest.mark.parametrize("ids", [MANY[:9], MANY], ids=["few", "many"])
@pytest.mark.parametrize("name", ["delete", "purge"])
def test_entry_that_left_the_filter_is_not_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch, name: str, ids: list[str]
) -> None:
    reopen_before(monkeypatch, home, name)
    agent = home.agent("a")
    remove = agent.delete_where if name == "delete" else agent.purge_where
    assert remove(ids=ids, where={"tags": {"exists": False}}) == len(ids) - 1
    assert agent.get("d7").tags == ("open",)
    assert agent.count() == COUNT + len(LEFT) - len(ids) + 1


@pytest.fixture
def half_hidden(home: Home, monkeypatch: pytest.MonkeyPatch) -> Session:
    """A session whose index hides entries slowly; the process that deleted them was killed."""
    with monkeypatch.context() as killed:
        killed.setattr(AgentLogs, "follow", lambda *_, **__: False)
        killed.setattr(Index, "drop_hidden", lambda _: None)
        assert delete_all(home) == COUNT
    monkeypatch.setattr(reading, "STEP_LINES", 50)
    monkeypatch.setattr(live_entries, "_LONG", 0)
    monkeypatch.setattr(live_entries, "_MOMENT", 0)
    monkeypatch.setattr(writing, "_MOMENT", 0)
    return home.agent("a").session("s")


WRITES: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.add("note", id="new", text="pecan"),
    "update": lambda session: session.update("left0", text="pecan"),
    "patch": lambda session: session.update("left0", pinned=True),
    "delete": lambda session: session.delete("left0"),
    "put of a deleted id": lambda session: session.add("note", id=MANY[-1], text="pecan"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_writer_takes_in_only_a_part_of_a_long_deletion(
    home: Home, half_hidden: Session, monkeypatch: pytest.MonkeyPatch, write: Callable[[Session], object]
) -> None:
    steps: list[str] = []
    step = Index.step

    def counted(index: Index, session: str, log: Log) -> int | None:
        steps.append(session)
        return step(index, session, log)

    with monkeypatch.context() as watched:
        watched.setattr(Index, "step", counted)
        write(half_hidden)
    is_put = write is WRITES["put of a deleted id"]  # What the log says of its id has to be read.
    assert len(steps) <= (COUNT // 50 + 5 if is_put else 4)
    wanted = LEFT | {
        "add": {"new": "pecan"},
        "update": {"left0": "pecan"},
        "put of a deleted id": {MANY[-1]: "pecan"},
    }.get(next(name for name, one in WRITES.items() if one is write), {})
    if write is WRITES["delete"]:
        del wanted["left0"]
    assert texts(home) == wanted


def test_deleted_entry_is_not_found_before_its_row_is_hidden(half_hidden: Session) -> None:
    with pytest.raises(EntryNotFoundError):
        half_hidden.update(MANY[-1], text="pecan")


def kill_while_deleting(root: Path, method: str) -> None:
    """Let a process delete many entries until it calls a method of the index."""
    run_until_killed(
        root,
        f"from keepstone.index import Index\nagent.get('d1', 's')\nIndex.{method} = kill",
        f"home._store.delete('a', 's', [f'd{{n}}' for n in range({COUNT})], '2026-01-12T10:00:00.000000Z')",
    )


def test_next_process_hides_what_a_killed_deletion_left(home: Home) -> None:
    home.close()
    kill_while_deleting(home.root, "catch_up")
    with keepstone.open(home.root, embedder="none") as later:
        assert texts(later) == LEFT


def test_entry_that_another_deletes_at_the_same_time_counts_once(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = (
        "s.delete('d3'); s.delete('d4'); s.add('note', id='d4', text='chestnut d4'); s.update('d5', text='x')"
    )
    when_first(monkeypatch, deletion, "_lines", lambda: elsewhere(home, code))
    assert delete_all(home) == COUNT - 1
    assert texts(home) == LEFT


def test_deletion_begins_again_after_a_rewrite_of_the_log(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    when_first(monkeypatch, deletion, "_lines", lambda: elsewhere(home, "s.purge('d3')"))
    assert delete_all(home) == COUNT - 1
    assert texts(home) == LEFT


def hidden(home: Home) -> int:
    """How many rows of deleted entries the index has."""
    with apsw.Connection(str(next(home.root.glob(".index/a/*/index.db")))) as connection:
        found: int = connection.execute("SELECT count(*) FROM entry WHERE sid<0").get
    return found


@pytest.fixture
def killed_after_hiding(home: Home) -> Iterator[Home]:
    """A home whose last process was killed when it had hidden deleted entries, and not removed them."""
    home.close()
    kill_while_deleting(home.root, "drop_hidden")
    with keepstone.open(home.root, embedder="none") as later:
        yield later


def test_background_removes_rows_that_a_killed_deletion_hid(killed_after_hiding: Home) -> None:
    assert hidden(killed_after_hiding) == COUNT
    killed_after_hiding.agent("a").recall("hazel")
    for thread in threading.enumerate():
        if thread.name == "keepstone":
            thread.join()
    assert hidden(killed_after_hiding) == 0
    assert texts(killed_after_hiding) == LEFT


def test_hidden_rows_wait_for_no_vector(killed_after_hiding: Home) -> None:
    with killed_after_hiding._store.reader("a") as reader:  # noqa: SLF001
        assert reader.pending_count("model", Scope("a")) == len(LEFT)
        assert len(reader.pending("model", Scope("a"))) == len(LEFT)
