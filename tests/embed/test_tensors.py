"""Files of the safetensors format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.embed.tensors import read_tensors


def file_of(header: Any, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list[int], end: int) -> dict[str, Any]:
    return {"t": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}


@pytest.mark.parametrize(("dtype", "kind"), [("F32", "<f4"), ("F16", "<f2"), ("I64", "<i8")])
def test_tensors_have_the_numbers_of_their_file(tmp_path: Path, dtype: str, kind: str) -> None:
    numbers = np.arange(6, dtype=kind).reshape(2, 3)
    header = {"__metadata__": {"format": "pt"}, **entry(dtype, [2, 3], numbers.nbytes)}
    (tmp_path / "file").write_bytes(file_of(header, numbers.tobytes()))
    read = read_tensors(tmp_path / "file")
    assert list(read) == ["t"]
    assert read["t"].dtype == kind
    assert np.array_equal(read["t"], numbers)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"12345678",
        b"\xff" * 100,
        file_of(b"no json", b""),
        file_of(b"[]", b""),
        file_of({"t": 5}, b""),
        file_of(entry("F32", [2], 8), b"1234"),
        file_of(entry("F32", [3], 8), b"12345678"),
        file_of(entry("F8", [8], 8), b"12345678"),
        file_of({"t": {"dtype": "F32"}}, b""),
    ],
)
def test_any_other_file_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(ValueError, match="is not a safetensors file"):
        read_tensors(tmp_path / "file")


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "file"
    path.write_bytes(data)
    try:
        assert isinstance(read_tensors(path), dict)
    except ValueError as error:
        assert "is not a safetensors file" in str(error)  # noqa: PT017  Either outcome is right.
