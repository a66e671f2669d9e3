"""However many agents and sessions there are, few files are open, and nothing is lost over it."""

import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import keepstone
from keepstone import Home
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index import Index
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.agent_pool import MOST_OPEN, OpenAgents, most_open
from keepstone.store.files.purge import Eraser


def open_files() -> list[str]:
    return [str(path.resolve()) for path in Path("/proc/self/fd").iterdir()]


def run(program: str, *arguments: str) -> str:
    """Run a program in a process of its own and return what it prints."""
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="the system does not list open files"
)


@needs_proc
def test_the_number_of_open_indexes_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.store.files.agent_pool.MOST_OPEN", 64)
    with keepstone.open(tmp_path, durability="os") as home:
        for n in range(200):
            home.agent(f"a{n}").session("s").add("note", {"content": f"walnut {n}"})
        mine = [name for name in open_files() if name.startswith(str(tmp_path))]
        assert sum(name.endswith("index.db") for name in mine) <= 64
        assert home.agent("a0").recall("walnut")[0].entry.text == "walnut 0"
    assert not [name for name in open_files() if name.startswith(str(tmp_path))]


@needs_proc
def test_agents_beyond_64_stay_open(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os") as home:
        for n in range(80):
            home.agent(f"a{n}").session("s").add("note", {"content": f"walnut {n}"})
        assert sum(
            name.startswith(str(tmp_path)) and name.endswith("index.db") for name in open_files()
        ) == min(80, most_open())


@pytest.fixture
def few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    """A home that may hold two agents open, with eight agents that were all used once."""
    monkeypatch.setattr("keepstone.store.files.agent_pool.MOST_OPEN", 2)
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        add_to_all(home, 0)
        yield home


def add_to_all(home: Home, turn: int) -> None:
    for n in range(8):
        home.agent(f"a{n}").session("s").add("note", {"content": f"walnut {turn}"})


def test_adds_to_more_agents_than_may_be_open_open_no_index(
    few: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = Index.__init__

    def note(index: Index, path: Path, language: str) -> None:
        opened.append(path.parts[-3])
        real(index, path, language)

    monkeypatch.setattr(Index, "__init__", note)
    for turn in range(1, 4):
        add_to_all(few, turn)
    assert opened == []
    assert {hit.entry.text for hit in few.agent("a0").recall("walnut")} == {f"walnut {n}" for n in range(4)}
    assert opened == ["a0"]


def test_a_parked_agent_keeps_no_list_of_its_sessions(few: Home) -> None:
    folder = few.root / "agents/a0/memory/sessions"
    for number in range(2_000):
        (folder / f"session-{number}.ndjson").touch()
    with few._store._using("a0") as logs:  # type: ignore[attr-defined]  # noqa: SLF001
        logs.refresh(0)
        known = logs.session_files
    assert len(known._known) >= 2_000  # noqa: SLF001  Other threads allocate memory, too.
    add_to_all(few, 1)  # As few agents may be open, this one is parked.
    assert not known._known  # noqa: SLF001


ASK = """
import sys, keepstone
with keepstone.open(sys.argv[1], embedder="none") as home:
    print(len(home.agent("a0").recall("walnut")))
"""


def test_add_that_left_the_index_closed_is_recalled_by_any_process(few: Home) -> None:
    add_to_all(few, 1)
    assert run(ASK, str(few.root)).split() == ["2"]
    assert len(few.agent("a1").recall("walnut", sessions=["s"])) == 2
    assert len(few.agent("a2").session("s").entries()) == 2
    assert few.agent("a3").count() == 2


@pytest.mark.parametrize("escaped", [False, True])
def test_id_is_taken_once_while_the_index_is_closed(few: Home, *, escaped: bool) -> None:
    session = few.agent("a0").session("s")
    there = "0199a000-0000-7000-8000-000000000001"
    log = few.root / "agents/a0/memory/sessions/s.ndjson"
    with log.open("a") as file:
        written = there.replace("a", "\\u0061") if escaped else there
        file.write(f'{{"id":"{written}","ts":"2026-01-11T14:31:00Z","type":"note","text":"pecan"}}\n')
    assert session.add("note", text="pecan", id=there).id == there
    with pytest.raises(keepstone.EntryExistsError):
        session.add("note", text="almond", id=there)
    assert len(session.entries()) == 2


def test_agent_whose_folder_was_replaced_while_closed_is_opened_as_a_new_one(few: Home) -> None:
    folder = few.root / "agents/a0/memory"
    shutil.rmtree(folder)
    few.agent("a0").session("s").add("note", {"content": "pecan"})
    assert [entry.text for entry in few.agent("a0").session("s").entries()] == ["pecan"]
    assert few.agent("a0").recall("walnut") == []


def test_purge_reaches_what_was_added_with_the_index_closed(few: Home) -> None:
    session = few.agent("a0").session("s")
    added = session.add("note", {"content": "a pecan"})
    session.purge(added.id)
    assert few.agent("a0").recall("pecan") == []
    assert b"pecan" not in b"".join(path.read_bytes() for path in few.root.rglob("*") if path.is_file())


def test_closing_a_large_index_for_room_leaves_its_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.store.files.agent_pool.MOST_OPEN", 1)
    with keepstone.open(tmp_path) as home:
        for agent in ("a", "b"):
            session = home.agent(agent).session("s")
            session.add_many({"type": "note", "text": f"walnut {n}"} for n in range(2_000))
            session.add("note", {"content": "walnut"})
        assert list(tmp_path.glob(".index/a/*/index.db-wal"))
        assert home.agent("a").recall("walnut")


MANY = """
import resource, sys, keepstone
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
agents, sessions = int(sys.argv[2]), int(sys.argv[3])
with keepstone.open(sys.argv[1], durability="os") as home:
    for turn in range(2):
        for a in range(agents):
            for s in range(sessions):
                home.agent(f"a{a}").session(f"s{s}").add("note", {"content": f"walnut {turn}"})
    all = [home.agent(f"a{a}").session(f"s{s}") for a in range(agents) for s in range(sessions)]
    print(sum(len(session.entries()) for session in all))
    print(sum(len(home.agent(f"a{a}").recall("walnut", limit=5000)) for a in range(agents)))
"""


@pytest.mark.parametrize(("agents", "sessions"), [(150, 1), (1, 150), (13, 13)])
def test_128_open_files_are_enough_for_any_number(tmp_path: Path, agents: int, sessions: int) -> None:
    total = 2 * agents * sessions
    assert run(MANY, str(tmp_path), str(agents), str(sessions)).split() == [str(total)] * 2


@needs_proc
def test_an_agent_in_use_is_closed_by_its_last_user(tmp_path: Path) -> None:
    def make(agent: str, create: bool) -> AgentLogs:  # noqa: FBT001
        return AgentLogs(
            tmp_path,
            LAYOUTS["default"],
            agent,
            durable=False,
            create=create,
            most_logs=lambda: 8,
            finish=lambda _: None,
            language="en",
        )

    agents = OpenAgents(make)
    for close in (agents.close, lambda: agents.drop("a"), lambda: shutil.rmtree(tmp_path / "agents/a")):
        with agents.using("a", create=True) as first, agents.using("a", create=True) as second:
            assert first is second
            assert first is not None
            close()
            with agents.using("a", create=False):
                first.folder.sync()
            first.folder.sync()
    agents.close()
    assert not [name for name in open_files() if name.startswith(str(tmp_path))]


@dataclass
class Pause:
    """Where the next thread that opens a file of this name waits, for a minute at most."""

    name: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)


@pytest.fixture
def pause(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pause]:
    pause, real = Pause(), os.open

    def slow(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == pause.name and not pause.reached.is_set():
            pause.reached.set()
            pause.over.wait(60)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", slow)
    yield pause
    pause.over.set()


@pytest.mark.parametrize("close", [Home.close, lambda home: home.purge_agent("a")], ids=["close", "purge"])
@pytest.mark.parametrize("write", [True, False], ids=["write", "read"])
def test_no_thread_ever_meets_the_folder_of_another_agent(
    tmp_path: Path,
    pause: Pause,
    close: Callable[[Home], None],
    write: bool,  # noqa: FBT001
) -> None:
    home = keepstone.open(tmp_path, durability="os")
    for agent in ("a", "b"):
        home.agent(agent).session("s").add("note", {"content": f"walnut of {agent}"})
    home.close()
    home.agent("a").session("s").info()

    def use() -> list[str]:
        session = home.agent("a").session("new" if write else "s")
        if write:
            session.add("note", {"content": "walnut of a"})
        return [entry.text for entry in session.entries(archived=True)]

    pause.name = "new.ndjson" if write else "s.ndjson"
    with ThreadPoolExecutor() as threads:
        used = threads.submit(use)
        assert pause.reached.wait(30)
        close(home)
        home.agent("b").session("s").info()  # What is opened next gets the lowest number that is free.
        pause.over.set()
        assert set(used.result(timeout=30)) <= {"walnut of a"}
    assert {path.name for path in (tmp_path / "agents/b/memory/sessions").iterdir()} == {"s.ndjson", "s.lock"}
    home.close()


def test_an_unfinished_purge_of_one_agent_keeps_no_other_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def finish(_: Eraser, logs: AgentLogs) -> None:
        if logs.agent == "a":
            begun.set()
            go_on.wait(30)

    monkeypatch.setattr(Eraser, "finish", finish)
    with keepstone.open(tmp_path, durability="os") as home, ThreadPoolExecutor() as threads:
        opening = threads.submit(home.agent("a").session("s").add, "note", {"n": 1})
        assert begun.wait(30)
        threads.submit(home.agent("b").session("s").add, "note", {"n": 1}).result(timeout=30)
        assert not opening.done()
        go_on.set()
        opening.result(timeout=30)


def test_a_long_catch_up_of_one_agent_keeps_no_other_from_being_opened(tmp_path: Path, pause: Pause) -> None:
    with keepstone.open(tmp_path, durability="os") as home, ThreadPoolExecutor() as threads:
        home.agent("a").session("s").add("note", {"content": "walnut"})
        shutil.rmtree(tmp_path / ".index")
        home.close()
        pause.name = "s.ndjson"
        recalled = threads.submit(home.agent("a").recall, "walnut")
        assert pause.reached.wait(30)
        threads.submit(home.agent("b").session("new").add, "note", {"n": 1}).result(timeout=30)
        pause.over.set()
        assert len(recalled.result(timeout=30)) == 1


THREADS = """
import os, resource, sys, threading, keepstone
def fail(what):
    sys.excepthook(*what[:3])
    os._exit(1)
threading.excepthook = fail
resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
def work(n):
    for turn in range(10):
        for s in range(8):
            home.agent(f"a{(n + s) % 8}").session(f"s{s}").add("note", {"n": n})
with keepstone.open(sys.argv[1], durability="os") as home:
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    print(sum(len(home.agent(f"a{a}").session(f"s{s}").entries()) for a in range(8) for s in range(8)))
"""


def test_threads_under_few_open_files_lose_nothing(tmp_path: Path) -> None:
    assert run(THREADS, str(tmp_path)).split() == ["640"]


def test_the_number_of_agents_held_open_follows_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    for allowed, expected in ((1 << 20, MOST_OPEN), (resource.RLIM_INFINITY, MOST_OPEN), (128, 8), (10, 1)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, allowed=allowed: (allowed, allowed))
        assert most_open() == expected


FORK = """
import os, sys, keepstone
home = keepstone.open(sys.argv[1])
session = home.agent("a").session("s")
session.add_many({"type": "event", "id": f"before{n}", "content": "walnut"} for n in range(20))
home.agent("a").recall("walnut")
child = os.fork()
name = "parent" if child else "child"
for n in range(30):
    session.add("note", {"content": f"walnut {name}"}, id=f"{name}{n}")
    home.agent("a").session(name).add("note", {"content": "pecan"}, id=f"{name}{n}")
    home.agent("a").recall("walnut", limit=3)
home.close()
if child:
    assert os.waitpid(child, 0)[1] == 0
    print(len(session.entries()), len(home.agent("a").recall("walnut", limit=500)), len(home.doctor()))
"""


@pytest.mark.skipif(not hasattr(sys, "getdlopenflags"), reason="the system has no fork")
def test_parent_and_child_of_a_fork_both_add_and_nothing_is_lost(tmp_path: Path) -> None:
    entries, _, findings = run(FORK, str(tmp_path)).split()
    assert (entries, findings) == ("80", "3")
    with keepstone.open(tmp_path) as home:
        assert len({hit.entry.id for hit in home.agent("a").recall("walnut", limit=500)}) == 80


READ_ONLY = """
import os, sys, keepstone
keepstone.open(sys.argv[2]).agent("a").session("s").add("note", {"content": "walnut"})
keepstone.open(sys.argv[2]).agent("a").recall("walnut")
if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)
home = keepstone.open(sys.argv[1])
agent = home.agent("a")
print(*[hit.entry.id for hit in agent.recall("walnut")])
print(*[entry.id for entry in agent.session("s").entries(1)])
try:
    agent.session("s").add("note", {"content": "refused"})
except keepstone.AccessDeniedError:
    print("refused")
"""


@pytest.mark.parametrize("indexed", [True, False])
def test_a_home_that_may_only_be_read_is_still_recalled(indexed: bool) -> None:  # noqa: FBT001
    with TemporaryDirectory() as folder, TemporaryDirectory() as warm:
        root = Path(folder) / "home"
        with keepstone.open(root) as home:
            home.agent("a").session("s").add("note", {"content": "walnut"}, id="it")
            home.agent("a").recall("walnut")
        if not indexed:
            shutil.rmtree(root / ".index")
        for path in [Path(folder), *Path(folder).rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            assert run(READ_ONLY, str(root), warm).split() == ["it", "it", "refused"]
        finally:
            for path in [Path(folder), *Path(folder).rglob("*")]:
                path.chmod(0o755)
