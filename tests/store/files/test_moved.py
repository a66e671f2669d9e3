"""Folders that are renamed, replaced or linked under an open home: nothing is written to the wrong one."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from filelock import FileLock
from numpy import array
from tests.processes import elsewhere

import keepstone
from keepstone import Agent, Home
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index, UnavailableError
from keepstone.index.database import SCHEMA
from keepstone.model import Scope
from keepstone.store.files import index_file
from keepstone.store.files.agent_logs import AgentLogs

Move = Callable[[Path], Path]
"""Moves what lies at agents/alice of a home, and returns where it lies then."""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os") as home:
        home.agent("alice").session("s").add("note", {"content": "one"}, id="one")
        home.agent("alice").files.write("plan.md", "one")
        yield home


def renamed(root: Path) -> Path:
    return (root / "agents/alice").rename(root / "agents/bob")


def restored(root: Path) -> Path:
    shutil.copytree(root / "agents/alice", root / "copy")
    moved = (root / "agents/alice").rename(root / "old")
    (root / "copy").rename(root / "agents/alice")
    return moved


def home_restored(root: Path) -> Path:
    shutil.copytree(root, root.with_name("copy"))
    moved = root.rename(root.with_name("old"))
    root.with_name("copy").rename(root)
    return moved / "agents/alice"


def only_sessions_renamed(root: Path) -> Path:
    memory = root / "agents/alice/memory"
    return (memory / "sessions").rename(memory / "old").parent.parent


def bytes_below(folder: Path) -> dict[Path, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]
    return {path: path.read_bytes() for path in files}


MOVES = [renamed, restored, home_restored, only_sessions_renamed]
WRITES: dict[str, Callable[[Agent], object]] = {
    "add": lambda agent: agent.session("s").add("note", {"content": "two"}),
    "add_many": lambda agent: agent.session("new").add_many(
        [{"type": "note", "content": text} for text in "ab"]
    ),
    "new_session": lambda agent: agent.new_session(),
    "update": lambda agent: agent.session("s").update("one", text="changed"),
    "delete": lambda agent: agent.session("s").delete("one"),
    "purge": lambda agent: agent.session("s").purge("one"),
    "compact": lambda agent: agent.session("s").compact(),
    "clear": lambda agent: agent.session("s").clear(),
    "remove": lambda agent: agent.session("s").remove(),
    "write": lambda agent: agent.files.write("other.md", "two"),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_write_reaches_a_folder_that_was_moved(
    home: Home, move: Move, write: Callable[[Agent], object]
) -> None:
    moved = move(home.root)
    before = bytes_below(moved)
    with suppress(keepstone.EntryNotFoundError, keepstone.PathEscapeError):
        write(home.agent("alice"))
    assert bytes_below(moved).items() >= before.items()


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_no_write_follows_a_link_to_a_moved_agent(home: Home, write: Callable[[Agent], object]) -> None:
    moved = renamed(home.root)
    (home.root / "agents/alice").symlink_to("bob")
    before = bytes_below(moved)
    with pytest.raises(keepstone.PathEscapeError):
        write(home.agent("alice"))
    assert bytes_below(moved) == before


def test_a_renamed_agent_takes_no_word_of_the_old_name(home: Home) -> None:
    renamed(home.root)
    home.agent("alice").session("s").add("note", {"content": "secret"})
    with keepstone.open(home.root) as other:
        assert [entry.text for entry in other.agent("bob").session("s").entries()] == ["one"]
        assert [entry.text for entry in other.agent("alice").session("s").entries()] == ["secret"]
        assert other.agent("bob").recall("secret") == []
        assert other.agent("alice").recall("one") == []


@pytest.mark.parametrize("restore", [restored, home_restored])
def test_a_folder_restored_by_rename_gets_all_later_writes(home: Home, restore: Move) -> None:
    restore(home.root)
    home.agent("alice").session("s").add("note", {"content": "two"})
    with keepstone.open(home.root) as other:
        assert [entry.text for entry in other.agent("alice").session("s").entries()] == ["one", "two"]
        assert other.agent("alice").recall("two")[0].entry.text == "two"


def test_a_moved_agent_is_read_no_more(home: Home) -> None:
    renamed(home.root)
    alice = home.agent("alice")
    assert (alice.sessions(), alice.session("s").entries(), alice.recall("one")) == ([], [], [])


def test_an_agent_that_is_removed_during_a_question_has_no_spaces(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.close()  # The index is opened by the question.
    monkeypatch.setattr(AgentLogs, "reach", lambda *_: renamed(home.root))
    assert home._store.spaces("alice") == []  # noqa: SLF001  What an embedding of all agents asks first.


def until_waited_for(lock: Path) -> None:
    """Return once a writer waits for a lock: it touches the lock file then."""
    seen = lock.stat().st_mtime_ns
    while lock.stat().st_mtime_ns == seen:
        threading.Event().wait(0.001)


@pytest.mark.parametrize("move", MOVES)
def test_a_writer_that_waits_while_its_folder_is_moved_writes_to_the_new_one(home: Home, move: Move) -> None:
    lock = home.root / "agents/alice/memory/sessions/s.lock"
    session = home.agent("alice").session("s")
    with ThreadPoolExecutor() as threads:
        with FileLock(lock):
            writing = threads.submit(session.add, "note", {"content": "two"})
            until_waited_for(lock)
            moved = move(home.root)
            before = bytes_below(moved)
        writing.result(timeout=30)
    assert bytes_below(moved).items() >= before.items()
    with keepstone.open(home.root) as other:
        assert [entry.text for entry in other.agent("alice").session("s").entries()][-1] == "two"


def test_a_writer_that_waits_while_its_agent_is_purged_makes_a_new_one(home: Home) -> None:
    lock = home.root / "agents/alice/memory/sessions/s.lock"
    session = home.agent("alice").session("s")
    with keepstone.open(home.root) as other, ThreadPoolExecutor() as threads:
        with FileLock(lock):
            writing = threads.submit(session.add, "note", {"content": "two"})
            until_waited_for(lock)
            other.purge_agent("alice")
        writing.result(timeout=30)
        assert [entry.text for entry in other.agent("alice").session("s").entries()] == ["two"]
        assert other.agent("alice").recall("one") == []


def test_an_index_opened_during_a_purge_holds_nothing_of_the_agent(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.close()

    def index(path: Path, language: str) -> Index:
        renamed(home.root)  # A purge puts the folder away, then it removes the index, before we make ours.
        shutil.rmtree(home.root / ".index")
        path.parent.mkdir(parents=True)
        return Index(path, language)

    monkeypatch.setattr(index_file, "Index", index)
    logs = AgentLogs(
        home.root,
        LAYOUTS["default"],
        "alice",
        durable=False,
        create=False,
        most_logs=lambda: 8,
        finish=lambda _: None,
        language="en",
    )
    with closing(logs):
        for _ in range(2):
            with pytest.raises(UnavailableError, match="removed or renamed"):
                logs.query(lambda index: index.catch_up("s", logs.log("s")))
    with closing(Index(home.root / ".index/alice" / f"v{SCHEMA}" / "index.db")) as left:
        assert left.known() == {}


def test_vectors_of_a_purged_agent_are_not_written_again_by_another_process(home: Home) -> None:
    session = home.agent("alice").session("s")
    session.add_many(
        {"type": "note", "text": f"number {n}", "embedding": [1.0, float(n + 1)]} for n in range(20)
    )
    with home._store._using("alice") as logs:  # type: ignore[attr-defined]  # noqa: SLF001  As the background does.
        assert logs.index.nearest(array([1.0, 0.0], "float32"), "given:2", Scope("alice"), 3, 1).is_due
        elsewhere(home, "home.purge_agent('alice')")
        with pytest.raises(UnavailableError):
            logs.index.upkeep()
    assert not (home.root / ".index/alice").exists()


@pytest.mark.parametrize("waits", [True, False])
def test_a_log_that_was_renamed_by_hand_gets_all_later_writes(home: Home, waits: bool) -> None:  # noqa: FBT001
    folder = home.root / "agents/alice/memory/sessions"
    (folder / "s.ndjson").rename(folder / "caf\u00e9.ndjson")
    session = home.agent("alice").session("caf\u00e9")
    session.add("note", {"content": "two"})

    def rename() -> None:
        (folder / "caf\u00e9.ndjson").rename(folder / "caf%C3%A9.ndjson")

    if waits:
        with ThreadPoolExecutor() as threads:
            with FileLock(folder / "caf\u00e9.lock"):
                writing = threads.submit(session.add, "note", {"content": "three"})
                until_waited_for(folder / "caf\u00e9.lock")
                rename()
            writing.result(timeout=30)
    else:
        rename()
        session.add("note", {"content": "three"})
    with keepstone.open(home.root) as other:
        found = other.agent("alice").session("caf\u00e9").entries()
    assert [entry.text for entry in found] == ["one", "two", "three"]
    assert [path.name for path in folder.glob("*.ndjson")] == ["caf%C3%A9.ndjson"]
