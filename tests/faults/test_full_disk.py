"""A full disk, refused folders, few open files and forks: clear errors, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from tests.faults.asking import REPOSITORY, ROUNDS
from tests.faults.refused import NOBODY
from tests.warm import warm

import keepstone
from keepstone import Home, MemoryService
from keepstone.index.database import SCHEMA
from keepstone.index.vectors import cache


def run(*arguments: str, limit: str = "") -> Any:
    """What a process of its own prints as JSON; it must come to its end, without a warning of Python."""
    command = [*warm(), "-W", "error", *arguments]
    shell = ["sh", "-c", f'{limit} exec "$@"', "sh"] if limit else []
    done = subprocess.run(
        [*shell, *command], cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


# Full


SIZES = np.random.default_rng(3).permutation(np.geomspace(1, 25_000, max(3, ROUNDS // 4)).astype(int))


@pytest.mark.parametrize("size", SIZES.tolist())
def test_where_files_cannot_grow_nothing_acknowledged_is_lost(tmp_path: Path, size: int) -> None:
    said = run("-m", "tests.faults.filling", "limited", str(tmp_path / "home"), str(size))
    assert (said["lost"], said["refused with room"], said["left"]) == ([], [], [])
    assert sum(said["errors"].values()) > 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes."""
    mount = shutil.which("mount") or "mount"
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("only root may mount a small disk")
    yield tmp_path
    subprocess.run([shutil.which("umount") or "umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("free", [0, 30_000, 200_000][: max(1, ROUNDS // 4)])
def test_on_a_full_disk_nothing_acknowledged_is_lost(small_disk: Path, free: int) -> None:
    said = run("-m", "tests.faults.filling", "filled", str(small_disk / "home"), str(free))
    assert (said["lost"], said["refused with room"], said["left"]) == ([], [], [])
    assert sum(said["errors"].values()) > 0


# Refused


def make(root: Path, *, state: bool) -> None:
    """Agents with sessions, files, vectors and a journal of erasures, owned by nobody."""
    with keepstone.open(root, embedder="none", durability="os") as home:
        for slug in "ab":
            agent = home.agent(slug)
            agent.session("s").add_many(
                [
                    {"type": "event", "id": "it", "text": "walnut"},
                    {"type": "event", "id": "gone", "text": "pecan"},
                ]
            )
            agent.session("t").add("note", text="walnut", id="other")
            agent.recall("walnut")
            agent.files.write("x.md", "old")
            agent.session("s").add("note", id="before", text="pecan")
            agent.session("s").purge("before")
        vectors(home)
        if state:
            home.agent("c").session("s").add("note", text="walnut")
            home.purge_agent("c")
    if os.getuid() == 0:
        for path in [root, *root.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)


def vectors(home: Home) -> None:
    service = MemoryService(home, agent="v")
    for row in np.random.default_rng(1).normal(size=(20, 4)):
        service.create_memory("s", "x", row)
    service.query_similar_memories(np.ones(4), "s", 3)


READS = {"entries", "newest", "other session", "recall", "get", "other agent", "read", "list", "similar"}
WRITES = {"add", "update", "purge", "compact", "write", "append", "remove", "purge agent"}
OF_LOGS = {"add", "update", "purge", "compact"}
INDEX = f".index/a/v{SCHEMA}"
SEEN, JOURNAL = ".index/a/purged.seen", "agents/a/memory/sessions/.purged.ndjson"
DENIED, PENDING = "AccessDeniedError", "PurgePendingError"

REFUSALS = [
    ("", 0o000, READS | WRITES | {"agents", "sync", "doctor"}, set()),
    ("", 0o555, {"purge agent"}, set()),  # What must be told of it later has no place: nothing is erased.
    (".keepstone/gone", 0o555, {"purge agent"}, set()),
    (".keepstone/gone", 0o000, {"add", "purge", "purge agent"}, set()),
    (".keepstone", 0o000, {"add", "purge", "purge agent"}, set()),
    (
        "agents/a",
        0o000,
        (READS | WRITES | {"sync"}) - {"other agent", "similar", "purge agent"},
        set(),
    ),
    ("agents/a/memory/sessions", 0o555, {"purge", "compact", "remove"}, set()),
    ("agents/a/memory/sessions/s.ndjson", 0o000, OF_LOGS, set()),
    ("agents/a/memory/sessions/s.ndjson", 0o444, {"add", "update"}, set()),
    ("agents/a/memory/sessions/s.lock", 0o000, {"add", "update", "purge", "compact"}, set()),
    (JOURNAL, 0o444, {"purge", "remove"}, set()),
    (JOURNAL, 0o000, {"add", "purge", "remove"}, set()),  # Which life of its id an entry begins is unknown.
    ("agents/a/files", 0o000, {"read", "list", "write", "append"}, set()),
    ("agents/a/files", 0o555, {"write", "append"}, set()),
    ("agents/a/files/x.md", 0o000, {"read", "append"}, set()),
    (".index", 0o000, set(), {"purge", "remove", "purge agent"}),
    (".index", 0o555, set(), {"purge agent"}),
    (INDEX, 0o555, set(), {"purge", "remove"}),
    (SEEN, 0o000, set(), set()),
    (SEEN, 0o444, set(), set()),
    (f"{INDEX}/index.db", 0o000, set(), set()),
    (f"{INDEX}/index.db", 0o444, set(), set()),
    (f".index/v/v{SCHEMA}/vectors", 0o000, set(), set()),
    (f".index/v/v{SCHEMA}/vectors/1-1.int8", 0o000, set(), set()),
]


@pytest.mark.parametrize(("place", "mode", "denied", "pending"), REFUSALS)
def test_what_the_system_refuses_is_said_and_all_else_goes_on(
    place: str, mode: int, denied: set[str], pending: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "NEWER", 8)
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        home, warm = Path(folder) / "home", Path(folder) / "warm"
        for root in (home, warm):
            make(root, state=place.startswith(".keepstone"))
        (home / place).chmod(mode)
        try:
            said = run("-m", "tests.faults.refused", str(home), str(warm))
        finally:
            with suppress(FileNotFoundError):
                (home / place).chmod(0o755)
        if "purge agent" in denied:  # What was refused has done nothing.
            with keepstone.open(home, embedder="none") as again:
                assert {"it", "other"} <= {hit.entry.id for hit in again.agent("b").recall("walnut")}
    assert {name for name, came in said.items() if came == DENIED} == denied
    assert {name for name, came in said.items() if came == PENDING} == pending
    others = {name for name, came in said.items() if isinstance(came, str) and came.endswith("Error")}
    assert others == denied | pending


# Few open files


AGENTS = """
import sys, json, keepstone
from concurrent.futures import ThreadPoolExecutor
count = int(sys.argv[2])
with keepstone.open(sys.argv[1], durability="os") as home:
    def use(n):
        agent = home.agent(f"a{n}")
        agent.session("s").add("note", text=f"walnut {n}", id="it")
        agent.files.write("x.md", str(n))
        return [hit.entry.text for hit in agent.recall("walnut")], agent.files.read("x.md")
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(use, range(count)))
    wrong = [n for n, came in enumerate(said) if came != ([f"walnut {n}"], str(n))]
    print(json.dumps([len(home.agents()), wrong, len(home.agent("a0").session("s").entries())]))
"""


def test_any_number_of_agents_works_with_256_open_files(tmp_path: Path) -> None:
    count = 5000 if ROUNDS >= 100 else 200
    said = run("-c", AGENTS, str(tmp_path), str(count), limit="ulimit -n 256;")
    assert said == [count, [], 1]


# Forks


FORK = """
import os, sys, json, threading
import numpy as np
import keepstone
from keepstone import MemoryService
from keepstone.index.vectors import cache
from tests.recall.concepts import Concepts
cache.NEWER = 16
embedder = Concepts()
home = keepstone.open(sys.argv[1], embedder=embedder)
agent, session = home.agent("a"), home.agent("a").session("s")
service = MemoryService(home, agent="a", hnsw_from=20)
session.add_many({"type": "note", "text": f"walnut sister {n}"} for n in range(60))
agent.recall("sibling")
service.query_similar_memories(np.ones(embedder.dim), "s", 3)
session.add_many({"type": "note", "text": f"walnut city {n}"} for n in range(100))
embedder.gate.clear()
home._background.wake("a")
writing = threading.Thread(target=lambda: [session.add("note", text=f"thread {n}") for n in range(20)])
writing.start()
child = os.fork()
embedder.gate.set()
name = "parent" if child else "child"
for n in range(20):
    session.add("note", text=f"walnut {name} {n}", id=f"{name}{n}")
    assert agent.recall("sibling", limit=3)[0].entry.text.startswith("walnut sister")
    service.query_similar_memories(np.ones(embedder.dim), "s", 3)
home.embed()
assert not agent.recall("sibling").pending
home.close()
if not child:
    os._exit(0)
writing.join()
status = os.waitpid(child, 0)[1]
print(json.dumps([status, len(session.entries()), [f.message for f in home.doctor() if f.level == "error"]]))
"""


@pytest.mark.parametrize("attempt", range(max(2, ROUNDS // 20)))
def test_a_fork_while_threads_write_and_embed_loses_nothing(tmp_path: Path, attempt: int) -> None:
    assert run("-c", FORK, str(tmp_path)) == [0, 60 + 100 + 20 + 40, []], attempt


FORK_AMID_A_WRITE = """
import os, sys, json, threading, time
import keepstone
home = keepstone.open(sys.argv[1], embedder="none")
agent, session = home.agent("a"), home.agent("a").session("s")
session.add("note", text="walnut", id="first")
agent.recall("walnut")
database = home._store._agents._open["a"].index._database
begun, told = threading.Event(), []

def write():
    with database.writing():
        begun.set()
        time.sleep(0.2)

threading.Thread(target=write).start()
begun.wait()
reading, writing = os.pipe()
child = os.fork()
name = "parent" if child else "child"
session.add("note", text="walnut", id=name)
hits = agent.recall("walnut")
if not child:
    os.write(writing, json.dumps([hits.stale, len(hits) >= 2]).encode())
    home.close()
    os._exit(0)
status = os.waitpid(child, 0)[1]
session.add("note", text="walnut", id="last")
told = json.loads(os.read(reading, 99))
levels = {finding.level for finding in home.doctor(deep=True)}
print(json.dumps([status, told, len(agent.recall("walnut")), sorted(levels)]))
"""


def test_a_child_forked_amid_a_write_to_the_index_does_not_wait_for_it(tmp_path: Path) -> None:
    assert run("-c", FORK_AMID_A_WRITE, str(tmp_path)) == [0, [False, True], 4, ["ok"]]
