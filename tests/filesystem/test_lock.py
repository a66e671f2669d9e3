import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from tests.warm import warm

import keepstone
from keepstone.errors import LockTimeoutError
from keepstone.filesystem.confine import Folder, MovedError
from keepstone.filesystem.lock import WAIT_LIMIT, Lock

NAME = "s1.lock"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "sessions", create=True) as folder:
        yield folder


@pytest.fixture
def lock(folder: Folder) -> Iterator[Lock]:
    lock = Lock(folder, NAME)
    yield lock
    lock.close()


@contextmanager
def process(
    program: str, *arguments: object, python: Sequence[str] = (sys.executable,)
) -> Iterator["subprocess.Popen[str]"]:
    """A process that has said its first line; it ends when its input is closed."""
    command = [*python, "-c", program, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        running.stdout.readline()
        yield running


HOLD_FILELOCK = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""
HOLD_OURS = """
import sys
from pathlib import Path
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
with Lock(Folder(Path(sys.argv[1]).parent), Path(sys.argv[1]).name).hold():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("program", [HOLD_FILELOCK, HOLD_OURS])
def test_another_process_that_holds_the_lock_keeps_us_out(lock: Lock, folder: Folder, program: str) -> None:
    with process(program, folder.path / NAME):
        message = f"timed out after 0 s: another writer holds .*{NAME}; nothing was written: try again"
        with pytest.raises(LockTimeoutError, match=message), lock.hold(timeout=0):
            pytest.fail("two held one lock")
    with lock.hold(timeout=5):
        pass


def test_the_lock_keeps_out_filelock_in_another_process(lock: Lock, folder: Folder) -> None:
    program = """
import sys
from filelock import FileLock, Timeout
try:
    FileLock(sys.argv[1]).acquire(timeout=0)
except Timeout:
    sys.exit(7)
"""
    command = [sys.executable, "-c", program, str(folder.path / NAME)]
    with lock.hold():
        assert subprocess.run(command, timeout=30, check=False).returncode == 7
    assert subprocess.run(command, timeout=30, check=False).returncode == 0


def test_a_killed_holder_leaves_the_lock_free(lock: Lock, folder: Folder) -> None:
    with process(HOLD_OURS, folder.path / NAME) as holder:
        holder.kill()
        holder.wait()
        with lock.hold(timeout=5):
            pass


def test_the_lock_is_waited_for_until_it_is_free(lock: Lock, folder: Folder) -> None:
    with process(HOLD_FILELOCK, folder.path / NAME) as holder, ThreadPoolExecutor() as threads:
        waiting = threads.submit(take, lock)
        assert holder.stdin
        holder.stdin.close()
        assert waiting.result(timeout=30) is False


def take(lock: Lock) -> bool:
    with lock.hold(timeout=30) as marked:
        return marked


def test_a_second_thread_times_out_while_the_first_holds(lock: Lock) -> None:
    def try_it() -> None:
        with lock.hold(timeout=0.01):
            pytest.fail("two threads held one lock")

    with lock.hold(), ThreadPoolExecutor() as threads:
        assert isinstance(threads.submit(try_it).exception(timeout=30), LockTimeoutError)


def test_threads_that_share_a_lock_hold_it_one_after_another(lock: Lock) -> None:
    inside = threading.Lock()
    start = threading.Barrier(8)

    def hold_often(_: int) -> int:
        start.wait()
        for _ in range(50):
            with lock.hold():
                assert inside.acquire(blocking=False)
                inside.release()
        return 50

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(hold_often, range(8))) == 400


def test_an_error_inside_gives_the_lock_back(lock: Lock) -> None:
    with pytest.raises(ZeroDivisionError), lock.hold():
        _ = 1 / 0
    with lock.hold(timeout=0):
        pass


def test_a_removed_lock_file_is_noticed_and_made_again(lock: Lock, folder: Folder) -> None:
    with lock.hold():
        pass
    folder.unlink(NAME)
    with lock.hold(), pytest.raises(Timeout):
        FileLock(folder.path / NAME).acquire(timeout=0)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_renamed_lock_file_blocks_no_writer(lock: Lock, folder: Folder, replaced: bool) -> None:  # noqa: FBT001
    with lock.hold():
        pass
    (folder.path / NAME).rename(folder.path / "other")
    if replaced:
        (folder.path / NAME).touch()
    with lock.hold(), pytest.raises(Timeout):
        FileLock(folder.path / NAME).acquire(timeout=0)
    with FileLock(folder.path / NAME), pytest.raises(LockTimeoutError), lock.hold(timeout=0):
        pytest.fail("two held one lock")


@pytest.mark.parametrize("replaced", [True, False])
def test_the_lock_of_a_folder_that_was_moved_is_refused(lock: Lock, folder: Folder, replaced: bool) -> None:  # noqa: FBT001
    with lock.hold():
        pass
    moved = folder.path.rename(folder.path.with_name("moved"))
    if replaced:
        folder.path.mkdir()
    with pytest.raises(MovedError, match="nothing was written"), lock.hold(timeout=0):
        pytest.fail("held a lock that others do not find")
    with FileLock(moved / NAME, timeout=0):
        pass


def test_the_lock_of_a_folder_that_was_removed_is_refused(lock: Lock, folder: Folder) -> None:
    folder.path.rmdir()
    with pytest.raises(MovedError, match="nothing was written"), lock.hold(timeout=0):
        pytest.fail("held a lock that others do not find")


def test_a_lock_is_held_until_its_file_is_removed(lock: Lock, folder: Folder) -> None:
    with lock.hold():
        lock.remove()
        with pytest.raises(Timeout):
            FileLock(folder.path / NAME).acquire(timeout=0)
    assert not (folder.path / NAME).exists()


def test_a_mark_outlives_a_killed_holder_and_can_be_taken_back(lock: Lock, folder: Folder) -> None:
    with lock.hold() as marked:
        assert not marked
        lock.mark(on=True)
    other = Lock(folder, NAME)
    with other.hold() as marked:
        assert marked
        other.mark(on=False)
    with lock.hold() as marked:
        assert not marked
    other.close()


def test_who_saw_another_wait_keeps_back_before_taking_the_lock_again(
    lock: Lock, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    for _ in range(3):
        take(lock)
    assert slept == []
    os.utime(folder.path / NAME, ns=(1, 1))
    take(lock)
    take(lock)
    assert len(slept) == 1


def test_an_idle_lock_is_closed_and_a_held_one_is_not(lock: Lock) -> None:
    done: list[str] = []
    with lock.hold():
        assert not lock.if_free(lambda: done.append("held"))
    assert lock.if_free(lambda: done.append("idle"))
    assert done == ["idle"]


def test_a_closed_lock_opens_again_at_its_next_use(lock: Lock) -> None:
    lock.close()
    lock.close()
    with lock.hold(timeout=0):
        pass


ADD = """
import sys
import keepstone
def add(session, data):
    while True:
        try:
            return session.add("note", data)
        except keepstone.LockTimeoutError:  # Nothing was written; on a busy machine the turn may come late.
            pass
with keepstone.open(sys.argv[1]) as home:
    session = home.agent("coder").session("s1")
    print("open", flush=True)
    sys.stdin.readline()
    for number in range(30):
        add(session, {"writer": sys.argv[2], "number": number})
"""


def test_of_sixteen_processes_that_add_at_once_none_loses_an_entry_or_adds_it_twice(tmp_path: Path) -> None:
    with ExitStack() as stack:
        writers = [stack.enter_context(process(ADD, tmp_path, writer, python=warm())) for writer in range(16)]
        for writer in writers:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
    assert [writer.returncode for writer in writers] == [0] * 16
    with keepstone.open(tmp_path) as home:
        entries = home.agent("coder").session("s1").entries()
    written = Counter((entry.data["writer"], entry.data["number"]) for entry in entries)
    assert written == Counter((str(writer), number) for writer in range(16) for number in range(30))


def test_a_context_bounds_its_waits_and_no_others(lock: Lock, folder: Folder) -> None:
    def wait(timeout: float) -> str:
        with pytest.raises(LockTimeoutError) as refused, lock.hold(timeout):
            pass
        return str(refused.value)

    with FileLock(folder.path / NAME):
        bounded = copy_context()
        bounded.run(WAIT_LIMIT.set, 0.01)
        assert "after 0.01 s" in bounded.run(wait, 60)
        assert "after 0 s" in bounded.run(wait, 0)
        assert "after 0.02 s" in wait(0.02)
