"""A process that forks while its threads are busy: both processes go on as if each had begun alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import pytest
from filelock import FileLock, Timeout

import keepstone
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.index.database import Database

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def forked(act: Callable[[], object]) -> int:
    """Start a child that acts and ends with 0, or with 1 where that raises."""
    child = os.fork()
    if child:
        return child
    try:
        act()
        os._exit(0)
    finally:
        os._exit(1)


def ended_well(child: int) -> bool:
    return os.waitpid(child, 0)[1] == 0


def numbers(database: Database) -> list[int]:
    with database.guard:
        return [number for (number,) in database.rows("SELECT number FROM gone ORDER BY number")]


def add(database: Database, number: int) -> None:
    with database.writing():
        database.execute("INSERT INTO gone VALUES(?, 0, 0)", (number,))


def open_and_add(path: Path, number: int) -> None:
    """What a child does: what its parent opened is closed to it."""
    add(Database(path), number)


def test_a_fork_waits_until_the_index_is_unused(tmp_path: Path) -> None:
    database, using, done = Database(tmp_path / "index"), threading.Event(), []

    def use() -> None:
        with database.writing():
            using.set()
            database.execute(
                "INSERT INTO gone WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 50000)"
                " SELECT i, 0, 0 FROM n"
            )
            done.append(True)

    thread = threading.Thread(target=use)
    thread.start()
    using.wait()
    child = forked(lambda: open_and_add(tmp_path / "index", 50_001) if done else os._exit(1))
    thread.join()
    assert ended_well(child)
    assert len(numbers(database)) == 50_001


def test_what_a_child_adds_stays_when_its_parent_closes_the_index(tmp_path: Path) -> None:
    database = Database(tmp_path / "index")
    add(database, 1)
    asking, told = Pipe(), Pipe()

    def child() -> None:
        own = Database(tmp_path / "index")
        add(own, 2)
        asking[0].send(None)
        told[1].recv()
        add(own, 3)
        own.close()

    pid = forked(child)
    asking[1].recv()
    database.close()
    told[0].send(None)
    assert ended_well(pid)
    assert numbers(Database(tmp_path / "index")) == [1, 2, 3]


def test_a_child_never_takes_a_lock_of_its_parent_for_its_own(tmp_path: Path) -> None:
    database, reading = Database(tmp_path / "index"), threading.Event()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            numbers(database)
            reading.set()

    thread = threading.Thread(target=read)
    thread.start()
    reading.wait()
    children = [forked(partial(open_and_add, tmp_path / "index", n)) for n in range(20)]
    stop.set()
    thread.join()
    assert {ended_well(child) for child in children} == {True}
    assert numbers(database) == list(range(20))


def test_a_closed_index_stays_closed_over_a_fork(tmp_path: Path) -> None:
    database = Database(tmp_path / "index")
    database.close()
    assert ended_well(forked(lambda: None))
    with pytest.raises(Exception, match="closed"):
        numbers(database)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system does not list open files"
)


def open_below(root: Path) -> list[str]:
    """Return what this process has open below a folder."""
    links = [Path("/proc/self/fd") / name for name in os.listdir("/proc/self/fd")]
    return [target for link in links if (target := _target(link)).startswith(str(root))]


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except FileNotFoundError:
        return ""


FORKED_WHILE_LOCKED = """
import os, sys, threading
from pathlib import Path
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
lock, held = Lock(Folder(Path(sys.argv[1])), "s.lock"), threading.Event()
def hold():
    with lock.hold():
        held.set()
        threading.Event().wait()
threading.Thread(target=hold, daemon=True).start()
held.wait()
if not os.fork():
    print("forked", flush=True)
    sys.stdin.read()
    os._exit(0)
threading.Event().wait()
"""


def test_a_child_never_keeps_the_lock_of_a_killed_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED_WHILE_LOCKED, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        assert parent.stdout.readline() == "forked\n"
        parent.kill()
        assert os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT)
        with FileLock(tmp_path / "s.lock", timeout=0):
            pass
        assert parent.stdin
        parent.stdin.close()  # The child goes on until here.
        assert parent.stdout.read() == ""


def test_a_child_that_leaves_its_parents_lock_does_not_unlock_it(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder, closing(Lock(folder, "s.lock")) as lock, ExitStack() as held:
        held.enter_context(lock.hold())
        assert ended_well(forked(held.close))
        with pytest.raises(Timeout):
            FileLock(tmp_path / "s.lock").acquire(timeout=0)


def test_a_child_removes_no_lock_file_of_its_parent(tmp_path: Path) -> None:
    with Folder(tmp_path) as folder, ExitStack() as held:
        lock = Lock(folder, "s.lock")
        held.enter_context(lock.hold())
        lock.remove()
        assert ended_well(forked(held.close))
        assert (tmp_path / "s.lock").exists()


@needs_proc
def test_a_fork_at_any_moment_leaves_the_child_no_lock(tmp_path: Path) -> None:
    stop = threading.Event()

    def work(number: int) -> None:
        with Folder(tmp_path) as folder:
            lock = Lock(folder, f"{number}.lock")
            while not stop.is_set():
                with lock.hold():
                    pass
                lock.close()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()

    def look() -> None:
        assert [name for name in open_below(tmp_path) if name.endswith(".lock")] == []

    children = [forked(look) for _ in range(100)]
    stop.set()
    for thread in threads:
        thread.join()
    assert {ended_well(child) for child in children} == {True}


@needs_proc
def test_a_child_has_no_more_files_open_than_its_parent(tmp_path: Path) -> None:
    home = keepstone.open(tmp_path, durability="os")

    def use() -> None:
        for number in range(24):
            home.agent(f"a{number % 8}").session(f"s{number}").add("note", {"content": "walnut"})

    use()
    count = len(open_below(tmp_path))

    def child() -> None:
        assert open_below(tmp_path) == []
        use()
        assert len(open_below(tmp_path)) <= count

    assert ended_well(forked(child))
    home.close()


def test_a_child_forked_during_a_write_of_its_parent_ends_and_changes_nothing(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os") as home:
        files, children = home.agent("a").files, []
        home.agent("a").session("s").add("note", text="walnut")

        def fork(_: object) -> None:
            children.append(forked(lambda: home.agent("a").session("s").add("note", text="walnut")))

        files.write("plan.md", "one", check=fork)
        assert [ended_well(child) for child in children] == [True]
        assert files.read("plan.md") == "one"
        assert len(home.agent("a").session("s").entries()) == 2
