"""No call for one agent touches or returns a byte of another's memory, or anything outside of the home."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.faults.asking import ROUNDS
from tests.memories import Letters

import keepstone
from keepstone import Home, KeepstoneError, MemoryAdapter, MemoryService, SessionMemory

SECRET = "belongs to b"  # noqa: S105  A word to look for.


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Two agents with the same ids, the grants of a third one, and a file outside."""
    (tmp_path / "outside.md").write_text(SECRET)
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        fill(home)
        yield home


def fill(home: Home) -> None:
    for slug, text in (("a", "my own"), ("b", SECRET)):
        agent = home.agent(slug)
        agent.session("s").add("note", text=text, id="same", pinned=True, embedding=[1.0, 0.0])
        agent.files.write("sub/x.md", text)
        agent.recall("own")
    # What a third agent and the two grant one another leaves the two apart.
    third = home.agent("c")
    third.session("s").add("note", text="of the third", id="same")
    for slug in ("a", "b"):
        third.grant(slug, "write")
        home.agent(slug).grant("c", "write")


FILES_JOURNAL = "home/.keepstone/sync/deleted.ndjson"
"""Tells by digests of files that were begun and deleted."""


def everything(root: Path) -> dict[str, bytes]:
    """What is there outside of the agent a, and outside of the home, without locks, indexes and journal."""
    found = {}
    for path in root.rglob("*"):
        name = str(path.relative_to(root))
        if (
            path.is_file()
            and not path.is_symlink()
            and not name.startswith(("home/agents/a/", "home/.index/", FILES_JOURNAL))
        ):
            found[name] = path.read_bytes()
    return found


# Names


SLUGS = [
    "",
    ".",
    "..",
    "../b",
    "b/",
    "/b",
    "b/../a",
    ".b",
    "b.",
    "b\0",
    "ａ",
    "a b",
    "b\n",
    "%62",
    "~",
    "a" * 129,
]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_hostile_slug_is_refused_and_touches_nothing(home: Home, slug: str) -> None:
    before = everything(home.root.parent)
    acts: list[Callable[[], Any]] = [
        lambda: home.agent(slug),
        lambda: home.purge_agent(slug),
        lambda: MemoryAdapter(home.root, slug).list(),
        lambda: MemoryService(home, agent=slug),
    ]
    for act in acts:
        with pytest.raises(keepstone.InvalidAgentIdError):
            act()
    assert everything(home.root.parent) == before


TRICKS = st.sampled_from(
    ["..", ".", "/", "\\", "\0", "%2e%2e", "b", "a", "~", "C:", "．．", "e\u0301", "é", ".index", "x"]
)
NAMES = st.one_of(st.lists(TRICKS, min_size=1, max_size=6).map("".join), st.text(min_size=1, max_size=30))


@given(NAMES)
@settings(max_examples=ROUNDS * 4)
def test_any_session_id_stays_in_the_agents_folder(name: str) -> None:
    with kept_home() as (home, before):
        session = home.agent("a").session
        with suppress(keepstone.InvalidSessionIdError):
            session(name).add("note", text="mine", id="same")
            assert [entry.text for entry in session(name).entries()] == ["mine"]
            session(name).compact()
            session(name).purge("same")
            session(name).remove()
        assert everything(home.root.parent) == before


@given(NAMES)
@settings(max_examples=ROUNDS * 4)
def test_any_path_of_a_file_stays_in_the_agents_folder(name: str) -> None:
    with kept_home() as (home, before):
        files = home.agent("a").files
        with suppress(KeepstoneError, ValueError):
            files.write(name, "mine")
            files.append(name, "!")
            assert files.read(name) == "mine!"
            assert name in files.list()
            files.delete(name)
        with suppress(KeepstoneError, ValueError):
            assert SECRET not in files.read(name)
        assert everything(home.root.parent) == before


@contextmanager
def kept_home() -> Iterator[tuple[Home, dict[str, bytes]]]:
    """A home that examples share, and what lies around it."""
    if not _kept:
        root = Path(tempfile.mkdtemp(prefix="keepstone-isolation"))
        (root / "outside.md").write_text(SECRET)
        home = keepstone.open(root / "home", durability="os", embedder="none")
        fill(home)
        _kept.append(home)
    yield _kept[0], everything(_kept[0].root.parent)


_kept: list[Home] = []


@pytest.fixture(autouse=True, scope="module")
def _cleared() -> Iterator[None]:
    yield
    while _kept:  # Emptied: workers that take tests from one another may come to this module again.
        home = _kept.pop()
        home.close()
        shutil.rmtree(home.root.parent)


def test_names_that_look_alike_are_different_sessions_and_agents(home: Home) -> None:
    for number, name in enumerate(["é", "e\u0301", "É", "E\u0301", "ＡＢ", "AB", "ab", "ﬁ", "fi"]):
        home.agent("a").session(name).add("note", text=str(number), id="same")
    assert (
        len({home.agent("a").session(info.id).entries()[0].text for info in home.agent("a").sessions()}) == 10
    )
    home.agent("A").session("s").add("note", text="of capital A", id="same")
    assert home.agent("a").session("s").entries()[0].text == "my own"


# Links and what is no file


@contextmanager
def flipping(path: Path, target: Path) -> Iterator[None]:
    """Let a folder be, again and again, a link to another one."""
    aside, enough = path.with_name(f"{path.name}.aside"), threading.Event()

    def flip() -> None:
        while not enough.is_set():
            for act in (
                lambda: path.rename(aside),
                lambda: path.symlink_to(target),
                path.unlink,
                restore,
            ):
                with suppress(OSError):  # Another process made the folder again.
                    act()

    def restore() -> None:
        if aside.exists():
            shutil.rmtree(path, ignore_errors=True)
            aside.rename(path)

    thread = threading.Thread(target=flip)
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
        while aside.exists():
            with suppress(OSError):
                restore()


@pytest.mark.parametrize("place", ["agents/a/files/sub", "agents/a/files", "agents/a"])
def test_no_file_is_reached_through_a_link_that_is_swapped_in(home: Home, place: str) -> None:
    before = everything(home.root.parent)
    files, read = home.agent("a").files, set()
    target = home.root / place.replace("/a", "/b", 1)
    with flipping(home.root / place, target):
        for number in range(max(150, 5 * ROUNDS)):
            for act in (
                lambda: read.add(files.read("sub/x.md")),
                lambda number=number: files.write("sub/x.md", f"my own {number}"),
                lambda: files.append("sub/x.md", "."),
                lambda: read.update(files.list()),
            ):
                with suppress(KeepstoneError, ValueError):
                    act()
    assert not [text for text in read if SECRET in text]
    assert everything(home.root.parent) == before


@pytest.mark.parametrize("place", ["agents/a/memory/sessions", "agents/a/memory", "agents/a"])
def test_no_session_is_reached_through_a_link_that_is_swapped_in(home: Home, place: str) -> None:
    before = everything(home.root.parent)
    home.close()
    target = home.root / place.replace("/a", "/b", 1)
    with flipping(home.root / place, target):
        for number in range(max(60, 2 * ROUNDS)):
            with keepstone.open(home.root, durability="os", embedder="none") as again:
                session = again.agent("a").session("s")
                for act in (
                    lambda session=session, number=number: session.add("note", text=f"my own {number}"),
                    lambda session=session: session.compact(),
                ):
                    with suppress(KeepstoneError):
                        act()  # type: ignore[no-untyped-call]
                with suppress(KeepstoneError):
                    assert not [entry for entry in session.entries() if SECRET in entry.text]
                with suppress(KeepstoneError):
                    assert not [
                        hit for hit in again.agent("a").recall("belongs own") if SECRET in hit.entry.text
                    ]
    assert everything(home.root.parent) == before


PLACES = [
    "agents/a/memory/sessions/s.ndjson",
    "agents/a/memory/sessions/s.lock",
    "agents/a/memory/sessions/.archive/s.ndjson",
    "agents/a/memory/sessions/.purge.ndjson",
    "agents/a/memory/sessions/.dropped.ndjson",
    "agents/a/memory/suggestions.ndjson",
    "agents/a/memory/suggestions.ndjson.lock",
    "agents/a/files/sub/x.md",
    "agents/a/files/.keepstone.lock",
    "agents/a/files/.keepstone.tmp",
    "agents/a/memory/grants.ndjson",
    "agents/a/memory/grants.ndjson.lock",
    ".index/.space.json",
]


def fifo(path: Path, other: Path) -> None:  # noqa: ARG001
    os.mkfifo(path)


def device(path: Path, other: Path) -> None:  # noqa: ARG001
    try:
        os.mknod(path, 0o600 | 0o020000, os.makedev(1, 5))
    except PermissionError:
        pytest.skip("only root makes devices")


def link(path: Path, other: Path) -> None:
    path.symlink_to(other)


def folder(path: Path, other: Path) -> None:  # noqa: ARG001
    path.mkdir()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("make", [fifo, device, link, folder])
def test_anything_but_a_file_is_neither_followed_nor_waited_for(
    home: Home, place: str, make: Callable[[Path, Path], None]
) -> None:
    home.close()
    before, path = everything(home.root.parent), home.root / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path, home.root / place.replace("/a/", "/b/"))
    agent = home.agent("a")
    session = agent.session("s")
    acts: list[Callable[[], Any]] = [
        lambda: session.add("note", text="more"),
        session.entries,
        lambda: agent.recall("belongs own"),
        session.compact,
        lambda: session.purge("same"),
        lambda: session.entries(archived=True),
        lambda: agent.files.read("sub/x.md"),
        lambda: agent.files.append("sub/x.md", "more"),
        lambda: agent.files.write("sub/x.md", "more"),
        lambda: agent.suggest("pin", ["same"], why="a reason"),
        agent.suggestions,
        session.drop,
        session.clear,
        agent.grants,
        lambda: agent.grant("c"),
        lambda: agent.entries(shared=["b"]),
        lambda: agent.entries(shared=["c"]),
        home.doctor,
    ]
    for act in acts:
        with suppress(KeepstoneError):
            assert SECRET not in str(act())
    home.close()
    assert everything(home.root.parent) == before


def test_a_hard_link_to_another_agents_file_is_neither_read_nor_written(home: Home) -> None:
    files, other = home.agent("a").files, home.root / "agents/b/files/sub/x.md"
    os.link(other, home.root / "agents/a/files/sub/y.md")
    calls = (lambda: files.append("sub/y.md", "!"), lambda: files.write("sub/y.md", "!"))
    for call in (*calls, lambda: files.read("sub/y.md")):
        with pytest.raises(keepstone.PathEscapeError, match="hard link"):
            call()
    assert other.read_text() == SECRET


# Every way of reading


WORDS = st.sampled_from(["walnut", "pecan", "hazel", "abba cab", "face"])
SESSIONS = st.sampled_from(["s", "t"])
IDS = st.sampled_from(["1", "2", "3"])
SLUG = st.sampled_from(["a", "b"])


class TwoAgents(RuleBasedStateMachine):
    """Two agents do the same things with the same ids; each text says whose it is."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="keepstone-agents"))
        self.home = keepstone.open(self.root, durability="os", embedder=Letters(6))
        self.began = datetime.now(UTC)

    def teardown(self) -> None:
        self.home.close()
        shutil.rmtree(self.root)

    @rule(slug=SLUG, name=SESSIONS, entry=IDS, word=WORDS)
    def put(self, slug: str, name: str, entry: str, word: str) -> None:
        item = {"id": entry, "type": "note", "text": f"{word} of-{slug}", "tags": [f"of-{slug}"]}
        self.home.agent(slug).session(name).put(item)

    @rule(slug=SLUG, name=SESSIONS, entry=IDS)
    def delete(self, slug: str, name: str, entry: str) -> None:
        with suppress(keepstone.EntryNotFoundError):
            self.home.agent(slug).session(name).delete(entry)

    @rule(slug=SLUG, name=SESSIONS, entry=IDS)
    def purge(self, slug: str, name: str, entry: str) -> None:
        with suppress(keepstone.EntryNotFoundError):
            self.home.agent(slug).session(name).purge(entry)

    @rule(slug=SLUG, a=IDS, b=IDS)
    def link(self, slug: str, a: str, b: str) -> None:
        with suppress(keepstone.EntryNotFoundError, keepstone.AmbiguousIdError):
            self.home.agent(slug).link(a, b, "near")

    @rule(slug=SLUG, name=SESSIONS)
    def compact(self, slug: str, name: str) -> None:
        self.home.agent(slug).session(name).compact()

    @rule(slug=SLUG, name=SESSIONS)
    def remove(self, slug: str, name: str) -> None:
        self.home.agent(slug).session(name).remove()

    @rule(slug=SLUG, word=WORDS)
    def write(self, slug: str, word: str) -> None:
        self.home.agent(slug).files.write("x.md", f"{word} of-{slug}")

    @rule(slug=SLUG, word=WORDS)
    def save(self, slug: str, word: str) -> None:
        MemoryAdapter(self.root, slug).save({"role": "user", "content": f"{word} of-{slug}"}, "s")

    @rule(slug=SLUG, word=WORDS)
    def create(self, slug: str, word: str) -> None:
        MemoryService(self.home, agent=slug).create_memory("s", f"{word} of-{slug}", [1.0] * 6)

    @rule(word=WORDS)
    def remember(self, word: str) -> None:
        for slug in "ab":
            SessionMemory("s", self.root / f"memory-{slug}").add("finding", {"finding": f"{word} of-{slug}"})

    @rule()
    def begin_anew(self) -> None:
        self.home.close()
        shutil.rmtree(self.root / ".index", ignore_errors=True)

    @invariant()
    def nothing_of_the_other_is_returned(self) -> None:
        for slug, other in ("ab", "ba"):
            for said in self.readings(slug):
                assert f"of-{other}" not in str(said)

    def readings(self, slug: str) -> Iterator[Any]:
        agent = self.home.agent(slug)
        yield agent.recall("walnut pecan hazel abba cab of", neighbours=2, limit=20)
        yield agent.recall("abba", sessions=["s"], tags=["of-a"])
        yield agent.recall("walnut of", as_of=datetime.now(UTC))
        yield agent.recall(None, vector=[1.0, 2.0, 1.0, 0.0, 1.0, 1.0])
        yield [agent.context("walnut of").text, agent.sessions(), agent.entry_counts()]
        for name in ("s", "t"):
            session = agent.session(name)
            yield [session.entries(), session.entries(2), session.entries(archived=True), session.records()]
        for entry in "123":
            with suppress(keepstone.EntryNotFoundError, keepstone.AmbiguousIdError):
                yield [agent.history(entry), agent.get(entry), agent.related(entry, depth=3)]
        with suppress(keepstone.MemoryFileNotFoundError):
            yield agent.files.read("x.md")
        adapter = MemoryAdapter(self.root, "default").for_agent(slug)
        yield [adapter.list(), adapter.load("s"), adapter.load("t", {"limit": 2})]
        service = MemoryService(self.home, agent=slug, hnsw_from=2)
        yield [service.get_memories_by_session("s"), service.get_all_sessions()]
        yield service.query_similar_memories([1.0] * 6, "s", 9)
        memory = SessionMemory("s", self.root / f"memory-{slug}")
        yield [memory.query(), memory.query(topic="of", sessions="*"), memory.get_context()]
        yield agent.purge_matching("of-", dry_run=True)


def test_no_reading_of_one_agent_returns_a_byte_of_the_other() -> None:
    run_state_machine_as_test(
        TwoAgents, settings=settings(max_examples=max(4, ROUNDS // 2), stateful_step_count=15, deadline=None)
    )
