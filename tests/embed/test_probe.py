"""Embedders without an id, known by their answer to a fixed text."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from keepstone.embed.probe import PROBE, SAME, cosine, identified, is_unnamed, probed, unnamed
from keepstone.errors import EmbedderUnavailableError, InvalidEmbeddingError
from keepstone.vector import F32, Space


def answer(*numbers: float) -> str:
    vector = np.array(numbers, F32)
    return base64.b64encode((vector / np.linalg.norm(vector)).astype(F32).tobytes()).decode()


class Fixed:
    """An embedder that answers everything with one vector."""

    id = "fixed"

    def __init__(self, *numbers: float) -> None:
        self._numbers = numbers
        self.dim = len(numbers)
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> Any:
        return np.array([self._numbers for _ in texts], np.float32)

    def embed_query(self, text: str) -> Any:
        self.asked.append(text)
        if not self._numbers[0]:
            raise OSError("no network")
        return np.array(self._numbers, np.float32)


def test_the_answer_is_that_to_the_fixed_text() -> None:
    embedder = Fixed(3, 4)
    assert probed(embedder) == answer(3, 4)
    assert embedder.asked == [PROBE]


def test_the_fixed_text_never_changes() -> None:
    assert PROBE.startswith("Seven grey herons waited by the river while the ferry carried letters")


def test_an_embedder_that_fails_cannot_be_identified() -> None:
    with pytest.raises(EmbedderUnavailableError, match="no network"):
        probed(Fixed(0, 1))


def test_an_embedder_that_returns_no_vector_cannot_be_identified() -> None:
    with pytest.raises(InvalidEmbeddingError):
        probed(Fixed(float("nan"), 1))


# Comparing answers


def test_answers_are_compared_by_their_cosine() -> None:
    assert cosine(answer(1, 0), answer(1, 0)) == pytest.approx(1)
    assert cosine(answer(1, 0), answer(0, 1)) == pytest.approx(0)
    assert cosine(answer(1, 0), answer(-1, 0)) == pytest.approx(-1)


@pytest.mark.parametrize("other", ["", "no base64!", "AAA=", answer(1, 0, 0)])
def test_answers_that_cannot_be_compared_are_far_apart(other: str) -> None:
    assert cosine(answer(1, 0), other) == 0.0


# Names of spaces


def test_the_same_answer_has_the_same_name() -> None:
    assert unnamed(answer(1, 2, 3)) == unnamed(answer(1, 2, 3)) != unnamed(answer(3, 2, 1))


def test_rounding_of_other_hardware_leaves_the_name() -> None:
    assert unnamed(answer(1, 2, 3)) == unnamed(answer(1.00001, 2, 3))


def test_a_zero_has_one_name_whatever_its_sign() -> None:
    assert unnamed(answer(1, 0.0)) == unnamed(answer(1, -0.0)) == unnamed(answer(1, -0.001))


def test_names_of_such_spaces_are_told_from_others() -> None:
    assert (is_unnamed(unnamed(answer(1, 0))), is_unnamed("given:384")) == (True, False)


# Embedders of a home


def test_an_embedder_that_answers_nearly_as_before_is_the_same() -> None:
    recorded = Space("my-model", 2, answer(1, 0))
    assert identified(Fixed(1, 0.01), recorded).id == "my-model"


def test_an_embedder_that_answers_otherwise_has_a_space_of_its_own() -> None:
    other = Fixed(1, 0.2)
    assert cosine(answer(1, 0), answer(1, 0.2)) < SAME
    assert identified(other, Space("my-model", 2, answer(1, 0))).id == unnamed(answer(1, 0.2))


def test_the_first_embedder_of_a_home_is_named_by_its_answer() -> None:
    found = identified(Fixed(3, 4), None)
    assert (found.id, found.probe, found.dim) == (unnamed(answer(3, 4)), answer(3, 4), 2)


def test_an_identified_embedder_answers_as_before() -> None:
    found = identified(Fixed(3, 4), None)
    assert found.embed_query("x").tolist() == [3, 4]
    assert found.embed_documents(["x", "y"]).tolist() == [[3, 4], [3, 4]]
