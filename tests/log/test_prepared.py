"""A file that is written beside a log, to take its place."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.filesystem.confine import Folder
from keepstone.log.prepared import Prepared, blocks, remove_left

NAME = "s1.ndjson.next.tmp"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "sessions", create=True) as folder:
        yield folder


@pytest.fixture
def prepared(folder: Folder) -> Iterator[Prepared]:
    prepared = Prepared(folder, NAME)
    yield prepared
    prepared.close()


def left_by_a_killed_process(folder: Folder) -> None:
    """Leave a prepared file that no process has locked."""
    (folder.path / NAME).write_bytes(b"half a line")


def test_lines_are_written_in_order_and_counted(folder: Folder, prepared: Prepared) -> None:
    prepared.write([b"one\n", b"two\n"])
    prepared.write([b"three\n"])
    assert (folder.path / NAME).read_bytes() == b"one\ntwo\nthree\n"
    assert prepared.size == len(b"one\ntwo\nthree\n")


def test_a_new_file_begins_empty_whatever_was_left(folder: Folder) -> None:
    left_by_a_killed_process(folder)
    prepared = Prepared(folder, NAME)
    assert (prepared.size, (folder.path / NAME).read_bytes()) == (0, b"")
    prepared.close()


def test_the_owner_may_read_and_write_it_whatever_the_umask(folder: Folder) -> None:
    before = os.umask(0o777)
    try:
        prepared = Prepared(folder, NAME)
    finally:
        os.umask(before)
    assert (folder.path / NAME).stat().st_mode & 0o777 == 0o600
    prepared.close()


def test_the_file_takes_the_place_of_a_log(folder: Folder, prepared: Prepared) -> None:
    (folder.path / "s1.ndjson").write_bytes(b"old\n")
    prepared.write([b"new\n"])
    prepared.sync()
    status = prepared.put("s1.ndjson")
    assert (folder.path / "s1.ndjson").read_bytes() == b"new\n"
    assert os.path.samestat(status, (folder.path / "s1.ndjson").stat())
    assert not prepared.is_there()


def test_the_time_of_the_last_change_can_be_kept(folder: Folder, prepared: Prepared) -> None:
    moment = 1_700_000_000_123_456_000
    prepared.date(moment)
    prepared.date()
    assert (folder.path / NAME).stat().st_mtime_ns == moment


def test_closing_removes_the_file(folder: Folder, prepared: Prepared) -> None:
    prepared.close()
    assert not (folder.path / NAME).exists()
    assert not prepared.is_there()


def test_closing_leaves_the_file_of_another_process(folder: Folder, prepared: Prepared) -> None:
    (folder.path / NAME).unlink()
    left_by_a_killed_process(folder)
    prepared.close()
    assert (folder.path / NAME).read_bytes() == b"half a line"


def test_a_child_process_leaves_the_file_to_its_parent(folder: Folder, prepared: Prepared) -> None:
    prepared.reset()
    assert (prepared.fd, (folder.path / NAME).exists()) == (-1, True)


# Files that other processes left


def test_a_file_that_a_killed_process_left_is_removed(folder: Folder) -> None:
    left_by_a_killed_process(folder)
    assert not remove_left(folder, NAME)
    assert not (folder.path / NAME).exists()


@pytest.mark.usefixtures("prepared")
def test_a_file_in_use_stays(folder: Folder) -> None:
    assert remove_left(folder, NAME)
    assert (folder.path / NAME).exists()


def test_a_file_in_use_can_be_removed_and_its_writer_notices(folder: Folder, prepared: Prepared) -> None:
    assert not remove_left(folder, NAME, in_use=True)
    assert not prepared.is_there()


@pytest.mark.parametrize("name", [NAME, f"none/{NAME}"])
def test_without_a_file_nothing_stays(folder: Folder, name: str) -> None:
    assert not remove_left(folder, name)


# Blocks


@given(st.lists(st.binary(max_size=9)), st.integers(1, 20))
def test_blocks_hold_the_same_bytes_and_all_but_the_last_are_full(lines: list[bytes], size: int) -> None:
    found = list(blocks(lines, size))
    assert b"".join(found) == b"".join(lines)
    assert all(len(block) >= size for block in found[:-1])
    assert all(found)
