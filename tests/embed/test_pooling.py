"""Vectors of texts, made of the vectors of their tokens."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.embed.bert import Bert
from keepstone.embed.pooling import MeanVectors, _batches, mean_vectors

DIM = 3


class Table:
    """An encoder without weights: each token has one vector, the same beside any other token."""

    def __init__(self) -> None:
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, ids: Any, mask: Any) -> Any:
        assert ids[~mask].sum() == 0
        self.shapes.append(ids.shape)
        return vectors_of(ids)


def vectors_of(ids: Any) -> Any:
    """Return a vector for each token; that of padding would show in any mean."""
    ids = np.asarray(ids)
    return np.stack([ids + 1, ids % 5 + 100 * (ids == 0), ids % 7], axis=-1).astype(np.float32)


def pooled(texts: Sequence[Sequence[int]], table: Table | None = None) -> Any:
    return mean_vectors(cast("Bert", table or Table()), texts, DIM)


def alone(text: Sequence[int]) -> Any:
    mean = vectors_of(text).mean(axis=0)
    return mean / np.linalg.norm(mean)


TEXTS = st.lists(st.lists(st.integers(1, 999), min_size=1, max_size=20), min_size=1, max_size=12)


@given(TEXTS)
def test_a_text_has_the_mean_of_its_tokens_whatever_others_are_beside_it(texts: list[list[int]]) -> None:
    np.testing.assert_allclose(pooled(texts), [alone(text) for text in texts], rtol=1e-5)


def test_vectors_have_unit_length_in_float32() -> None:
    made = pooled([[1, 2, 3], [4]])
    assert made.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, rtol=1e-6)


def test_no_texts_have_no_vectors() -> None:
    assert pooled([]).shape == (0, DIM)


def test_texts_of_a_batch_are_of_similar_length() -> None:
    table = Table()
    pooled([[1] * 2000, [2], [3] * 1999, [4]], table)
    assert table.shapes == [(2, 1), (1, 1999), (1, 2000)]


@given(st.lists(st.integers(1, 5000), max_size=30))
def test_every_text_is_in_one_batch_of_limited_size(lengths: list[int]) -> None:
    found = list(_batches(lengths))
    assert sorted(place for batch in found for place in batch) == list(range(len(lengths)))
    assert all(
        len(batch) == 1 or len(batch) * max(lengths[place] for place in batch) <= 2048 for batch in found
    )


@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_calls_with_few_and_many_texts_give_the_same(count: int) -> None:
    texts = [[number + 1, number + 2] for number in range(count)]
    made = MeanVectors(lambda: cast("Bert", Table()), DIM)(texts)
    np.testing.assert_allclose(made, pooled(texts), rtol=1e-6)


def test_calls_of_several_threads_each_get_their_own_vectors() -> None:
    mean = MeanVectors(lambda: cast("Bert", Table()), DIM)
    texts = [[number, number + 1] for number in range(1, 41)]
    with ThreadPoolExecutor(4) as threads:
        made = [*threads.map(lambda text: mean([text])[0], texts)]
    np.testing.assert_allclose(made, [alone(text) for text in texts], rtol=1e-5)
