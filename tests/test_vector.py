"""Vectors as callers give them, and as a log line holds them."""

from __future__ import annotations

import base64
from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.errors import EmbeddingDimMismatchError, InvalidEmbeddingError
from keepstone.vector import Space, decode, embedding_of, embeddings_of, encode, given_space, settle, unit

NUMBERS = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20).filter(any)


def f32(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()


@given(NUMBERS)
def test_any_finite_vector_but_zeros_comes_to_unit_length(numbers: list[float]) -> None:
    vector = unit(numbers)

    assert vector.dtype == np.float32
    assert vector.shape == (len(numbers),)
    assert float(np.linalg.norm(vector.astype(np.float64))) == pytest.approx(1, abs=1e-6)


@given(NUMBERS)
def test_a_vector_comes_out_of_a_line_bit_for_bit(numbers: list[float]) -> None:
    vector = unit(numbers)

    found = decode(encode("letters", vector))

    assert found is not None
    assert found[0] == Space("letters", len(numbers))
    assert found[1].tobytes() == vector.tobytes()


@pytest.mark.parametrize(
    "value",
    [
        [3, 4],
        (3.0, 4),
        array("d", [3, 4]),
        array("f", [3, 4]),
        np.array([3, 4]),
        np.array([3, 4], "f2"),
        np.array([3, 4], ">f8"),
        [np.float32(3), np.int64(4)],
    ],
)
def test_sequences_and_arrays_of_numbers_are_vectors(value: Any) -> None:
    assert unit(value).tolist() == pytest.approx([0.6, 0.8])


def test_the_callers_array_is_not_changed() -> None:
    mine = np.array([3, 4], np.float32)
    unit(mine)
    assert mine.tolist() == [3, 4]


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        0.5,
        "0.1, 0.2",
        b"\0\0\0\0",
        bytearray(4),
        {"a": 1},
        {1.0, 2.0},
        object(),
        ["a", "b"],
        [None, 1],
        [True, False],
        [1.0, True],
        np.array([True]),
        np.array([1j]),
        np.array(["1"]),
        iter([1.0]),
    ],
)
def test_what_holds_no_numbers_is_a_type_error(value: Any) -> None:
    with pytest.raises(TypeError, match="numbers"):
        unit(value)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "at least one number"),
        ([[1.0, 2.0]], "one axis"),
        ([[1.0], [1.0, 2.0]], "one axis"),
        ([1.0, float("nan")], "NaN"),
        ([float("inf"), 1.0], "infinity"),
        ([-float("inf")], "infinity"),
        ([0.0, -0.0, 0], "zeros"),
    ],
)
def test_numbers_that_make_no_vector_are_value_errors(value: Any, said: str) -> None:
    with pytest.raises(InvalidEmbeddingError, match=said) as raised:
        unit(value)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        [1.0, 2.0],
        {},
        {"space": "given:2"},
        {"space": "", "f32": f32(1, 2)},
        {"space": 5, "f32": f32(1, 2)},
        {"space": "x", "f32": [1, 2]},
        {"space": "x", "f32": ""},
        {"space": "x", "f32": "not base64!"},
        {"space": "x", "f32": "ü"},
        {"space": "x", "f32": base64.b64encode(b"7 bytes").decode()},
        {"space": "x", "f32": f32(0, 0)},
        {"space": "x", "f32": f32(1, float("nan"))},
        {"space": "given:3", "f32": f32(1, 2)},
        {"space": "given:two", "f32": f32(1, 2)},
    ],
)
def test_a_malformed_embedding_of_a_line_is_none(value: Any) -> None:
    assert decode(value) is None


def test_a_line_of_another_program_is_brought_to_unit_length() -> None:
    found = decode({"space": "given:2", "f32": f32(3, 4), "note": "other keys do no harm"})

    assert found is not None
    assert found[1].tolist() == pytest.approx([0.6, 0.8])


def test_an_embedding_of_another_entrys_line_is_taken_as_it_is() -> None:
    line = encode("letters", unit([1, 2, 3]))
    assert embedding_of(line) == line


@pytest.mark.parametrize("value", [{}, {"space": "x", "f32": ""}, encode("x", unit([1])) | {"more": 1}])
def test_a_mapping_that_is_not_an_embedding_of_a_line_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(InvalidEmbeddingError, match="base64"):
        embedding_of(value)


def test_vectors_of_one_call_are_those_made_one_by_one() -> None:
    chance = np.random.default_rng(1)
    given = [chance.normal(size=24) * 10.0**power for power in range(-90, 90, 20)]
    together = embeddings_of([vector.astype(np.float64) for vector in given])
    assert together == [embedding_of(vector) for vector in given]


@pytest.mark.parametrize(
    "odd",
    [[1.0, 0.0], np.zeros(2), np.array([np.nan, 1]), np.ones(3), np.ones((1, 2)), np.array([1, 0]), None],
)
def test_vectors_that_need_a_closer_look_are_left_to_it(odd: Any) -> None:
    assert embeddings_of([np.ones(2), odd]) is None


def test_vectors_without_an_embedder_join_the_agents_space() -> None:
    records: list[dict[str, Any]] = [{"embedding": embedding_of([1, 2])}, {"id": "no vector"}]

    settle(records, Space("letters", 2))

    assert records[0]["embedding"] == embedding_of([1, 2]) | {"space": "letters"}


def test_the_first_vector_of_a_call_decides_for_the_others() -> None:
    records = [{"embedding": embedding_of([1, 2])}, {"embedding": embedding_of([1, 2, 3])}]

    with pytest.raises(EmbeddingDimMismatchError, match="3 numbers.*'given:2' in use here has 2"):
        settle(records, None)


def test_a_vector_that_names_another_space_keeps_it() -> None:
    records = [{"embedding": encode("letters", unit([1, 2]))}]

    settle(records, given_space(384))

    assert records[0]["embedding"]["space"] == "letters"
