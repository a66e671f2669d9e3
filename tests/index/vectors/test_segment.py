"""The file of a generation: what was written is read again, or nothing is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from keepstone.filesystem.confine import Folder
from keepstone.index.vectors import segment as module
from keepstone.index.vectors.segment import (
    HEADER,
    ChangedError,
    Generation,
    Header,
    create,
    load,
    quantized,
    read_into,
    seal,
    size_of,
    sums_of,
    zero,
)

NAME, IDENTITY, TYPES = "1-1.int8", "of this index", b'["note"]'
ROWS, DIM = 50, 11


def header(rows: int = ROWS, dim: int = DIM) -> Header:
    return Header(IDENTITY, 1, dim, rows, rows, len(TYPES))


def vectors(rows: int = ROWS, dim: int = DIM) -> NDArray[np.float32]:
    return np.random.default_rng(3).normal(size=(rows, dim)).astype(np.float32)


def filled(rows: int = ROWS, dim: int = DIM) -> Generation:
    made = create(header(rows, dim))
    made.vids[:] = np.arange(rows) + 100
    made.type_names[:] = np.frombuffer(TYPES, np.uint8)
    if rows:
        packed, scales = quantized(vectors(rows, dim), made.header.stride)
        made.rows[:], made.scales[:], made.sums[:] = packed, scales, sums_of(packed, scales)
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path) as folder:
        yield folder


def saved(folder: Folder, made: Generation) -> int:
    fd = folder.open(NAME, os.O_RDWR | os.O_CREAT)
    try:
        return seal(made, fd)
    finally:
        os.close(fd)


def read(
    folder: Folder, checksum: int, identity: str = IDENTITY, *, whole: bool = False
) -> Generation | None:
    return load(folder, NAME, identity, checksum, whole=whole)


# Numbers


@given(
    arrays.arrays(np.float32, (3, 5), elements=st.floats(-8, 8, width=32, allow_subnormal=False)),
    st.sampled_from([8, 16]),
)
def test_a_row_times_its_scale_is_nearly_the_vector(matrix: NDArray[np.float32], stride: int) -> None:
    rows, scales = quantized(matrix, stride)
    assert rows.shape == (3, stride)
    assert not rows[:, 5:].any()
    assert (np.abs(rows[:, :5] * scales[:, None] - matrix) <= scales[:, None] * 0.51).all()


def test_a_vector_of_zeros_has_a_scale_so_that_it_is_not_erased() -> None:
    rows, scales = quantized(np.zeros((1, 5), np.float32), 8)
    assert not rows.any()
    assert scales[0] > 0


@given(arrays.arrays(np.int8, (2, 16)), st.integers(0, 15), st.integers(1, 255))
def test_a_number_that_changes_changes_the_sum_of_its_row_only(
    rows: NDArray[np.int8], at: int, change: int
) -> None:
    scales = np.array([0.5, 0.25], np.float32)
    before, other = sums_of(rows, scales), rows.copy()
    other.view(np.uint8)[1, at] ^= change
    after = sums_of(other, scales)
    assert (after == before).tolist() == [True, False]
    assert (sums_of(rows, scales * 2) != before).all()


def test_zeros_alone_have_the_sum_of_what_was_erased() -> None:
    assert sums_of(np.zeros((1, 8), np.int8), np.zeros(1, np.float32)).tolist() == [0]


@pytest.mark.parametrize(("dim", "stride"), [(1, 8), (8, 8), (9, 16), (384, 384)])
def test_a_row_is_as_long_as_the_dimension_rounded_up_to_eight(dim: int, stride: int) -> None:
    assert header(dim=dim).stride == stride


@given(st.integers(0, 300), st.integers(1, 40))
def test_the_parts_of_a_generation_fill_its_file_and_begin_in_line(rows: int, dim: int) -> None:
    made = create(header(rows, dim))
    parts = (made.vids, made.times, made.sids, made.types, made.sums, made.scales, made.rows)
    assert all(part.ctypes.data % 64 == 0 for part in parts if part.size)
    end = made.rows.ctypes.data + made.rows.nbytes - (made.vids.ctypes.data - HEADER)
    assert not rows or 0 <= size_of(made.header) - end < 64


# Files


@pytest.mark.parametrize("rows", [0, 1, ROWS])
@pytest.mark.parametrize("whole", [False, True])
def test_a_sealed_generation_is_read_as_it_was_filled(folder: Folder, rows: int, *, whole: bool) -> None:
    made = filled(rows)
    found = read(folder, saved(folder, made), whole=whole)
    assert found is not None
    assert (found.vids.tolist(), found.names()) == (made.vids.tolist(), ["note"])
    assert found.between(0, rows).tolist() == made.rows.tolist()
    assert found.steps == (float(made.scales.max()) if rows else 0)
    assert os.path.getsize(folder.path / NAME) == size_of(made.header)


def test_a_file_that_is_not_the_one_that_is_meant_is_not_read(folder: Folder) -> None:
    checksum = saved(folder, filled())
    assert read(folder, checksum) is not None
    assert read(folder, checksum + 1) is None
    assert read(folder, checksum, "of another index") is None
    assert load(folder, "2-1.int8", IDENTITY, checksum, whole=False) is None


def test_a_file_of_a_later_format_is_not_read(folder: Folder) -> None:
    made = filled()
    made.header = replace(made.header, format=module.FORMAT + 1)
    assert read(folder, saved(folder, made)) is None


@pytest.mark.parametrize("change", [-1, 1])
def test_a_file_of_another_length_is_not_read(folder: Folder, change: int) -> None:
    checksum = saved(folder, filled())
    os.truncate(folder.path / NAME, size_of(header()) + change)
    assert read(folder, checksum) is None
    assert not zero(folder, NAME, IDENTITY, checksum, [100])


def flip(folder: Folder, at: int) -> None:
    data = bytearray((folder.path / NAME).read_bytes())
    data[at] ^= 1
    (folder.path / NAME).write_bytes(data)


@pytest.mark.parametrize("at", [5, HEADER - 1, HEADER, HEADER + 8 * ROWS])
def test_damage_of_header_or_columns_shows_at_once(folder: Folder, at: int) -> None:
    checksum = saved(folder, filled())
    flip(folder, at)
    assert read(folder, checksum) is None
    assert not zero(folder, NAME, IDENTITY, checksum, [100])


def test_damage_of_a_row_shows_when_it_is_asked_for(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 10)
    checksum = saved(folder, filled())
    flip(folder, size_of(header()) - 64)
    assert read(folder, checksum, whole=True) is None
    found = read(folder, checksum)
    assert found is not None
    assert len(found.between(0, 40)) == 40
    with pytest.raises(ChangedError):
        found.between(39, 50)


def test_rows_that_were_read_once_outlive_their_file(folder: Folder) -> None:
    found = read(folder, saved(folder, filled()))
    assert found is not None
    found.between(0, ROWS)
    os.truncate(folder.path / NAME, 0)
    assert found.between(3, 7).tolist() == filled().rows[3:7].tolist()


# Erasing


def test_what_has_gone_is_erased_and_the_rest_stays_right(folder: Folder) -> None:
    made = filled()
    checksum = saved(folder, made)
    assert zero(folder, NAME, IDENTITY, checksum, [103, 100 + ROWS, 7])
    found = read(folder, checksum, whole=True)
    assert found is not None
    assert np.flatnonzero(found.scales == 0).tolist() == [3]
    assert not found.between(3, 4).any()
    assert found.between(4, ROWS).tolist() == made.rows[4:].tolist()
    assert made.rows[3].tobytes() not in (folder.path / NAME).read_bytes()


def test_a_file_that_is_missing_cannot_be_erased_from(folder: Folder) -> None:
    assert not zero(folder, NAME, IDENTITY, 5, [100])


# Reading


@pytest.mark.parametrize(("at", "is_read"), [(0, True), (3, True), (4, False), (99, False)])
def test_a_buffer_is_filled_or_the_file_is_said_to_end(folder: Folder, at: int, *, is_read: bool) -> None:
    (folder.path / "file").write_bytes(json.dumps("abcdef").encode())
    fd, buffer = folder.open("file", os.O_RDONLY), bytearray(5)
    try:
        assert read_into(fd, memoryview(buffer), at) is is_read
        assert read_into(fd, memoryview(b""), at)
    finally:
        os.close(fd)
    assert not is_read or buffer == b'"abcdef"'[at : at + 5]
