"""Whether a file has only grown since it was read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from keepstone.log.log_file import Extent

TEXT = b"walnut\n" * 2_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "log"
    path.write_bytes(TEXT)
    return path


def read(path: Path, offset: int = len(TEXT)) -> Extent:
    fd = os.open(path, os.O_RDONLY)
    try:
        return Extent.read(fd, offset)
    finally:
        os.close(fd)


def begins(extent: Extent, path: Path) -> bool:
    fd = os.open(path, os.O_RDONLY)
    try:
        return extent.begins(fd)
    finally:
        os.close(fd)


def test_a_file_that_is_the_same_or_longer_begins_with_what_was_read(path: Path) -> None:
    extent = read(path)
    assert begins(extent, path)
    with path.open("ab") as file:
        file.write(b"pecan\n")
    assert begins(extent, path)


def test_a_file_cut_off_behind_what_was_read_begins_with_it(path: Path) -> None:
    extent = read(path, offset=700)
    os.truncate(path, 1_400)
    assert begins(extent, path)


@pytest.mark.parametrize("length", [0, len(TEXT) - 1])
def test_a_file_cut_off_before_that_does_not(path: Path, length: int) -> None:
    extent = read(path)
    os.truncate(path, length)
    assert not begins(extent, path)


def test_a_file_edited_in_its_place_does_not_whatever_was_edited(path: Path) -> None:
    extent = read(path)
    with path.open("r+b") as file:
        file.write(b"W")
    os.utime(path, ns=(extent.stat.mtime + 1, extent.stat.mtime + 1))
    assert not begins(extent, path)


def test_a_file_whose_end_was_edited_and_that_grew_does_not(path: Path) -> None:
    extent = read(path)
    path.write_bytes(TEXT[:-2] + b"T\npecan\n")
    assert not begins(extent, path)


def test_another_file_of_the_same_name_does_not(path: Path) -> None:
    extent = read(path)
    other = path.with_name("other")
    other.write_bytes(TEXT + b"pecan\n")
    other.replace(path)
    assert not begins(extent, path)
