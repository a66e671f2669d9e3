"""Copies of a part of a log."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import opened

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE
from keepstone.log import kept
from keepstone.log.kept import keep_part


@given(st.binary(max_size=40), st.integers(0, 40), st.integers(0, 50), st.integers(1, 50))
def test_the_bytes_between_two_offsets_are_copied(data: bytes, begin: int, end: int, chunk: int) -> None:
    with (
        pytest.MonkeyPatch.context() as patched,
        opened(data) as source,
        tempfile.TemporaryDirectory() as path,
    ):
        patched.setattr(kept, "_CHUNK", chunk)
        name = keep_part(Folder(Path(path)), "s.ndjson", source, begin, end)
        assert (Path(path) / ARCHIVE / name).read_bytes() == data[begin:end]
