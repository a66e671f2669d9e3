"""Rewrites of a session's log while other processes use the session."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from filelock import lock_descriptor
from tests.processes import elsewhere, run_until_killed

import keepstone
from keepstone import Home, Session
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.index import Index
from keepstone.log import rewrite
from keepstone.log.log_file import Log
from keepstone.log.prepared import Prepared
from keepstone.log.replacement import Replacement
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.placing import IndexedPlacing

TEXT = b"qzvxkwalnut"
"""The text of the entry to purge."""

Act = Callable[[Session], object]
ACTS: list[Act] = [lambda session: session.compact(), lambda session: session.purge("secret")]
names = pytest.mark.parametrize("act", ACTS, ids=["compact", "purge"])


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        fill(home)
        yield home


def fill(home: Home) -> None:
    """A session with a batch, versions, deletions, a title and lines of a foreign program."""
    session = home.agent("a").session("s")
    session.add_many({"id": f"e{n}", "type": "note", "text": f"walnut number{n}"} for n in range(20))
    session.add("note", id="secret", text=TEXT.decode())
    session.update("e3", text="hazel")
    session.update("e4", pinned=True)
    session.delete("e5")
    session.set_title("about nuts")
    log = home.root / "agents/a/memory/sessions/s.ndjson"
    with log.open("ab") as file:
        file.write(b'{"content":"same"}\n' * 2 + b"no line at all\n")
    home.agent("a").recall("walnut")


def test_entry_that_leaves_the_filter_during_a_purge_stays(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "s.update('e1', pinned=True)"
    assert while_it_prepares(monkeypatch, lambda: elsewhere(home, code)) == []
    ids = ["e1", "e2"]
    assert home.agent("a").purge_where(ids=ids, where={"pinned": {"ne": True}}) == 1
    assert [entry.id for entry in home.agent("a").entries(ids=ids)] == ["e1"]


def while_it_prepares(monkeypatch: pytest.MonkeyPatch, do: Callable[[], object], times: int = 1) -> list[int]:
    """Do something when a rewrite has copied the log, and has not put the copy in place."""
    follow, done = Replacement.follow_all, list[int]()

    def following(new: Replacement) -> None:
        follow(new)
        if len(done) < times:
            done.append(len(done))
            do()

    monkeypatch.setattr(Replacement, "follow_all", following)
    return done


def said(home: Home) -> dict[str, str]:
    """What the session says by its log, once the index was found to say the same."""
    agent, session = home.agent("a"), home.agent("a").session("s")
    texts = {entry.id: entry.text for entry in session.entries()}
    assert {entry_id: agent.get(entry_id, "s").text for entry_id in texts} == texts
    for entry_id, text in texts.items():
        assert entry_id in {hit.entry.id for hit in agent.recall(text, limit=50)}
    assert session.entry_count() == len(texts)
    return texts


def files_with(home: Home, text: bytes) -> list[str]:
    return [path.name for path in home.root.rglob("*") if path.is_file() and text in path.read_bytes()]


@names
def test_others_write_while_a_rewrite_prepares(home: Home, monkeypatch: pytest.MonkeyPatch, act: Act) -> None:
    session = home.agent("a").session("s")
    before = said(home)
    code = (
        "s.add('note', id='new', text='pecan'); s.update('e6', text='almond'); s.update('e7', pinned=True); "
        "s.delete('e8'); s.add_many([{'id': 'b1', 'type': 'note', 'text': 'cashew'}, "
        "{'id': 'b2', 'type': 'note', 'text': 'acorn'}])"
    )
    done = while_it_prepares(monkeypatch, lambda: elsewhere(home, code))
    act(session)
    assert done == [0]
    wanted = before | {"new": "pecan", "e6": "almond", "b1": "cashew", "b2": "acorn"}
    gone = {"e8"} if act is ACTS[0] else {"e8", "secret"}
    wanted = {key: text for key, text in wanted.items() if key not in gone}
    assert said(home) == wanted
    assert home.agent("a").get("e7", "s").pinned
    home.rebuild()
    assert said(home) == wanted


@names
def test_rewrite_reads_nothing_into_the_index_again(
    home: Home, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    reread = Index.reread
    again: list[str] = []

    def noted(index: Index, session: str, log: Log) -> Any:
        again.append(session)
        return reread(index, session, log)

    monkeypatch.setattr(Index, "reread", noted)
    rows = rows_of(home)
    act(home.agent("a").session("s"))
    said(home)
    assert again == []
    assert rows_of(home).items() <= rows.items()


def rows_of(home: Home) -> dict[str, int]:
    """The row of each entry in the index."""
    with apsw.Connection(str(next(home.root.glob(".index/a/*/index.db")))) as connection:
        rows: list[Any] = connection.execute("SELECT id, eid FROM entry WHERE sid>0").fetchall()
    return dict(rows)


@names
def test_rewrites_one_after_another_keep_every_row_right(home: Home, act: Act) -> None:
    session = home.agent("a").session("s")
    before = said(home)
    act(session)
    session.update("e9", text="beech")
    session.compact()
    session.update("e9", tags=["t"])
    session.purge("e10")
    gone = {"e10"} if act is ACTS[0] else {"e10", "secret"}
    assert said(home) == {key: text for key, text in (before | {"e9": "beech"}).items() if key not in gone}
    assert [summary.title for summary in home.agent("a").session_summaries()] == ["about nuts"]


def test_purge_covers_what_is_written_while_it_prepares(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    code = f"s.update('secret', text='{TEXT.decode()} again')"
    while_it_prepares(monkeypatch, lambda: elsewhere(home, code))
    home.agent("a").session("s").purge("secret")
    assert files_with(home, TEXT) == []


@names
def test_rewrite_begins_again_after_another_rewrite(
    home: Home, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    before = said(home)
    begun: list[str] = []
    begin = IndexedPlacing.catch_up

    def beginning(placing: IndexedPlacing) -> None:
        begun.append("begun")
        begin(placing)

    monkeypatch.setattr(IndexedPlacing, "catch_up", beginning)
    while_it_prepares(monkeypatch, lambda: elsewhere(home, "s.purge('e1')"))
    act(home.agent("a").session("s"))
    assert len(begun) == 2
    gone = {"e1"} if act is ACTS[0] else {"e1", "secret"}
    assert said(home) == {key: text for key, text in before.items() if key not in gone}


@names
def test_rewrite_that_others_always_overtake_keeps_the_lock(
    home: Home, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    before = said(home)
    numbers = iter(range(10, 20))
    done = while_it_prepares(monkeypatch, lambda: elsewhere(home, f"s.purge('e{next(numbers)}')"), times=4)
    act(home.agent("a").session("s"))
    gone = {f"e{number}" for number in range(10, 10 + len(done))} | (set() if act is ACTS[0] else {"secret"})
    assert len(done) == 4
    assert said(home) == {key: text for key, text in before.items() if key not in gone}


def test_purge_follows_a_compaction_that_ends_before_it_gets_the_lock(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked = IndexedPlacing.locked_throughout

    def compacted_elsewhere(placing: IndexedPlacing) -> AbstractContextManager[None]:
        elsewhere(home, "s.update('secret', pinned=True); s.compact()")
        return locked(placing)

    monkeypatch.setattr(rewrite, "_TRIES", 0)  # As if others had always overtaken it until now.
    monkeypatch.setattr(IndexedPlacing, "locked_throughout", compacted_elsewhere)
    home.agent("a").session("s").purge("secret")
    assert files_with(home, TEXT) == []


def test_purge_removes_what_a_compaction_prepares(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[str]] = []

    def purge() -> None:
        assert "s.ndjson.next.tmp" in files_with(home, TEXT)
        elsewhere(home, "s.purge('secret')")
        found.append(files_with(home, TEXT))

    while_it_prepares(monkeypatch, purge)
    home.agent("a").session("s").compact()
    assert found == [[]]
    assert files_with(home, TEXT) == []


@pytest.mark.parametrize("erase", ["s.purge('secret')", "s.clear()", "s.remove()"])
def test_erasing_after_a_killed_rewrite_leaves_no_byte(home: Home, erase: str) -> None:
    home.close()
    patch = (
        "from keepstone.log.replacement import Replacement\n"
        "prepare = Replacement.follow_all\n"
        "def prepare_and_kill(*a, **k):\n    prepare(*a, **k)\n    kill()\n"
        "Replacement.follow_all = prepare_and_kill"
    )
    run_until_killed(home.root, patch, "agent.session('s').compact()")
    assert "s.ndjson.next.tmp" in files_with(home, TEXT)
    elsewhere(home, erase)
    assert files_with(home, TEXT) == []


def test_next_write_removes_what_a_killed_rewrite_prepared(home: Home) -> None:
    prepared = home.root / "agents/a/memory/sessions/s.ndjson.next.tmp"
    prepared.write_bytes(TEXT)
    elsewhere(home, "s.add('note', text='x')")
    assert not prepared.exists()


def test_next_write_keeps_what_a_live_rewrite_prepares(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = home.root / "agents/a/memory/sessions/s.ndjson.next.tmp"
    there: list[bool] = []

    def write() -> None:
        elsewhere(home, "s.add('note', text='x')")
        there.append(prepared.exists())

    while_it_prepares(monkeypatch, write)
    home.agent("a").session("s").purge("secret")
    assert there == [True]
    assert not prepared.exists()


def test_rewrite_beside_another_leaves_the_mark_of_its_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = home.root / "agents/a/memory/sessions"
    marks: list[int] = []

    def rewrite() -> None:
        with closing(Folder(sessions)) as folder:
            log = Log(folder, "s.ndjson", Lock(folder, "s.lock"))
            with log.locked():
                log.replace([log_file.read_bytes()])
        marks.append((sessions / "s.lock").stat().st_size)

    log_file = sessions / "s.ndjson"
    while_it_prepares(monkeypatch, rewrite)
    home.agent("a").session("s").compact()
    assert marks == [1]
    assert (sessions / "s.lock").stat().st_size == 0


@names
@pytest.mark.parametrize("name", ["s.ndjson.next.tmp", "s.ndjson"])
def test_child_of_a_fork_keeps_no_file_of_a_rewrite_open(
    home: Home, monkeypatch: pytest.MonkeyPatch, act: Act, name: str
) -> None:
    file = home.root / "agents/a/memory/sessions" / name

    def fork() -> None:
        reading, writing = os.pipe()
        if os.fork() == 0:
            open_there = any(
                os.path.samefile(f"/proc/self/fd/{fd}", file)
                for fd in os.listdir("/proc/self/fd")
                if Path(f"/proc/self/fd/{fd}").exists()
            )
            os.write(writing, b"1" if open_there else b"0")
            os._exit(0)
        os.wait()
        answers.append(os.read(reading, 1))
        os.close(reading)
        os.close(writing)

    answers: list[bytes] = []
    while_it_prepares(monkeypatch, fork)
    act(home.agent("a").session("s"))
    assert answers == [b"0"]


def test_child_of_a_fork_writes_to_the_log_that_its_parent_rewrote(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    children: list[int] = []
    session = home.agent("a").session("s")
    session.add("note", text="opens the log to write")
    reading, writing = os.pipe()

    def fork() -> None:
        child = os.fork()
        if child == 0:
            os.read(reading, 1)
            session.add("note", id="child", text="pecan")
            os._exit(0)
        children.append(child)

    while_it_prepares(monkeypatch, fork)
    session.purge("secret")
    os.write(writing, b"1")
    assert os.waitpid(children[0], 0)[1] == 0
    os.close(reading)
    os.close(writing)
    assert said(home)["child"] == "pecan"


def test_file_of_a_rewrite_given_up_is_removed_with_the_lock_held(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home.root / "agents/a/memory/sessions"
    were_locked: list[bool] = []
    unlink = Folder.unlink

    def unlinking(opened: Folder, name: str) -> None:
        if name.endswith(".next.tmp") and (folder / name).exists():
            with (folder / "s.lock").open("rb+") as lock:
                were_locked.append(not lock_descriptor(lock.fileno(), blocking=False))
        unlink(opened, name)

    monkeypatch.setattr(Folder, "unlink", unlinking)
    monkeypatch.setattr(rewrite._Plan, "fits", lambda _: False)  # noqa: SLF001
    home.agent("a").session("s").compact()
    assert were_locked == [True]
    assert not list(folder.glob("*.next.tmp"))


def test_rewrite_that_cannot_lock_its_file_leaves_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> bool:
        raise OSError(errno.ENOLCK, "no locks available")

    folder = home.root / "agents/a/memory/sessions"
    before = said(home)
    open_files = len(os.listdir("/proc/self/fd"))
    with closing(Folder(folder)) as opened, monkeypatch.context() as patched:
        patched.setattr("filelock.lock_descriptor", refuse)
        with pytest.raises(OSError, match="no locks"):
            Prepared(opened, "s.ndjson.next.tmp")
    assert len(os.listdir("/proc/self/fd")) == open_files
    assert not list(folder.glob("*.next.tmp"))
    assert said(home) == before


def test_delete_of_many_hides_them_at_once_and_for_good(home: Home) -> None:
    session = home.agent("a").session("s")
    session.add_many({"id": f"m{n}", "type": "many", "text": f"chestnut{n}"} for n in range(300))
    home.agent("a").recall("chestnut1")
    assert home.agent("a").delete_where(types=["many"]) == 300
    assert home.agent("a").recall("chestnut1", types=["many"]) == []
    session.add("many", id="m1", text="chestnut1")
    assert [hit.entry.id for hit in home.agent("a").recall("chestnut1", types=["many"])] == ["m1"]
    assert set(rows_of(home)) == set(said(home))


def test_entries_archived_for_their_age_leave_the_index(home: Home) -> None:
    agent, session = home.agent("a"), home.agent("a").session("s")
    before = said(home)
    for number in range(10, 13):
        session.update(f"e{number}", priority=0.1)
    session.archive_faded()
    left = {key: text for key, text in before.items() if key not in {"e10", "e11", "e12"}}
    assert agent.count() == len(left)
    assert said(home) == left


@names
def test_rewrite_keeps_rows_right_that_a_busy_index_did_not_have(
    home: Home, monkeypatch: pytest.MonkeyPatch, act: Act
) -> None:
    before = said(home)
    with (home.root / "agents/a/memory/sessions/s.ndjson").open("ab") as file:
        file.write(b'{"id":"e6","ts":"2026-01-12T10:00:00.000000Z","type":"note","text":"almond"}\n')
        file.write(b'{"id":"new","ts":"2026-01-12T10:00:00.000000Z","type":"note","text":"pecan"}\n')
    follow, answers, again = AgentLogs.follow, iter([False]), list[str]()
    monkeypatch.setattr(AgentLogs, "follow", lambda *a, **k: next(answers, None) is None and follow(*a, **k))
    monkeypatch.setattr(Index, "reread", lambda _, session, log: again.append(f"{session} {log.name}"))
    act(home.agent("a").session("s"))
    gone = set() if act is ACTS[0] else {"secret"}
    wanted = before | {"e6": "almond", "new": "pecan"}
    assert said(home) == {key: text for key, text in wanted.items() if key not in gone}
    assert again == []


def test_filters_find_all_entries_while_deleted_ones_are_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = home.agent("a")
    session = agent.session("many")
    session.add_many({"id": f"d{n}", "type": "note", "data": {"topic": "oak"}} for n in range(1500))
    session.add("note", {"topic": "oak"}, id="left")
    monkeypatch.setattr(Index, "drop_hidden", lambda _: None)
    agent.delete_where(ids=[f"d{n}" for n in range(1500)])
    assert [entry.id for entry in agent.entries(where={"topic": "oak"})] == ["left"]


@pytest.mark.parametrize("large", [1, 5_000])
def test_recall_finds_the_rest_while_deleted_entries_are_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    agent = home.agent("a")
    session = agent.session("many")
    session.add_many({"id": f"d{n}", "type": "note", "text": "chestnut chestnut"} for n in range(1500))
    session.add("note", id="left", text="chestnut and several other words")
    agent.recall("chestnut")
    monkeypatch.setattr("keepstone.index.index.LARGE", large)
    monkeypatch.setattr(Index, "drop_hidden", lambda _: None)
    agent.delete_where(ids=[f"d{n}" for n in range(1500)])
    assert [hit.entry.id for hit in agent.recall("chestnut")] == ["left"]
    assert [hit.entry.id for hit in agent.recall("chestnut", types=["note"])] == ["left"]


def test_recall_by_vector_finds_the_rest_while_deleted_entries_are_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = home.agent("a")
    near = [{"id": f"d{n}", "type": "note", "text": "oak", "embedding": [1.0, 0.0]} for n in range(1500)]
    agent.session("many").add_many(
        [*near, {"id": "left", "type": "note", "text": "elm", "embedding": [0.6, 0.8]}]
    )
    agent.recall(None, vector=[1.0, 0.0])
    monkeypatch.setattr(Index, "drop_hidden", lambda _: None)
    monkeypatch.setattr(Index, "upkeep", lambda *_: False)
    agent.delete_where(ids=[f"d{n}" for n in range(1500)])
    assert [hit.entry.id for hit in agent.recall(None, vector=[1.0, 0.0])] == ["left"]
