"""Pickle and msgpack as data."""

from __future__ import annotations

import contextlib
import os
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.importing.inert import Object, read_msgpack, read_pickle

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(DATA, st.integers(3, pickle.HIGHEST_PROTOCOL))  # Before 3, bytes were made with a function.
def test_plain_data_comes_back_from_a_pickle(value: Any, protocol: int) -> None:
    assert read_pickle(pickle.dumps(value, protocol)) == value


class Bomb:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("false",)


def test_a_pickle_that_calls_a_function_calls_nothing() -> None:
    found = read_pickle(pickle.dumps({"x": Bomb()}))
    assert isinstance(found["x"], Object)
    assert found["x"].args == ("false",)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for read in (read_pickle, read_msgpack):
        with contextlib.suppress(ValueError):
            read(raw)


def test_msgpack_of_each_kind_is_read() -> None:
    raw = b"\x87\xa1a\x01\xa1b\xff\xa1c\xc0\xa1d\x92\xc3\xc2\xa1e\xcb?\xf8\0\0\0\0\0\0"
    raw += b"\xa1f\xd9\x02hi\xa1g\xd4\x05z"
    expected: dict[str, object] = {"a": 1, "b": -1, "c": None, "d": [True, False], "e": 1.5, "f": "hi"}
    expected |= {"g": Object(5, b"z")}
    assert read_msgpack(raw) == expected


@pytest.mark.parametrize("raw", [b"\xdd\xff\xff\xff\xff", b"\x91" * 1000, b"\xc1", b"\xdb\0\0\0\x05ab", b""])
def test_damaged_msgpack_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match="msgpack"):
        read_msgpack(raw)


def shared(depth: int) -> bytes:
    """Return a pickle in which each list holds the one before ten times: ``10 ** depth`` values."""
    raw = b"\x80\x04](\x8c\x03lole" + b"q\x00"
    for number in range(depth):
        raw += b"0](" + (b"h" + bytes([number])) * 10 + b"e" + b"q" + bytes([number + 1])
    return raw + b"."


@pytest.mark.parametrize("depth", [1, 8])
def test_a_pickle_that_reaches_a_list_twice_is_refused(depth: int) -> None:
    with pytest.raises(ValueError, match="one container in two places"):
        read_pickle(shared(depth))


def test_a_pickle_that_holds_itself_is_refused() -> None:
    circle: list[Any] = [1]
    circle.append(circle)
    with pytest.raises(ValueError, match="one container in two places"):
        read_pickle(pickle.dumps(circle))


def test_a_pickle_may_repeat_texts_and_empty_containers() -> None:
    text, empty = "again" * 9, ()
    assert read_pickle(pickle.dumps([[text, empty], [text, empty]])) == [[text, ()], [text, ()]]


def test_a_pickle_that_nests_too_deep_is_refused() -> None:
    with pytest.raises(ValueError, match="nests deeper"):
        read_pickle(b"]" * 500 + b"a" * 499 + b".")


def test_data_with_too_many_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.importing.inert._MOST", 20)
    assert read_pickle(pickle.dumps([0] * 19)) == read_msgpack(b"\xdc\x00\x13" + bytes(19)) == [0] * 19
    with pytest.raises(ValueError, match="too many values"):
        read_pickle(pickle.dumps([0] * 20))
    with pytest.raises(ValueError, match="too many values"):
        read_msgpack(b"\xdc\x00\x14" + bytes(20))


def test_many_marks_on_a_long_stack_take_linear_work() -> None:
    raw = b"(" + b"N" * 200_000 + b"(t0" * 200_000 + b"l."
    assert len(read_pickle(raw)) == 200_000
