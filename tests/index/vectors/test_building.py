"""Generations are made of what SQLite has, and files that it does not name go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.index import Index, UnavailableError, hidden_rows
from keepstone.index.database import Database
from keepstone.index.vectors import building, segment
from keepstone.index.vectors.segment import Generation
from keepstone.log.log_file import Log, Stat
from keepstone.model import Record
from keepstone.vector import Matrix, Space, encode

ROWS, SPACE = 30, Space("given:8", 8)


def vectors() -> Matrix:
    made = np.random.default_rng(4).normal(size=(ROWS, SPACE.dim)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def entry(number: int) -> Record:
    """Later entries are older, and of two types."""
    return {
        "id": str(number),
        "ts": f"2026-01-01T00:{59 - number:02}:00.000000Z",
        "type": ("note", "fact")[number % 2],
        "text": str(number),
        "embedding": encode(SPACE.id, vectors()[number]),
    }


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index of two sessions, whose entries come in turns."""
    index = Index(tmp_path / "index.db")
    for number in range(ROWS):
        before, after = (Stat(number // 2 + more, 0, number % 2) for more in (0, 1))
        index.added(f"s{number % 2}", "", before, after, [entry(number)], b"")
    yield index
    index.close()


@pytest.fixture
def database(index: Index, tmp_path: Path) -> Iterator[Database]:  # noqa: ARG001  It is to be there.
    """The same file as another process has it open."""
    database = Database(tmp_path / "index.db")
    yield database
    database.close()


@pytest.fixture
def folder(database: Database) -> Iterator[Folder]:
    with building.files(database) as folder:
        yield folder


def built(database: Database, folder: Folder) -> Generation:
    assert building.build(database, folder, 1, SPACE)
    made = building.open_generation(database, folder, 1, whole=True)
    assert made is not None
    return made


def names(folder: Folder) -> set[str]:
    return {entry.name for entry in folder.scan()}


def test_a_generation_has_no_rows_of_deleted_entries_that_are_still_removed(
    database: Database, folder: Folder
) -> None:
    with database.writing():
        hidden_rows.hide(database, 1, [str(number) for number in range(ROWS)])
    hidden = {eid for (eid,) in database.rows("SELECT eid FROM entry WHERE sid<0")}
    kept = {vid for eid, vid in database.rows("SELECT eid, vid FROM vector") if eid not in hidden}
    assert hidden
    assert {*built(database, folder).vids.tolist()} == kept


def test_rows_come_by_session_and_time_with_the_vectors_of_their_entries(
    database: Database, folder: Folder
) -> None:
    made = built(database, folder)
    order = sorted(range(ROWS), key=lambda number: (number % 2, -number))
    assert (made.vids - 1).tolist() == order
    assert [made.names()[kind] for kind in made.types] == [("note", "fact")[number % 2] for number in order]
    near = made.between(0, ROWS) * made.scales[:, None]
    assert np.allclose(near, vectors()[order], atol=0.01)
    assert made.header.upto == ROWS


def test_a_generation_without_any_vectors_can_be_read(
    database: Database, folder: Folder, index: Index
) -> None:
    for session in ("s0", "s1"):
        index.drop(session, Log(folder, f"{session}.ndjson", Lock(folder, f"{session}.lock")))
    assert built(database, folder).header.rows == 0


def test_the_next_generation_takes_the_place_of_the_one_before(database: Database, folder: Folder) -> None:
    first = built(database, folder)
    database.execute("INSERT INTO graph VALUES(1, 0, 1, 5, 5)")
    database.execute("DELETE FROM entry WHERE id='3'")
    second = built(database, folder)
    assert (first.header.rows, second.header.rows) == (ROWS, ROWS - 1)
    assert names(folder) == {building.name_of(1, 2)}
    assert database.rows("SELECT number FROM generation") == [(2,)]
    assert database.rows("SELECT * FROM gone") == database.rows("SELECT * FROM graph") == []


def test_a_generation_built_by_another_process_stays(
    database: Database, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal = segment.seal

    def build_another(made: Generation, fd: int) -> int:
        monkeypatch.setattr(building, "seal", seal)
        database.execute("INSERT INTO generation VALUES(1, 1, 5, 5)")
        return seal(made, fd)

    monkeypatch.setattr(building, "seal", build_another)
    assert not building.build(database, folder, 1, SPACE)
    assert names(folder) == set()
    assert database.rows("SELECT upto FROM generation") == [(5,)]


def test_a_vector_that_went_while_its_generation_was_made_is_erased_there(
    database: Database, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = building._fill  # noqa: SLF001  The moment between the columns and the rows.

    def delete_and_fill(database: Database, made: Generation, columns: Any) -> None:
        database.execute("DELETE FROM entry WHERE id='3'")
        fill(database, made, columns)

    monkeypatch.setattr(building, "_fill", delete_and_fill)
    made = built(database, folder)
    assert made.vids[made.scales == 0].tolist() == [4]


def test_a_vector_that_came_while_a_generation_of_none_was_made_is_left_to_the_next(
    database: Database, folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = building._fill  # noqa: SLF001  As above.

    def add_and_fill(database: Database, made: Generation, columns: Any) -> None:
        database.execute("INSERT INTO vector(space, eid, made, f32) VALUES(1, 99, 0, zeroblob(32))")
        fill(database, made, columns)

    database.execute("DELETE FROM entry")
    monkeypatch.setattr(building, "_fill", add_and_fill)
    assert built(database, folder).header.rows == 0


# Erasing


def test_erasing_empties_the_rows_of_what_has_gone_and_drops_graphs(
    database: Database, folder: Folder
) -> None:
    made = built(database, folder)
    (folder.path / building.name_of_graph(1, 1, 0, 5)).write_bytes(b"graph")
    database.execute("INSERT INTO graph VALUES(1, 0, 1, 5, 5)")
    database.execute("DELETE FROM entry WHERE id='3'")
    purges = building.value(database, "purges")
    with database.writing():
        building.erase(database)
    after = building.open_generation(database, folder, 1, whole=True)
    assert after is not None
    assert after.vids[after.scales == 0].tolist() == [4]
    assert made.header == after.header
    assert names(folder) == {building.name_of(1, 1)}
    assert building.value(database, "purges") == purges + 1


def test_a_generation_that_cannot_be_erased_from_goes(database: Database, folder: Folder) -> None:
    built(database, folder)
    path = folder.path / building.name_of(1, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with database.writing():
        building.erase(database)
    assert (names(folder), database.rows("SELECT * FROM generation")) == (set(), [])


@pytest.mark.parametrize("in_memory", [True, False])
def test_erasing_without_files_creates_none(tmp_path: Path, *, in_memory: bool) -> None:
    database = Database(None if in_memory else tmp_path / "index.db")
    building.erase(database)
    assert building.value(database, "purges") == 1
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    database.close()


# Files


def test_only_files_that_the_index_names_and_folders_stay(database: Database, folder: Folder) -> None:
    built(database, folder)
    database.execute("INSERT INTO graph VALUES(1, 0, 1, 255, 5)")
    kept = {building.name_of(1, 1), "1-1-0-ff.hnsw", "folder", "build.lock"}
    (folder.path / "folder").mkdir()
    (folder.path / "link").symlink_to(folder.path)
    for name in ("1-1-0-ff.hnsw", "build.lock", "1-2.int8", "1-1-0-fe.hnsw", "1-2.int8.tmp"):
        (folder.path / name).write_bytes(b"")
    building.tidy(database, folder)
    assert names(folder) == kept


def test_an_index_in_memory_has_no_files() -> None:
    database = Database(None)
    assert building.folder_of(database) is None
    with pytest.raises(UnavailableError, match="in memory"), building.files(database):
        pass


def test_a_link_in_the_place_of_the_files_is_not_followed(database: Database, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "vectors").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnavailableError, match="link"), building.files(database):
        pass


def test_only_one_at_a_time_may_build_and_then_the_next(folder: Folder) -> None:
    with building.alone(folder) as first, building.alone(folder) as second:
        assert (first, second) == (True, False)
    with building.alone(folder) as third:
        assert third


def test_what_the_index_does_not_note_of_itself_is_none(database: Database) -> None:
    assert building.value(database, "nothing") is None
    assert len(building.value(database, "identity")) == 32
