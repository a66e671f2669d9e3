"""What SQLite leaves in its pages of rows that it moved is erased."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepstone.index.database import Database
from keepstone.index.gaps import zero_gaps
from keepstone.index.page_size import LARGE, SMALL

SECRET = b"Qzvwalnut"
LEAF = 13


def filled(path: Path, rows: int = 60) -> Database:
    """An index with a table whose rows were moved to another page because one before them grew."""
    database = Database(path)
    database.execute("CREATE TABLE some(n INTEGER PRIMARY KEY, text TEXT)")
    for number in range(1, rows + 1):
        text = f"{SECRET.decode()} {'x' * 200}" if number == 31 else f"{number} {'y' * 200}"
        database.execute("INSERT INTO some VALUES(?, ?)", (number, text))
    with database.writing():  # At its end an index of many pages gets large ones.
        pass
    database.execute("UPDATE some SET text=? WHERE n=5", ("z" * 3000,))
    database.execute("DELETE FROM some WHERE n=31")
    assert database.checkpoint(5)
    return database


def leave_in_gap(path: Path) -> int:
    """Put the secret between the cells of a page of rows, as SQLite leaves them there; return its size."""
    raw = bytearray(path.read_bytes())
    size = int.from_bytes(raw[16:18], "big")
    for page in range(size, len(raw), size):
        cells = int.from_bytes(raw[page + 3 : page + 5], "big")
        content = page + int.from_bytes(raw[page + 5 : page + 7], "big")
        gap = page + 8 + 2 * cells + 20  # Room for more cells, which would overwrite it.
        if raw[page] == LEAF and content - gap > 2 * len(SECRET):
            raw[gap : gap + len(SECRET)] = SECRET
            path.write_bytes(raw)
            return size
    raise AssertionError("no page has room")


@pytest.mark.parametrize(("rows", "size"), [(60, SMALL), (3000, LARGE)])
def test_what_is_left_between_the_cells_of_a_page_is_erased(tmp_path: Path, rows: int, size: int) -> None:
    path = tmp_path / "index.db"
    filled(path, rows).close()
    assert leave_in_gap(path) == size
    database = Database(path)
    assert database.checkpoint(5)
    assert zero_gaps(database)
    assert database.checkpoint(5)
    assert SECRET not in path.read_bytes()
    database.close()


def test_rows_stay_as_they_are(tmp_path: Path) -> None:
    database = filled(tmp_path / "index.db")
    before = database.rows("SELECT n, text FROM some")
    assert zero_gaps(database)
    assert database.rows("SELECT n, text FROM some") == before
    assert database.rows("PRAGMA integrity_check") == [("ok",)]
    database.close()


def test_nothing_is_erased_while_the_journal_holds_pages(tmp_path: Path) -> None:
    database = filled(tmp_path / "index.db")
    database.execute("INSERT INTO some VALUES(99, 'new')")
    assert not zero_gaps(database)
    assert database.checkpoint(5)
    assert zero_gaps(database)
    database.close()


@pytest.mark.parametrize("writes", [0, 1])
def test_no_connection_brings_a_gap_back(tmp_path: Path, writes: int) -> None:
    path = tmp_path / "index.db"
    filled(path).close()
    leave_in_gap(path)
    both = Database(path), Database(path)
    assert both[0].checkpoint(5)
    for each in both:
        each.rows("SELECT * FROM sqlite_schema, some")  # It keeps the page in memory.
    assert zero_gaps(both[0])
    both[writes].execute("PRAGMA user_version=7")  # It writes the page.
    assert both[writes].checkpoint(5)
    assert SECRET not in path.read_bytes()
    for each in both:
        each.close()


def test_an_index_in_memory_has_no_file_to_erase_from() -> None:
    database = Database(None)
    assert zero_gaps(database)
    database.close()
