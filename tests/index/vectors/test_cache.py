"""What a process holds of vectors follows what SQLite says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from keepstone.index.database import Database
from keepstone.index.vectors import building, cache
from keepstone.index.vectors.cache import ALL, VectorCache
from keepstone.index.vectors.hnsw import Growing
from keepstone.vector import Space

SPACE = Space("given:4", 4)
VECTOR = np.full(4, 0.5, "<f4").tobytes()


@pytest.fixture(autouse=True)
def few_are_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "NEWER", 5)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(tmp_path / "index.db")
    database.execute("INSERT INTO space VALUES(1, 'given:4', 4), (2, 'other', 4)")
    yield database
    database.close()


def add(database: Database, sid: int, count: int, space: int = 1) -> None:
    """Add entries of a session, each with a vector."""
    for _ in range(count):
        database.execute(
            "INSERT INTO entry(sid, number, id, ts, type, head, record)"
            " SELECT ?, n, n, n, 'note', '', '{}' FROM (SELECT count(*) AS n FROM entry)",
            (sid,),
        )
        eid = database.connection.last_insert_rowid()
        database.execute("INSERT INTO vector(space, eid, made, f32) VALUES(?, ?, 0, ?)", (space, eid, VECTOR))


def remove(database: Database, eid: int) -> None:
    database.execute("DELETE FROM entry WHERE eid=?", (eid,))


def following(database: Database) -> VectorCache:
    made = VectorCache(database, 1, SPACE)
    made.follow(database, database.stamp())
    return made


def build(database: Database) -> None:
    with building.files(database) as folder:
        assert building.build(database, folder, 1, SPACE)


def publish_graph(database: Database, one: VectorCache, sid: int, number: int = 1, mark: int = 5) -> None:
    assert one.scan is not None
    growing = Growing(one.scan.generation, one.range_of(sid), one.scan.dead)
    growing.step()
    with (
        building.files(database) as folder,
        (folder.path / building.name_of_graph(1, number, sid, mark)).open("wb") as file,
    ):
        checksum = growing.save(file.fileno())
    database.execute("INSERT OR REPLACE INTO graph VALUES(1, ?, ?, ?, ?)", (sid, number, mark, checksum))


def test_few_vectors_are_newer_and_counted_by_session(database: Database) -> None:
    add(database, 7, 2)
    add(database, 8, 1)
    one = following(database)
    assert [one.live(sid) for sid in (ALL, 7, 8, 9)] == [3, 2, 1, 0]
    assert (one.scan, one.published, one.is_due, one.range_of(7)) == (None, 0, False, (0, 0))


def test_what_this_or_another_connection_writes_is_followed(database: Database, tmp_path: Path) -> None:
    one = following(database)
    add(database, 7, 1)
    one.follow(database, database.stamp())
    assert one.live(ALL) == 1
    other = Database(tmp_path / "index.db")
    add(other, 7, 1)
    remove(other, 1)
    other.close()
    one.follow(database, database.stamp())
    assert (one.live(ALL), one.buffer.vids.tolist(), one.buffer.sids.tolist()) == (1, [1, 2], [-1, 7])


def test_vectors_of_another_space_are_neither_held_nor_due(database: Database) -> None:
    add(database, 7, 20, space=2)
    add(database, 7, 5)
    one = following(database)
    assert (one.live(ALL), one.is_due) == (5, False)


@pytest.mark.parametrize(("count", "is_due"), [(5, False), (6, True)])
def test_a_generation_is_due_from_a_number_of_newer_vectors(
    database: Database, count: int, *, is_due: bool
) -> None:
    add(database, 7, count)
    one = following(database)
    assert (one.is_due, one.buffer.count) == (is_due, 0 if is_due else count)


def test_one_by_one_a_generation_becomes_due_too(database: Database) -> None:
    one, due = following(database), []
    for _ in range(6):
        add(database, 7, 1)
        one.follow(database, database.stamp())
        due.append(one.is_due)
    assert due == [False] * 5 + [True]


def test_in_memory_no_generation_is_ever_due() -> None:
    database = Database(None)
    add(database, 7, 9)
    one = following(database)
    assert (one.is_due, one.live(ALL)) == (False, 9)


def test_a_new_generation_takes_in_what_was_newer(database: Database) -> None:
    add(database, 7, 3)
    one = following(database)
    build(database)
    add(database, 8, 1)
    one.follow(database, database.stamp())
    assert (one.published, one.buffer.count, one.range_of(7), one.range_of(ALL)) == (1, 1, (0, 3), (0, 3))
    assert [one.live(sid) for sid in (ALL, 7, 8)] == [4, 3, 1]


def test_what_goes_from_a_generation_is_alive_no_more_and_makes_the_next_due(database: Database) -> None:
    add(database, 7, 8)
    build(database)
    one = following(database)
    remove(database, 3)
    one.follow(database, database.stamp())
    assert (one.live(ALL), one.live(7), one.is_due) == (7, 7, False)
    for eid in (1, 2, 4, 5, 6):
        remove(database, eid)
    one.follow(database, database.stamp())
    assert one.is_due


def test_a_generation_whose_file_is_damaged_is_not_held_and_its_vectors_are_newer(database: Database) -> None:
    add(database, 7, 3)
    build(database)
    with building.files(database) as folder:
        (folder.path / building.name_of(1, 1)).write_bytes(b"")
    one = following(database)
    assert (one.scan, one.buffer.count, one.live(7)) == (None, 3, 3)


def test_what_is_distrusted_is_looked_at_as_a_whole(database: Database) -> None:
    add(database, 7, 3)
    build(database)
    one = following(database)
    with building.files(database) as folder:
        path = folder.path / building.name_of(1, 1)
    path.write_bytes(path.read_bytes()[:-64] + bytes([1] * 64))
    one.follow(database, database.stamp())
    assert one.buffer.count == 0
    one.distrust()
    one.follow(database, database.stamp())
    assert (one.scan, one.buffer.count) == (None, 3)


def test_a_recreated_file_is_another_file(database: Database) -> None:
    one = following(database)
    assert one.connection is database.connection
    database.discard()
    assert one.connection is not database.connection


# Graphs


def test_a_graph_of_the_generation_is_read_once_and_one_of_another_never(database: Database) -> None:
    add(database, 7, 4)
    build(database)
    one = following(database)
    publish_graph(database, one, 7)
    publish_graph(database, one, ALL, number=2)
    one.follow(database, database.stamp())
    graph = one.graph(database, 7, wait=False)
    assert graph is not None
    assert one.graph(database, 7, wait=False) is graph
    assert one.graph(database, ALL, wait=True) is None
    assert one.graph(database, 8, wait=True) is None


def test_a_republished_graph_is_read_again(database: Database) -> None:
    add(database, 7, 4)
    build(database)
    one = following(database)
    publish_graph(database, one, 7)
    one.follow(database, database.stamp())
    first = one.graph(database, 7, wait=True)
    publish_graph(database, one, 7, mark=6)
    one.follow(database, database.stamp())
    assert one.graph(database, 7, wait=True) not in (None, first)


def test_a_large_graph_is_read_only_by_those_who_wait(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.index.vectors.hnsw._QUICK", 10)
    add(database, 7, 4)
    build(database)
    one = following(database)
    publish_graph(database, one, 7)
    one.follow(database, database.stamp())
    assert one.graph(database, 7, wait=False) is None
    graph = one.graph(database, 7, wait=True)
    assert graph is not None
    assert one.graph(database, 7, wait=False) is graph


def test_a_removed_vector_leaves_the_sample_and_the_others_stay(database: Database) -> None:
    add(database, 1, 20)
    opposite = -np.frombuffer(VECTOR, "<f4")
    database.execute("UPDATE vector SET f32=? WHERE eid>10", (opposite.tobytes(),))
    one = following(database)
    assert len(one.take_sample(database)) == 20
    for eid in range(1, 11):
        remove(database, eid)
    one.follow(database, database.stamp())
    assert one.sample is not None
    assert one.sample.tolist() == [opposite.tolist()] * 10
    remove(database, 11)
    one.follow(database, database.stamp())
    assert one.sample is None
