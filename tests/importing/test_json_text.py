"""Elements of a JSON array, read with memory for one of them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.errors import SourceError
from keepstone.importing import json_text
from keepstone.importing.json_text import elements, numbered_lines, whole

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


class Dripping(io.BytesIO):
    """Gives a few bytes at a time, however many are asked for."""

    def read(self, size: int | None = -1) -> bytes:
        return super().read(7 if size is None or size > 7 else size)


@given(
    values=st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=4) | JSON, max_size=5),
    indented=st.booleans(),
)
def test_elements_are_those_of_the_whole_array(values: list[Any], *, indented: bool) -> None:
    raw = json.dumps(values, indent=2 if indented else None, ensure_ascii=False).encode("utf-8", "replace")
    assert list(elements(Dripping(raw), "x")) == json.loads(raw)


@given(st.lists(st.dictionaries(st.text(max_size=5), JSON, max_size=3), min_size=1, max_size=3), st.data())
def test_a_truncated_array_is_an_error(values: list[Any], data: st.DataObject) -> None:
    raw = json.dumps(values).encode()
    cut = data.draw(st.integers(0, len(raw) - 1))
    with pytest.raises(SourceError):
        list(elements(io.BytesIO(raw[:cut]), "x"))


@pytest.mark.parametrize("raw", [b"{}", b"[x]", b"[{}] x", b"[{} {]", b"[\xff]", b'[{"a": ' + b"[" * 100_000])
def test_what_is_not_an_array_is_refused(raw: bytes) -> None:
    with pytest.raises(SourceError):
        list(elements(io.BytesIO(raw), "x"))


def test_a_line_that_is_too_long_does_not_hide_the_next() -> None:
    file = io.BytesIO(b"a\n" + b"x" * (17 << 20) + b"\n\nb")
    assert list(numbered_lines(file)) == [(1, b"a\n"), (2, None), (4, b"b")]


@pytest.mark.parametrize("read", [lambda file: list(elements(file, "x")), lambda file: whole(file, "x")])
def test_more_values_than_memory_has_room_for_are_refused(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[io.BytesIO], Any]
) -> None:
    monkeypatch.setattr(json_text, "MOST_VALUES", 1_000)
    assert read(io.BytesIO(b"[[" + b"[]," * 400 + b"[]]]")) is not None
    with pytest.raises(SourceError, match="^x has more than 1,000 values"):
        read(io.BytesIO(b"[[" + b"[]," * 600 + b"[]]]"))


@pytest.mark.parametrize("read", [lambda file: list(elements(file, "x")), lambda file: whole(file, "x")])
def test_a_value_that_is_too_large_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[io.BytesIO], Any]
) -> None:
    monkeypatch.setattr(json_text, "LARGEST", 100_000)
    with pytest.raises(SourceError, match=r"^x has .*more than 100,000 .*: export it in parts$"):
        read(io.BytesIO(b'["' + b"a" * 300_000 + b'"]'))


def test_many_commas_in_a_short_text_are_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "MOST_VALUES", 1_000)
    assert list(elements(io.BytesIO(b'["' + b"," * 900 + b'"]'), "x")) == ["," * 900]
