"""Looking whether an index is as its logs say changes nothing, whatever is found."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.damage import Damaged, entry, patch, tombstone

from keepstone.index import Index, UnavailableError, check
from keepstone.index.database import Database
from keepstone.index.vectors import building
from keepstone.vector import Space, encode, unit

SPACE = Space("given:4", 4)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "logs")
    for number, vector in enumerate(np.random.default_rng(6).normal(size=(9, SPACE.dim))):
        session.append(entry(str(number), "x", embedding=encode(SPACE.id, unit(vector))))
    session.append(patch("1", tags=["x"]), patch("2", access=4), tombstone("3"))
    yield session
    session.close()


@pytest.fixture
def index(tmp_path: Path, session: Damaged) -> Iterator[Index]:
    (tmp_path / "index").mkdir()
    index = Index(tmp_path / "index/index.db")
    index.catch_up("s", session.log)
    yield index
    index.close()


@pytest.fixture
def database(index: Index, tmp_path: Path) -> Iterator[Database]:  # noqa: ARG001  It is to be there.
    """The same file as another process has it open."""
    database = Database(tmp_path / "index/index.db")
    yield database
    database.close()


@pytest.fixture
def vectors(database: Database) -> Path:
    """The folder of a generation, and of a graph that the index names and that is not there."""
    with building.files(database) as folder:
        assert building.build(database, folder, 1, SPACE)
    database.execute("INSERT INTO graph VALUES(1, 0, 1, 5, 5)")
    return folder.path


def found(index: Index, session: Damaged) -> tuple[list[str], int]:
    return check.damage(index), check.differing(index, "s", session.log)


def test_a_sound_index_has_no_damage_and_no_difference(index: Index, session: Damaged) -> None:
    assert found(index, session) == ([], 0)
    assert check.damaged_files(index) == []


def test_an_index_in_memory_is_looked_at_like_any_other(session: Damaged) -> None:
    index = Index(None)
    index.catch_up("s", session.log)
    assert found(index, session) == ([], 0)
    assert check.damaged_files(index) == []


def test_each_entry_that_is_missing_or_too_much_is_a_difference(
    index: Index, session: Damaged, database: Database
) -> None:
    database.execute("DELETE FROM entry WHERE id IN ('4', '5')")
    assert check.differing(index, "s", session.log) == 2
    database.execute("UPDATE entry SET id='3' WHERE id='6'")
    assert check.differing(index, "s", session.log) == 3


def test_a_vector_that_its_line_does_not_give_is_a_difference(
    index: Index, session: Damaged, database: Database
) -> None:
    database.execute("INSERT INTO space VALUES(2, 'other', 4)")
    database.execute(
        "INSERT INTO vector(space, eid, made, f32) SELECT 2, eid, 1, f32 FROM vector WHERE vid=5"
    )
    assert check.differing(index, "s", session.log) == 0  # It was made here.
    database.execute("DELETE FROM vector WHERE made=1")
    database.execute("UPDATE vector SET space=2 WHERE vid=5")
    assert check.differing(index, "s", session.log) == 1


def test_what_the_index_has_not_read_is_not_compared(index: Index, session: Damaged) -> None:
    session.append(entry("10"), patch("1", pinned=True))
    assert check.differing(index, "s", session.log) == 0
    assert check.differing(index, "t", session.log) == 0


def test_a_log_that_was_exchanged_or_removed_is_not_compared(
    index: Index, session: Damaged, database: Database
) -> None:
    database.execute("DELETE FROM entry WHERE id='4'")
    session.compact()
    assert check.differing(index, "s", session.log) == 0
    session.path.unlink()
    assert check.differing(index, "s", session.log) == 0


def test_all_that_is_wrong_is_named_and_the_file_stays(
    index: Index, database: Database, tmp_path: Path
) -> None:
    before = (tmp_path / "index/index.db").stat().st_ino
    database.execute("DELETE FROM space")
    database.execute("UPDATE meta SET value=0 WHERE key='flushed'")
    assert check.damage(index) == [
        "the table of words has 8 texts for 0 entries",
        "8 vector(s) of no entry, or of another length than their space",
    ]
    assert (tmp_path / "index/index.db").stat().st_ino == before


def test_a_table_that_is_gone_is_named_and_hides_no_other_damage(index: Index, database: Database) -> None:
    database.execute("UPDATE vector SET eid=eid+1000 WHERE vid=1")
    database.execute("DROP TABLE words")
    first, second = check.damage(index)
    assert first.startswith("SQLite cannot read it")
    assert second.startswith("1 vector(s) of no entry")


def test_rows_that_cannot_be_read_are_damage_and_no_difference(
    index: Index, session: Damaged, database: Database
) -> None:
    database.execute("DROP TABLE session")
    assert check.differing(index, "s", session.log) == 0


def test_an_index_that_was_closed_is_unavailable_and_not_damaged(index: Index, session: Damaged) -> None:
    index.close()
    for look in (check.damage, check.damaged_files, check.forget_damaged_files):
        with pytest.raises(UnavailableError):
            look(index)
    with pytest.raises(UnavailableError):
        check.differing(index, "s", session.log)


# Files beside it


def test_missing_damaged_or_orphaned_files_are_named_once(index: Index, vectors: Path) -> None:
    (vectors / "9-9.int8").write_bytes(b"left")
    (vectors / "folder").mkdir()
    (vectors / "build.lock").touch()
    assert check.damaged_files(index) == ["1-1-0-5.hnsw", "9-9.int8"]
    path = vectors / "1-1.int8"
    path.write_bytes(path.read_bytes()[:-1])
    assert check.damaged_files(index) == ["1-1-0-5.hnsw", "1-1.int8", "9-9.int8"]


def test_a_file_about_to_be_named_by_another_process_is_not_orphaned(index: Index, vectors: Path) -> None:
    (vectors / "1-2.int8.tmp").write_bytes(b"in the making")
    with building.files(index._database) as folder, building.alone(folder):  # noqa: SLF001  Its folder.
        assert check.damaged_files(index) == ["1-1-0-5.hnsw"]
        check.forget_damaged_files(index)
        assert (vectors / "1-2.int8.tmp").exists()
    check.forget_damaged_files(index)
    assert not (vectors / "1-2.int8.tmp").exists()


def test_a_damaged_generation_is_forgotten_with_its_graphs_and_a_sound_one_stays(
    index: Index, vectors: Path, database: Database
) -> None:
    check.forget_damaged_files(index)
    assert database.rows("SELECT number FROM generation") == [(1,)]
    assert database.rows("SELECT * FROM graph") == []
    (vectors / "1-1.int8").write_bytes(b"")
    check.forget_damaged_files(index)
    assert database.rows("SELECT number FROM generation") == []
    assert check.damaged_files(index) == []
