"""Opening the index of one agent, and a second time for long work."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keepstone.filesystem.folder_lock import FolderLock
from keepstone.index import Index, UnavailableError
from keepstone.store.files.index_file import open_index, second_connection


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".index" / "a" / "11"


@pytest.fixture
def index(folder: Path, tmp_path: Path) -> Iterator[Index]:
    with closing(open_index(folder, tmp_path, "a", "en")) as index:
        yield index


def test_the_first_use_makes_folder_and_file(index: Index, folder: Path) -> None:
    assert (index.in_memory, (folder / "index.db").exists()) == (False, True)


def test_an_index_is_kept_in_memory_where_the_disk_has_no_place(
    tmp_path: Path, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.parent.mkdir(parents=True)
    folder.touch()
    with caplog.at_level(logging.WARNING), closing(open_index(folder, tmp_path, "a", "en")) as index:
        assert index.in_memory
    assert "the index of agent a is kept in memory" in caplog.text


def test_long_work_gets_a_connection_of_its_own(index: Index, folder: Path, tmp_path: Path) -> None:
    with second_connection(index, folder, tmp_path, "en") as second:
        assert second is not None
        assert second is not index
        assert not second.replaced()


def test_one_long_work_at_a_time_has_a_second_connection(index: Index, folder: Path, tmp_path: Path) -> None:
    other = FolderLock(folder.parent)
    assert other.take()
    with second_connection(index, folder, tmp_path, "en") as second:
        assert second is None
    other.give_back()
    with second_connection(index, folder, tmp_path, "en") as second:
        assert second is not None


def test_an_index_in_memory_has_one_connection(folder: Path, tmp_path: Path) -> None:
    with closing(Index(None)) as index, second_connection(index, folder, tmp_path, "en") as second:
        assert second is index


def test_a_file_that_was_replaced_is_not_opened_again(index: Index, folder: Path, tmp_path: Path) -> None:
    (folder / "index.db").rename(folder / "old.db")
    with (
        pytest.raises(UnavailableError, match="the index was replaced"),
        second_connection(index, folder, tmp_path, "en"),
    ):
        pytest.fail("it was opened")


def test_a_folder_that_is_gone_is_named(index: Index, folder: Path, tmp_path: Path) -> None:
    folder.rename(folder.with_name("gone"))
    with (
        pytest.raises(UnavailableError, match="the index cannot be opened a second time"),
        second_connection(index, folder, tmp_path, "en"),
    ):
        pytest.fail("it was opened")
