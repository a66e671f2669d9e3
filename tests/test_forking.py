"""A process that forks while its threads are busy: both processes go on as if each had begun alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import pytest

from keepstone.index.database import Database

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


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


def test_a_fork_waits_until_nobody_uses_the_index(tmp_path: Path) -> None:
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
