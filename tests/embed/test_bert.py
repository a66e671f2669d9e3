"""The forward pass, on a small encoder of random weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.embed.bert import Bert, Norm, gelu

WIDTH, INNER, WORDS, TOKENS = 8, 16, 20, 6
SHAPES = {
    "attention.self.query": (WIDTH, WIDTH),
    "attention.self.key": (WIDTH, WIDTH),
    "attention.self.value": (WIDTH, WIDTH),
    "attention.output.dense": (WIDTH, WIDTH),
    "intermediate.dense": (INNER, WIDTH),
    "output.dense": (WIDTH, INNER),
}


@pytest.fixture
def bert() -> Bert:
    chance = np.random.default_rng(7)
    shapes = {
        "embeddings.word_embeddings.weight": (WORDS, WIDTH),
        "embeddings.position_embeddings.weight": (TOKENS, WIDTH),
        "embeddings.token_type_embeddings.weight": (2, WIDTH),
    }
    norms = ["embeddings"]
    for layer in ("encoder.layer.0.", "encoder.layer.1."):
        shapes |= {f"{layer}{name}.weight": shape for name, shape in SHAPES.items()}
        shapes |= {f"{layer}{name}.bias": shape[:1] for name, shape in SHAPES.items()}  # type: ignore[misc]
        norms += [f"{layer}attention.output", f"{layer}output"]
    shapes |= {f"{name}.LayerNorm.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}  # type: ignore[misc]
    return Bert({name: chance.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}, 2)


@given(st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=50))
def test_gelu_is_the_exact_one_within_a_millionth(numbers: list[float]) -> None:
    exact = [x * math.erfc(-x / math.sqrt(2)) / 2 for x in numbers]
    assert gelu(np.array(numbers, np.float32)) == pytest.approx(np.array(exact), rel=1e-6, abs=1e-6)


def test_gelu_of_many_numbers_is_that_of_each() -> None:
    numbers = np.linspace(-6, 6, 40_000, dtype=np.float32).reshape(200, 200)
    ends = [float(gelu(numbers[-1:, -1:].copy())[0, 0]), float(gelu(numbers[:1, :1].copy())[0, 0])]
    made = gelu(numbers.copy())
    assert [float(made[-1, -1]), float(made[0, 0])] == ends


def test_a_norm_has_mean_zero_and_variance_one() -> None:
    x = np.array([[1, 2, 3, 4], [-5, 0, 0, 5]], np.float32)
    made = Norm(np.ones(4, np.float32), np.zeros(4, np.float32))(x)
    assert made.mean(axis=1) == pytest.approx([0, 0], abs=1e-6)
    assert made.var(axis=1) == pytest.approx([1, 1], abs=1e-5)


def test_what_a_text_was_filled_up_with_changes_nothing(bert: Bert) -> None:
    alone = bert(np.array([[1, 2, 3]]), np.ones((1, 3), np.bool_))
    mask = np.array([[True, True, True, False, False], [True] * 5])
    beside = bert(np.array([[1, 2, 3, 9, 9], [4, 5, 6, 7, 8]]), mask)
    assert alone.shape == (1, 3, WIDTH)
    assert beside[0, :3] == pytest.approx(alone[0], abs=1e-5)


def test_the_order_of_tokens_counts(bert: Bert) -> None:
    mask = np.ones((1, 2), np.bool_)
    one, other = (bert(np.array([ids]), mask).mean(axis=1) for ids in ([1, 2], [2, 1]))
    assert np.abs(one - other).max() > 1e-3
