"""Vectors in the index: compared exactly, in scope, and gone with the text that they are of."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import keepstone
from keepstone import Agent, Entry, Home, Session
from keepstone.filesystem.layout import LAYOUTS
from keepstone.index.vectors import buffer
from keepstone.index.vectors import vector_table as index_vectors
from keepstone.model import Scope
from keepstone.store.files.file_store import FileStore
from keepstone.testing import START
from keepstone.vector import Space, Vector, encode, unit

SPACE = "given:2"
EAST, NORTH = unit([1, 0]), unit([0, 1])


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path) as home:
        yield home


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


@pytest.fixture
def session(agent: Agent) -> Session:
    return agent.session("s1")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[FileStore]:
    with closing(FileStore(tmp_path, LAYOUTS["default"])) as store:
        yield store


def log_of(home: Home, session: str = "s1") -> Path:
    return home.root / f"agents/a/memory/sessions/{session}.ndjson"


def found(agent: Agent, vector: Any = EAST, limit: int = 10, **scope: Any) -> list[str]:
    """The texts that are nearest to a vector."""
    near = agent.vectors().similar(unit(vector), Scope("a", **scope), limit)
    return [entry.text for entry, _ in near]


def forget(home: Home) -> None:
    """Throw the index away while the home is open."""
    shutil.rmtree(home.root / ".index")
    home.sync()


def line(entry_id: str, text: str, embedding: Any = None) -> bytes:
    given = {} if embedding is None else {"embedding": embedding}
    return json.dumps({"id": entry_id, "type": "note", "text": text, **given}).encode() + b"\n"


UNITS = st.integers(1, 40).flatmap(
    lambda count: arrays.arrays(np.float32, (count, 5), elements=st.floats(-8, 8, width=32))
)


@given(matrix=UNITS, limit=st.integers(1, 12), size=st.integers(1, 16))
def test_the_nearest_are_those_of_the_largest_cosines(matrix: Any, limit: int, size: int) -> None:
    matrix[:, 0] += 9  # No row is zeros.
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    numbers = np.arange(len(matrix), dtype=np.int64)
    blocks = [
        buffer.Block(numbers[begin : begin + size], matrix[begin : begin + size])
        for begin in range(0, len(matrix), size)
    ]
    vector = unit([1, 2, 3, 4, 5])

    near = buffer.nearest(blocks, vector, limit)

    best = sorted((matrix.astype(np.float64) @ vector).tolist(), reverse=True)[:limit]
    assert [score for _, score in near] == pytest.approx(best, abs=1e-5)
    assert len({number for number, _ in near}) == len(best)


def test_among_equally_near_entries_the_older_come_first(agent: Agent, session: Session) -> None:
    session.add_many({"type": "event", "text": str(number), "embedding": [1, 0]} for number in range(6))
    assert found(agent, limit=3) == ["0", "1", "2"]


def test_a_scope_larger_than_a_block_is_compared_whole(
    agent: Agent, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_vectors, "BLOCK", 4)
    session.add_many(
        {"type": "event", "text": str(number), "embedding": [10, number]} for number in reversed(range(11))
    )
    assert found(agent, limit=5) == found(agent, limit=5) == ["0", "1", "2", "3", "4"]


def test_a_scope_that_outgrows_a_block_is_compared_whole(
    agent: Agent, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_vectors, "BLOCK", 4)
    for number in range(9):
        session.add("note", text=str(number), embedding=[1, number])
        assert found(agent, sessions=("s1",)) == [str(known) for known in range(number + 1)]


@pytest.mark.parametrize(
    ("scope", "texts"),
    [
        ({}, {"old", "new", "other"}),
        ({"sessions": ("s1",)}, {"old", "new"}),
        ({"sessions": ()}, set()),
        ({"types": ("decision",)}, {"new"}),
        ({"tags": ("x",)}, {"other"}),
        ({"since": START}, {"new", "other"}),
        ({"until": START, "sessions": ("s1",)}, {"old"}),
    ],
)
def test_only_vectors_in_scope_are_compared(agent: Agent, scope: dict[str, Any], texts: set[str]) -> None:
    agent.session("s1").add("note", text="old", ts=START - timedelta(1), embedding=[1, 0])
    agent.session("s1").add("decision", text="new", ts=START, embedding=[1, 1])
    agent.session("s2").add("note", text="other", ts=START, embedding=[0, 1], tags=["x"])

    assert set(found(agent, **scope)) == texts
    assert set(found(agent, limit=1, **scope)) <= texts


def test_another_agents_vectors_are_never_compared(home: Home, agent: Agent) -> None:
    home.agent("b").session("s1").add("note", text="of b", embedding=[1, 0])
    assert found(agent) == found(agent, sessions=("s1",)) == []


def test_vectors_of_different_spaces_are_never_compared(agent: Agent, session: Session) -> None:
    session.add("note", text="mine", embedding=[1, 0])
    session.add("note", text="made", embedding=encode("letters", NORTH))
    assert found(agent) == ["mine"]


def test_an_entry_added_after_a_query_is_compared_in_the_next(agent: Agent, session: Session) -> None:
    session.add("note", text="one", embedding=[1, 1])
    assert found(agent, sessions=("s1",)) == ["one"]
    session.add("note", text="two", embedding=[1, 0])
    assert found(agent, sessions=("s1",)) == ["two", "one"]


CHANGES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30), st.integers(-9, 9)), max_size=25)


@given(changes=CHANGES, newer=st.sampled_from([2, 5, 8192]))
def test_what_is_held_follows_every_change(
    changes: list[tuple[int, int, int]], newer: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        keepstone.open(tmp_path_factory.mktemp("home"), durability="os") as home,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr("keepstone.index.vectors.cache.NEWER", newer)
        agent = home.agent("a")
        session = agent.session("s1")
        session.add("note", text="first", embedding=[1, 1])
        for change, which, number in changes:
            apply(session, change, which, [number, 1])
            for scope in (Scope("a", ("s1",)), Scope("a", tags=("x",)), Scope("a", types=("other",))):
                near = agent.vectors().similar(EAST, scope, 99, hnsw_from=3)
                cosines = {
                    entry.id: float(entry.embedding[0])
                    for entry in session.entries(types=scope.types)
                    if entry.embedding is not None and (entry.tags or not scope.tags)
                }
                assert {entry.id: score for entry, score in near} == pytest.approx(cosines, abs=1e-6)
            if which % 5 == 0:
                home.sync()


def apply(session: Session, change: int, which: int, vector: list[int]) -> None:
    """Let one of six things happen to one of a session's entries."""
    entries = session.entries()
    entry_id = entries[which % len(entries)].id if entries else ""
    if change == 0 or not entries:
        session.add("note", text=f"added {len(entries)} {vector}", embedding=vector)
    elif change == 1:
        session.update(entry_id, embedding=vector)
    elif change == 2:
        session.update(entry_id, **({"tags": ["x"]} if vector[0] % 2 else {"type": "other"}))
    elif change == 3:
        session.update(entry_id, text=f"changed {which} {vector}", embedding=vector if which % 2 else None)
    else:
        (session.delete if change == 4 else session.purge)(entry_id)


def test_a_rebuild_reads_every_vector_again(home: Home, agent: Agent) -> None:
    agent.session("s1").add("note", text="one", embedding=[1, 0])
    assert found(agent, limit=1, sessions=("s1",)) == ["one"]
    agent.session("s1").remove()
    agent.session("s1").add("note", text="two", embedding=[0, 1])
    home.rebuild()
    [(entry, score)] = agent.vectors().similar(EAST, Scope("a", ("s1",)), 9)
    assert (entry.text, score) == ("two", 0.0)


def test_what_another_home_object_writes_is_compared_at_once(home: Home, agent: Agent) -> None:
    agent.session("s1").add("note", text="one", embedding=[1, 1])
    assert found(agent, sessions=("s1",)) == ["one"]
    with keepstone.open(home.root) as other:
        other.agent("a").session("s1").add("note", text="two", embedding=[1, 0])
        assert found(agent, sessions=("s1",)) == ["two", "one"]
        other.agent("a").session("s1").purge(agent.session("s1").entries()[0].id)
    assert found(agent, sessions=("s1",)) == ["two"]


def test_lines_of_another_program_are_compared(home: Home, agent: Agent, session: Session) -> None:
    session.add("note", text="one", embedding=[1, 1])
    with log_of(home).open("ab") as log:
        log.write(line("b", "two", encode(SPACE, EAST)) + line("c", "three"))
        log.write(line("c", "three, later", encode(SPACE, NORTH)))
    assert found(agent, sessions=("s1",)) == ["two", "one", "three, later"]


@pytest.mark.parametrize(
    "embedding",
    [5, "x", [1, 0], {}, {"space": SPACE, "f32": "!"}, {"space": SPACE, "f32": ""}, encode("given:3", EAST)],
)
def test_a_malformed_vector_in_a_line_is_ignored(home: Home, agent: Agent, embedding: Any) -> None:
    agent.session("s1").add("note", text="one", embedding=[1, 1])
    with log_of(home).open("ab") as log:
        log.write(line("b", "two", embedding))
    assert found(agent, sessions=("s1",)) == ["one"]
    assert agent.get("b").embedding is None
    assert agent.vectors().space() == Space(SPACE, 2)


def test_a_put_of_another_text_takes_the_vector_with_it(home: Home, agent: Agent, session: Session) -> None:
    kept = session.add("note", {"content": "kept"}, embedding=[1, 1])
    entry = session.add("note", {"content": "before"}, embedding=[1, 0])
    changed = session.update(entry.id, data={"content": "after"})

    assert changed.embedding is None
    for act in (lambda: None, session.compact, lambda: forget(home)):
        act()
        assert found(agent) == [kept.text]


def test_a_put_through_the_log_line_takes_the_vector_too(home: Home, agent: Agent, session: Session) -> None:
    session.put({"id": "x", "type": "note", "text": "before", "embedding": [1, 0]})
    session.put({"id": "x", "type": "note", "text": "after"})

    forget(home)
    assert (found(agent), agent.get("x").embedding) == ([], None)


def test_a_put_of_the_same_text_keeps_the_vector(home: Home, agent: Agent, session: Session) -> None:
    entry = session.add("note", {"content": "same"}, embedding=[1, 0])
    session.update(entry.id, type="decision")
    session.update(entry.id, data={"content": "same"}, tags=["x"])

    assert found(agent) == ["same"]
    forget(home)
    assert found(agent) == ["same"]


def test_a_foreign_put_of_another_text_is_not_answered_for(
    home: Home, agent: Agent, session: Session
) -> None:
    entry = session.add("note", text="before", embedding=[1, 0])
    with log_of(home).open("ab") as log:
        log.write(line(entry.id, "after"))

    assert found(agent, sessions=("s1",)) == []
    forget(home)
    assert found(agent) == []


def test_an_update_may_bring_a_vector_and_take_it_away(agent: Agent, session: Session) -> None:
    one = session.add("note", text="one", embedding=[1, 0])
    two = session.add("note", text="two", embedding=[0, 1])
    session.update(two.id, embedding=[5, 0.1])
    session.update(one.id, text="one, again", embedding=[0, 3])
    assert found(agent) == ["two", "one, again"]

    assert session.update(two.id, embedding=None).embedding is None
    assert found(agent) == ["one, again"]


def test_other_patches_leave_the_vector_alone(agent: Agent, session: Session) -> None:
    entry = session.add("note", text="one", embedding=[1, 0])
    session.update(entry.id, pinned=True, tags=["x"])
    session.count({entry.id: 3})
    assert found(agent) == ["one"]


def test_a_deleted_entry_is_never_found_again(home: Home, agent: Agent, session: Session) -> None:
    entry = session.add("note", text="one", embedding=[1, 0])
    session.delete(entry.id)
    assert found(agent) == []
    session.add("note", id=entry.id, text="one")
    forget(home)
    assert found(agent) == []


def test_the_first_vector_decides_also_without_the_index(home: Home, agent: Agent, session: Session) -> None:
    session.add("note", text="one", embedding=[1, 0])
    before = log_of(home).read_bytes()
    forget(home)
    for other in (session, agent.session("s2")):
        with pytest.raises(keepstone.EmbeddingDimMismatchError, match="3 numbers.*has 2"):
            other.add("note", text="two", embedding=[1, 0, 0])
    assert log_of(home).read_bytes() == before
    assert not log_of(home, "s2").exists()


def test_one_vector_of_another_dimension_keeps_out_the_whole_batch(session: Session) -> None:
    items = [
        {"type": "note", "text": "a", "embedding": [1, 2]},
        {"type": "note", "text": "b", "embedding": [1, 2, 3]},
    ]
    with pytest.raises(keepstone.EmbeddingDimMismatchError):
        session.add_many(items)
    assert session.info() is None


def test_the_same_vector_with_the_same_id_is_added_once(session: Session) -> None:
    first = session.add("note", text="one", id="a", embedding=[1, 2])
    assert session.add("note", text="one", id="a", embedding=np.array([2, 4])) == first
    with pytest.raises(keepstone.EntryExistsError):
        session.add("note", text="one", id="a", embedding=[2, 1])
    assert len(session.entries()) == 1


def test_an_entry_can_be_added_again_from_its_own_line(agent: Agent, session: Session) -> None:
    entry = session.add("note", text="one", embedding=[1, 2])
    again = agent.session("s2").add_many([entry.as_dict()])[0]
    assert again.as_dict() == entry.as_dict()


def made(store: FileStore, session: str = "s1") -> list[tuple[Entry, Vector]]:
    return [(entry, EAST) for entry in store.entries("a", session, None, None)]


def test_pending_are_entries_with_text_and_without_a_vector(store: FileStore, session: Session) -> None:
    for text in ("one", " \n\t"):
        session.add("note", text=text)
    session.add("note", text="given", embedding=encode("letters", EAST))
    scope = Scope("a", ("s1",))

    with store.reader("a") as reader:
        loaded = reader.load(reader.pending("letters", scope)).values()
    assert [entry.text for entry in loaded] == ["one"]
    assert store.keep_vectors("a", "letters", [(entry, EAST) for entry in loaded]) == 1
    with store.reader("a") as reader:
        assert reader.pending("letters", scope) == []
        assert len(reader.pending("others", scope)) == 2


def test_a_late_vector_of_a_purged_entry_is_thrown_away(store: FileStore, session: Session) -> None:
    entry = session.add("note", text="one")
    late = made(store)
    session.purge(entry.id)
    assert store.keep_vectors("a", "letters", late) == 0
    assert store.spaces("a") == []


def test_a_late_vector_of_another_text_is_thrown_away(store: FileStore, session: Session) -> None:
    entry = session.add("note", text="東京 one")
    late = made(store)
    assert store.keep_vectors("a", "letters", late) == 1
    session.update(entry.id, text="two")
    assert store.keep_vectors("a", "letters", late) == 0
    assert store.vectors("a", "s1", "letters", [entry.id]) == {}


def test_a_late_vector_of_a_removed_session_is_thrown_away(store: FileStore, session: Session) -> None:
    session.add("note", text="one")
    late = made(store)
    session.remove()
    assert store.keep_vectors("a", "letters", late) == 0


def test_spaces_are_those_that_vectors_are_of(store: FileStore, session: Session) -> None:
    session.add("note", text="one", embedding=[1, 2])
    other = session.add("note", text="two", embedding=encode("letters", unit([1, 2, 3])))
    assert store.spaces("a") == [Space(SPACE, 2), Space("letters", 3)]
    session.delete(other.id)
    assert store.spaces("a") == [Space(SPACE, 2)]


@pytest.mark.parametrize("end", ["purge", "clear", "remove", "drop"])
def test_no_byte_of_a_vector_stays_when_its_entry_goes(store: FileStore, session: Session, end: str) -> None:
    chance = np.random.default_rng(5)
    secret, other = (unit(chance.normal(size=40)) for _ in range(2))
    session.add_many({"type": "event", "text": f"other {number}", "embedding": other} for number in range(30))
    entry = session.add("note", text="the secret", embedding=secret)
    store.keep_vectors("a", "letters", [(entry, secret)])

    raw = secret.astype("<f4").tobytes()
    forms = [raw[8:24], *(base64.b64encode(raw[skip:])[8:24] for skip in range(3)), b"the secret"]
    assert {path.suffix for path in store.root.rglob("*") if path.is_file() and holds(path, forms[:2])} >= {
        ".ndjson",
        ".db-wal",
    }

    getattr(session, end)(*[entry.id][: end == "purge"])

    assert [path for path in store.root.rglob("*") if path.is_file() and holds(path, forms)] == []


def holds(path: Path, forms: list[bytes]) -> bool:
    data = path.read_bytes()
    return any(form in data for form in forms)


def test_entries_are_counted_also_without_a_final_newline(home: Home, agent: Agent) -> None:
    for name, count in (("s1", 3), ("s2", 1)):
        agent.session(name).add_many({"type": "event", "text": str(number)} for number in range(count))
    agent.session("s1").delete(agent.session("s1").entries()[0].id)
    agent.new_session()
    log_of(home, "by hand").write_bytes(line("x", "one")[:-1])

    assert agent.entry_counts() == {"s1": 2, "s2": 1, "by hand": 1}
    assert [agent.session(name).entry_count() for name in ("s1", "by hand", "missing")] == [2, 1, 0]
