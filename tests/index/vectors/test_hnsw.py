"""A graph over the rows of a generation: what it finds, and which file is one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from keepstone.filesystem.confine import Folder
from keepstone.index.vectors import hnsw as module
from keepstone.index.vectors.hnsw import Graph, Growing, checksum_of, is_large, load
from keepstone.index.vectors.segment import Generation, Header, create, quantized

NAME, ROWS, DIM = "1-1-0-5.hnsw", 60, 16
NOBODY = np.empty(0, np.intp)


@pytest.fixture
def generation() -> Generation:
    made = create(Header("of this index", 1, DIM, ROWS, ROWS, 0))
    vectors = np.random.default_rng(2).normal(size=(ROWS, DIM)).astype(np.float32)
    made.rows[:], made.scales[:] = quantized(vectors, made.header.stride)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path) as folder:
        yield folder


def saved(folder: Folder, growing: Growing) -> int:
    fd = folder.open(NAME, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        return growing.save(fd)
    finally:
        os.close(fd)


def grown(
    folder: Folder, generation: Generation, rows: tuple[int, int] = (0, ROWS), dead: NDArray[np.intp] = NOBODY
) -> Graph:
    growing = Growing(generation, rows, dead)
    while not growing.step():
        pass
    graph = load(folder, NAME, generation.header.stride, saved(folder, growing))
    assert graph is not None
    return graph


def test_each_row_is_nearest_to_itself(folder: Folder, generation: Generation) -> None:
    graph = grown(folder, generation)
    for number, row in enumerate(generation.rows):
        rows, cosines = graph.nearest(row, 3)
        assert (rows[0], len(rows)) == (number, 3)
        assert cosines.tolist() == sorted(cosines.tolist(), reverse=True)
        assert cosines[0] == pytest.approx(1, abs=0.01)


def test_a_small_graph_finds_all_however_many_processors_make_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    many = create(Header("of this index", 1, 24, 300, 300, 0))
    vectors = np.random.default_rng(2).normal(size=(300, 24)).astype(np.float32)
    many.rows[:], many.scales[:] = quantized(vectors, many.header.stride)
    for _ in range(5):
        graph = grown(folder, many, (0, 300))
        assert [graph.nearest(row, 1)[0].tolist() for row in many.rows] == [[at] for at in range(300)]
        assert {len(graph.nearest(row, 300)[0]) for row in many.rows[:9]} == {300}


def test_only_live_rows_of_the_range_are_in_a_graph(folder: Folder, generation: Generation) -> None:
    graph = grown(folder, generation, (10, 30), np.array([5, 10, 12, 29, 30]))
    rows, _ = graph.nearest(generation.rows[15], ROWS)
    assert rows[0] == 15
    assert sorted(rows.tolist()) == [row for row in range(11, 29) if row != 12]


@pytest.mark.parametrize(("rows", "steps"), [((0, 60), 3), ((0, 50), 2), ((7, 8), 1)])
def test_a_graph_grows_by_some_rows_at_a_time(
    generation: Generation, monkeypatch: pytest.MonkeyPatch, rows: tuple[int, int], steps: int
) -> None:
    monkeypatch.setattr(module, "_STEP", 25)
    growing = Growing(generation, rows, NOBODY)
    assert [growing.step() for _ in range(steps)] == [False] * (steps - 1) + [True]


def test_a_graph_of_which_all_rows_have_gone_finds_nothing(folder: Folder, generation: Generation) -> None:
    graph = grown(folder, generation, (0, 5), np.arange(5))
    assert [len(found) for found in graph.nearest(generation.rows[0], 3)] == [0, 0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def fold(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [Path.unlink, cut, fold, lambda path: path.write_bytes(b"")])
def test_a_file_that_is_not_as_it_was_written_is_not_a_graph(
    folder: Folder, generation: Generation, damage: Callable[[Path], object]
) -> None:
    growing = Growing(generation, (0, ROWS), NOBODY)
    growing.step()
    checksum = saved(folder, growing)
    assert load(folder, NAME, DIM, checksum + 1) is None
    damage(folder.path / NAME)
    assert load(folder, NAME, DIM, checksum) is None


def test_a_graph_is_large_from_a_size_on_and_never_if_it_is_missing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUICK", 10)
    (folder.path / "small").write_bytes(b"x" * 10)
    (folder.path / "large").write_bytes(b"x" * 11)
    assert [is_large(folder, name) for name in ("small", "large", "missing")] == [False, True, False]


@given(st.binary(min_size=1, max_size=9000), st.data())
def test_a_byte_that_changes_or_goes_changes_the_checksum(raw: bytes, data: st.DataObject) -> None:
    at, change = data.draw(st.integers(0, len(raw) - 1)), data.draw(st.integers(1, 255))
    other = bytearray(raw)
    other[at] ^= change
    assert checksum_of(raw) not in (checksum_of(other), checksum_of(raw[:-1]), checksum_of(raw + b"\0"))
    assert checksum_of(raw) == checksum_of(bytearray(raw))


def test_pages_that_change_places_change_the_checksum() -> None:
    one, other = b"a" * 4096, b"b" * 4096
    assert checksum_of(one + other) != checksum_of(other + one)
