"""What is purged is gone from every byte under the home, whatever other processes did."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing.synchronize import Event
from pathlib import Path

import apsw
import numpy as np
import pytest
from tests.faults.traces import forms_of, left
from tests.processes import run_until_killed
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Agent, Home, MemoryService, SessionMemory
from keepstone.index import turn
from keepstone.index.vectors import cache, segment
from keepstone.index.vectors.hnsw import Growing
from keepstone.model import Scope
from keepstone.store.files import purge
from keepstone.vector import unit

SECRET = "Qzvxkwälnut"  # noqa: S105  A word to look for.
STEM = "xkwälnut"
"""The end of the secret: the full-text table leaves out what a word shares with the one before."""
FOLDED = "xkwalnut"
"""The same in the full-text table, which leaves out accents."""
ID = "qj7xpurgedid"
DIM = 24
VECTOR = np.random.default_rng(7).normal(size=DIM).astype(np.float32)


@pytest.fixture(autouse=True)
def few_are_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation is due from 32 vectors on, so that small homes have one."""
    monkeypatch.setattr(cache, "NEWER", 32)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        yield home


def fill(home: Home, slug: str = "a", session: str = "s") -> None:
    """An entry to purge, which has left something wherever an entry may, among others like it."""
    agent = home.agent(slug)
    log = agent.session(session)
    others = np.random.default_rng(1).normal(size=(60, DIM)).astype(np.float32)
    items = [
        {"type": "note", "id": f"{n}", "text": f"Qzvother {n}", "embedding": row}
        for n, row in enumerate(others)
    ]
    log.add_many(items[:30])
    log.add("note", {"content": f"{SECRET}ing 東京{SECRET}"}, id=ID, embedding=VECTOR, priority=0)
    log.add_many(items[30:])
    log.update(ID, tags=[f"tag{SECRET}"], summary=f"of {SECRET}")
    log.update("5", links=[{"to": "6", "rel": "near"}])
    similar(home, slug, session)
    home.sync()
    assert similar(home, slug, session) == "hnsw"
    agent.recall(SECRET)


def similar(home: Home, slug: str = "a", session: str = "s") -> str:
    """Ask for what is near the secret's vector, by a graph if there is one; how it was searched."""
    service = MemoryService(home, agent=slug, hnsw_from=20)
    return service.query_similar_memories(VECTOR, session, 5).searched


def traces(home: Home, *texts: str) -> set[str]:
    return left(home.root, STEM, FOLDED, ID, *texts, vector=VECTOR)


def test_a_trace_is_found_in_every_file_that_may_have_one(home: Home) -> None:
    fill(home)
    home.agent("a").session("s").compact()
    home.agent("a").session("s").update(ID, text="harmless", embedding=None)
    names = {Path(name).suffix for name in traces(home)}
    assert names >= {".ndjson", ".db-wal", ".int8", ".hnsw"}
    assert all(len(form) >= 8 for form in forms_of(STEM))


def purged(home: Home) -> None:
    home.agent("a").session("s").purge(ID)


def purged_by_agent(home: Home) -> None:
    home.agent("a").purge(ID)


def deleted_before(home: Home) -> None:
    home.agent("a").delete(ID)
    home.agent("a").session("s").compact()
    purged(home)


def changed_before(home: Home) -> None:
    home.agent("a").update(ID, text="harmless", tags=[], summary=None)
    home.agent("a").session("s").compact()
    home.agent("a").update(ID, text="harmless, too")
    purged(home)


def moved_before(home: Home) -> None:
    assert home.agent("a").session("s").archive_faded().archived == 1
    purged(home)


def collection_deleted(home: Home) -> None:
    assert MemoryService(home, agent="a").delete_collection("s") == 61


def removed(home: Home) -> None:
    home.agent("a").session("s").archive_faded()
    home.agent("a").session("s").remove()


def cleared(home: Home) -> None:
    home.agent("a").session("s").clear()


def agent_purged(home: Home) -> None:
    home.agent("a").files.write(f"of/{SECRET}.md", SECRET)
    home.purge_agent("a")


WAYS = [
    purged,
    purged_by_agent,
    deleted_before,
    changed_before,
    moved_before,
    collection_deleted,
    removed,
    cleared,
    agent_purged,
]


@pytest.mark.parametrize("way", WAYS)
def test_no_way_of_purging_leaves_a_trace(home: Home, way: Callable[[Home], None]) -> None:
    fill(home)
    fill(home, "b")
    home.agent("b").purge(ID)
    way(home)
    assert traces(home) == set()
    home.close()
    assert traces(home) == set()


@pytest.mark.parametrize("way", [removed, agent_purged])
def test_a_session_whose_name_is_the_secret_leaves_no_name_behind(
    home: Home, way: Callable[[Home], None]
) -> None:
    fill(home)
    home.agent("a").session(f"s {STEM}").add("note", text="x")
    home.agent("a").recall("x")
    home.agent("a").session(f"s {STEM}").remove()
    way(home)
    assert traces(home, "xkw%C3%A4lnut") == set()


def test_words_that_only_the_purged_entry_had_are_in_no_table(home: Home) -> None:
    fill(home)
    purged(home)
    home.sync()
    with apsw_of(home) as connection:
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab(main, words, row)")
        terms = {term for (term,) in connection.execute("SELECT term FROM temp.terms")}
    assert [term for term in terms if "xkw" in term] == []
    assert "other" not in terms
    assert "qzvother" in terms


MANY = [f"m{n}" for n in range(300)]
"""More entries than those whose words are erased one by one."""


def add_many_secrets(home: Home) -> None:
    home.agent("a").session("s").add_many(
        {"type": "note", "id": name, "text": f"{name}{SECRET} of {name[::-1]}{SECRET}"} for name in MANY
    )
    home.sync()
    home.agent("a").recall("of")


@pytest.mark.parametrize(
    "way",
    [
        lambda agent: agent.session("s").purge_many(MANY),
        lambda agent: agent.delete_where(ids=MANY) and agent.session("s").purge_many(MANY),
        lambda agent: agent.session("s").clear(),
        lambda agent: agent.session("s").remove(),
    ],
    ids=["purged", "deleted before", "cleared", "removed"],
)
def test_words_of_many_purged_entries_are_in_no_byte(home: Home, way: Callable[[Agent], object]) -> None:
    fill(home, session="other")
    home.agent("a").purge(ID)
    add_many_secrets(home)
    assert {Path(name).suffix for name in traces(home)} >= {".ndjson", ".db-wal"}
    way(home.agent("a"))
    assert traces(home) == set()
    assert len(home.agent("a").recall("Qzvother", limit=100)) == 60


def test_next_open_erases_words_that_a_killed_purge_left(home: Home) -> None:
    fill(home, session="other")
    home.agent("a").purge(ID)
    add_many_secrets(home)
    home.close()
    patch = "from keepstone.index.words import word_table\nword_table.merge = kill"
    run_until_killed(home.root, patch, "agent.session('s').purge_many([f'm{n}' for n in range(300)])")
    assert traces(home) != set()
    with keepstone.open(home.root, embedder="none") as later:
        assert later.agent("a").recall(SECRET) == []
    assert traces(home) == set()


class apsw_of(apsw.Connection):  # noqa: N801
    """A connection to the index that another program opened."""

    def __init__(self, home: Home) -> None:
        super().__init__(str(next(home.root.glob(".index/a/*/index.db"))))


# Others at work


def test_a_count_that_comes_late_brings_nothing_back(tmp_path: Path) -> None:
    memory = SessionMemory("main", tmp_path)
    purged_id = memory.add("decision", {"decision": SECRET})
    memory.add("decision", {"decision": "other"})
    assert len(memory.query()) == 2
    with keepstone.open(tmp_path, layout="bmad") as other:
        other.agent("default").session("main").purge(purged_id)
    memory.add("decision", {"decision": "one more"})
    assert left(tmp_path, STEM, purged_id) == set()
    assert len(memory.query()) == 2


def test_an_embedder_that_comes_late_brings_nothing_back(tmp_path: Path) -> None:
    embedder = Concepts()
    with keepstone.open(tmp_path, embedder=embedder) as home:
        session = home.agent("a").session("s")
        session.add("note", text=f"her sister {SECRET} sister sister", id=ID)
        session.add("note", text="a city")
        embedder.gate.clear()
        home._background.wake("a")  # noqa: SLF001
        session.purge(ID)
        embedder.gate.set()
        home.embed()
        assert [entry.text for entry in session.entries()] == ["a city"]
    assert left(tmp_path, STEM, ID, vector=[3, 0, 0, 0, 0.01]) == set()


@pytest.mark.parametrize("way", WAYS)
def test_a_generation_built_concurrently_is_discarded(
    home: Home, monkeypatch: pytest.MonkeyPatch, way: Callable[[Home], None]
) -> None:
    fill(home)
    session = home.agent("a").session("s")
    session.add_many(
        {"type": "event", "text": f"more {n}", "embedding": row}
        for n, row in enumerate(np.eye(40, DIM) + 0.1)
    )
    seal = segment.seal

    def purge_and_seal(*arguments: object) -> int:
        monkeypatch.setattr("keepstone.index.vectors.building.seal", seal)
        session.drop() if way is collection_deleted else way(home)
        return seal(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("keepstone.index.vectors.building.seal", purge_and_seal)
    session.add("note", text="x", embedding=np.ones(DIM))
    with suppress(keepstone.StoreError):  # The agent is no more.
        similar(home)
    assert traces(home) == set()
    home.close()
    assert traces(home) == set()


@pytest.mark.parametrize("place", ["step", "save"])
def test_a_graph_built_concurrently_is_discarded(
    home: Home, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    fill(home)
    home.agent("a").purge("7")
    inner = getattr(Growing, place)

    def purge_and_go_on(growing: Growing, *arguments: object) -> object:
        monkeypatch.setattr(Growing, place, inner)
        purged(home)
        return inner(growing, *arguments)

    monkeypatch.setattr(Growing, place, purge_and_go_on)
    similar(home)
    home.sync()
    assert traces(home) == set()


def test_a_graph_whose_maker_is_killed_after_the_purge_leaves_no_file(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    home.agent("a").purge("7")
    save = Growing.save

    def purge_save_and_stop(growing: Growing, *arguments: int) -> int:
        purged(home)
        save(growing, *arguments)
        raise KilledError

    monkeypatch.setattr(Growing, "save", purge_save_and_stop)
    # The store itself wakes nobody, so it is this thread that makes the graph.
    with home._store.reader("a") as reader:  # noqa: SLF001
        reader.similar(unit(VECTOR), f"given:{DIM}", Scope("a", ("s",)), 5, 20)
    with pytest.raises(KilledError):
        home.sync()
    assert traces(home) == set()


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("way", [purged, removed, agent_purged])
def test_a_compaction_at_the_same_time_archives_nothing_that_is_purged(
    home: Home, way: Callable[[Home], None]
) -> None:
    fill(home)
    at_work, stop = start(_compact, home)
    assert at_work.wait(30)
    way(home)
    stop()
    assert traces(home) == set()


def _compact(root: Path, at_work: Event, enough: Event) -> None:
    with keepstone.open(root, durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        while not enough.is_set():
            # An agent that is removed under our hands is no more, and we are told so.
            with suppress(keepstone.StoreError):
                session.archive_faded()
            at_work.set()


@pytest.mark.parametrize("way", [purged, removed, agent_purged])
def test_readers_and_builders_in_another_process_bring_nothing_back(
    home: Home, way: Callable[[Home], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "TIMEOUT", 0.5)
    fill(home)
    at_work, stop = start(_read, home)
    assert at_work.wait(30)
    try:
        way(home)
    except keepstone.PurgePendingError:
        stop()
        home.close()
        with keepstone.open(home.root) as again:
            again.agent("a").sessions()
    stop()
    assert traces(home) == set()


def _read(root: Path, at_work: Event, enough: Event) -> None:
    cache.NEWER = 8
    with keepstone.open(root, durability="os", embedder="none") as home:
        while not enough.is_set():
            home.agent("a").recall(f"{SECRET} other", limit=99)
            home.agent("a").session("s").entries(5)
            similar(home)
            home.sync()
            at_work.set()


def start(work: Callable[[Path, Event, Event], None], home: Home) -> tuple[Event, Callable[[], None]]:
    """Let another process work on a home: an event that it is at it, and what ends it in peace."""
    context = multiprocessing.get_context("spawn")
    at_work, enough = context.Event(), context.Event()
    process = context.Process(target=work, args=(home.root, at_work, enough))
    process.start()

    def stop() -> None:
        enough.set()
        process.join(60)
        assert process.exitcode == 0

    return at_work, stop


def test_a_reader_with_an_old_snapshot_makes_the_purge_pending(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "TIMEOUT", 0)
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.01)
    fill(home)
    reader = apsw_of(home)
    reader.execute("BEGIN; SELECT * FROM entry").fetchone()
    with pytest.raises(keepstone.PurgePendingError):
        purged(home)
    reader.close()
    home.close()
    with keepstone.open(home.root) as again:
        again.agent("a").sessions()
        assert traces(home) == set()


def test_an_agent_is_purged_while_its_background_is_at_work(tmp_path: Path) -> None:
    embedder = Concepts()
    with keepstone.open(tmp_path, embedder=embedder) as home:
        home.agent("a").session("s").add_many(
            {"type": "event", "text": f"sister {SECRET} {n}"} for n in range(100)
        )
        embedder.gate.clear()
        working = threading.Thread(target=home.embed)
        working.start()
        home.purge_agent("a")
        embedder.gate.set()
        working.join()
        assert home.agents() == []
    assert left(tmp_path, STEM) == set()
