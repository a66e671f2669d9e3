"""A small index has small pages; it gets large ones when it grows, whatever happens during that."""

from contextlib import closing
from pathlib import Path

import apsw
import pytest

import keepstone
from keepstone.filesystem.folder_lock import FolderLock
from keepstone.index.database import Database
from keepstone.index.page_size import ENLARGING, LARGE, SMALL

SIZE = 40_000


def add(root: Path, *agents: str, count: int = 1) -> None:
    with keepstone.open(root, durability="os", embedder="none") as home:
        for agent in agents:
            items = ({"type": "note", "text": f"walnut {number}"} for number in range(count))
            home.agent(agent).session("main").add_many(items)


def index_of(root: Path) -> Path:
    (path,) = root.glob(".index/a/v*/index.db")
    return path


def page_size(path: Path) -> object:
    with closing(apsw.Connection(str(path))) as connection:
        return connection.pragma("page_size")


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*"))


def test_index_of_one_entry_takes_at_most_40_kb_once_closed(tmp_path: Path) -> None:
    add(tmp_path, *map(str, range(70)))  # More than the 64 whose journals were always written back.
    sizes = [size_of(tmp_path / ".index" / str(number)) for number in range(70)]
    assert max(sizes) <= SIZE


def test_index_of_a_parked_agent_takes_at_most_40_kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.store.files.agent_pool.MOST_OPEN", 1)
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        for agent in ("a", "b"):
            home.agent(agent).session("main").add("note", text="walnut")
        assert size_of(tmp_path / ".index/a") <= SIZE
        assert home.agent("a").recall("walnut")


def test_growing_index_gets_large_pages_while_it_is_open(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "index.db")) as database:
        with database.writing():
            database.execute("INSERT INTO meta VALUES('x', zeroblob(300000))")
        assert database.rows("PRAGMA page_size") == [(LARGE,)]
        assert database.rows("PRAGMA journal_mode") == [("wal",)]
        assert database.rows("SELECT length(value) FROM meta WHERE key='x'") == [(300_000,)]
    assert [path.name for path in tmp_path.iterdir()] == ["index.db"]


def test_many_entries_are_found_in_large_pages(tmp_path: Path) -> None:
    add(tmp_path, "a", count=2_000)
    assert page_size(index_of(tmp_path)) == LARGE
    with keepstone.open(tmp_path, embedder="none") as home:
        assert home.agent("a").count() == 2_000
        assert home.agent("a").recall("1999")[0].entry.text == "walnut 1999"


def test_pages_stay_small_while_another_connection_is_open(tmp_path: Path) -> None:
    path = tmp_path / "index.db"
    with closing(Database(path)) as database:
        with closing(Database(path)) as other:
            with database.writing():
                database.execute("INSERT INTO meta VALUES('x', zeroblob(300000))")
            assert other.rows("SELECT length(value) FROM meta WHERE key='x'") == [(300_000,)]
        assert database.rows("PRAGMA page_size") == [(SMALL,)]
        with database.writing():
            database.execute("INSERT INTO meta VALUES('y', zeroblob(600000))")
        assert database.rows("PRAGMA page_size") == [(LARGE,)]


def test_index_left_half_enlarged_is_rebuilt(tmp_path: Path) -> None:
    add(tmp_path, "a")
    path = index_of(tmp_path)
    path.with_suffix(ENLARGING).touch()
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("user_version", 77)
    with keepstone.open(tmp_path, embedder="none") as home:
        assert home.agent("a").recall("walnut")
    assert not path.with_suffix(ENLARGING).exists()
    with closing(apsw.Connection(str(path))) as connection:
        assert connection.pragma("user_version") == 0


def test_index_that_another_process_enlarges_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.index.turn.BUSY_TIMEOUT", 0)
    path = tmp_path / "index.db"
    Database(path).close()
    before, mark = path.read_bytes(), path.with_suffix(ENLARGING)
    mark.touch()
    other = FolderLock(tmp_path)
    assert other.take()
    with pytest.raises(apsw.BusyError, match="enlarges"):
        Database(path)
    assert (path.read_bytes(), mark.exists()) == (before, True)
    other.give_back()
