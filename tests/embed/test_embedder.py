"""What an embedder must have, and what is made of what it gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from keepstone.embed import check_embedder, embed_query, embed_texts
from keepstone.embed.embedder import check_package
from keepstone.errors import EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError
from keepstone.vector import Space


class Fixed:
    """Gives what it was told to give."""

    def __init__(self, gives: Any = None, *, name: Any = "fixed", dim: Any = 2) -> None:
        self.id = name
        self.dim = dim
        self._gives = gives

    def embed_documents(self, texts: list[str]) -> Any:
        if isinstance(self._gives, Exception):
            raise self._gives
        assert texts
        return self._gives

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def test_an_embedder_is_known_by_its_id_and_dimension() -> None:
    assert check_embedder(Fixed()) == Space("fixed", 2)


@pytest.mark.parametrize(
    "embedder", [None, "minilm", object(), Fixed(name=5), Fixed(dim="2"), Fixed(dim=2.0), Fixed(dim=True)]
)
def test_what_lacks_the_protocol_is_not_an_embedder(embedder: Any) -> None:
    with pytest.raises(TypeError, match="embed_documents"):
        check_embedder(embedder)


@pytest.mark.parametrize("embedder", [Fixed(name=""), Fixed(name="given:2"), Fixed(dim=0), Fixed(dim=-1)])
def test_an_embedder_without_a_space_of_its_own_is_refused(embedder: Any) -> None:
    with pytest.raises(ValueError, match="an id of its own and a positive dim"):
        check_embedder(embedder)


@pytest.mark.parametrize("scale", [1, 1e-30, 1e30])
def test_made_vectors_are_brought_to_unit_length(scale: float) -> None:
    made = embed_texts(Fixed(np.array([[3, 4], [0, -2]], np.float32) * scale), ["a", "b"])

    assert made.dtype == np.float32
    assert made == pytest.approx(np.array([[0.6, 0.8], [0, -1]]))


def test_lists_of_numbers_are_taken_as_well_as_arrays() -> None:
    assert embed_texts(Fixed([[0, 5]]), ["a"]).tolist() == [[0, 1]]


def test_zeros_that_an_embedder_makes_stay_zeros() -> None:
    assert embed_texts(Fixed([[0, 0], [1, 0]]), ["", "a"]).tolist() == [[0, 0], [1, 0]]


def test_what_an_embedder_raises_is_chained_to_a_clear_error() -> None:
    with pytest.raises(EmbedderUnavailableError, match="'fixed' failed.*OSError: no model") as raised:
        embed_texts(Fixed(OSError("no model")), ["a"])
    assert isinstance(raised.value.__cause__, OSError)
    assert isinstance(raised.value, RuntimeError)


@pytest.mark.parametrize("gives", [[[1, 2, 3]], [1, 2], [[1, 2], [3, 4]], [], None, 5])
def test_another_shape_than_promised_is_refused(gives: Any) -> None:
    with pytest.raises(EmbeddingDimMismatchError, match=r"'fixed' returned shape"):
        embed_texts(Fixed(gives), ["a"])


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(InvalidEmbeddingError, match="'fixed' did not return vectors"):
        embed_texts(Fixed([[1, 2], [3]]), ["a", "b"])


@pytest.mark.parametrize("gives", [[[1, float("nan")]], [[1, float("inf")]], [["a", "b"]], [[True, False]]])
def test_nan_and_infinity_are_refused(gives: Any) -> None:
    with pytest.raises(InvalidEmbeddingError, match="NaN, infinite"):
        embed_texts(Fixed(gives), ["a"])


def test_the_vector_of_a_query_is_checked_and_has_unit_length() -> None:
    assert embed_query(Fixed([[3, 4]]), "a") == pytest.approx([0.6, 0.8])
    with pytest.raises(EmbeddingDimMismatchError, match=r"'fixed' returned shape"):
        embed_query(Fixed([[3, 4, 5]]), "a")
    with pytest.raises(EmbedderUnavailableError, match="'fixed' failed"):
        embed_query(Fixed(OSError("no model")), "a")


def test_an_error_of_ours_is_not_wrapped_in_another() -> None:
    with pytest.raises(InvalidEmbeddingError, match="^told so$"):
        embed_texts(Fixed(InvalidEmbeddingError("told so")), ["a"])


def test_lone_surrogates_do_not_reach_an_embedder() -> None:
    asked: list[str] = []

    class Listening(Fixed):
        def embed_documents(self, texts: list[str]) -> Any:
            asked.extend(texts)
            return [[1, 0] for _ in texts]

    embed_texts(Listening(), ["a\ud800b", "é"])
    embed_query(Listening(), "\udfff")
    assert asked == ["a?b", "é", "?"]


def test_a_missing_package_is_named_with_its_command() -> None:
    with pytest.raises(
        EmbedderUnavailableError, match=r"needs the package nowhere: pip install 'keepstone\[x\]'"
    ):
        check_package("nowhere", "y", "x")
