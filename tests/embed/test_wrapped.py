"""Functions and LangChain's embeddings as embedders."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from keepstone.embed import check_embedder, embed_query, embed_texts
from keepstone.embed.wrapped import wrapped_function, wrapped_langchain
from keepstone.errors import EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError
from keepstone.vector import Space


def lengths(texts: list[str]) -> list[list[float]]:
    return [[len(text), 1.0] for text in texts]


class Chain:
    """What a LangChain ``Embeddings`` has."""

    def __init__(self, **attributes: str) -> None:
        vars(self).update(attributes)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return lengths(texts)

    def embed_query(self, text: str) -> list[float]:
        return [float(len(text)), 2.0]


def test_a_function_from_texts_to_vectors_is_an_embedder() -> None:
    embedder = wrapped_function(lengths)
    assert check_embedder(embedder) == Space(f"function:{__name__}.lengths", 2)
    assert embedder.embed_documents(["a", "bcd"]).tolist() == [[1, 1], [3, 1]]
    assert embedder.embed_query("bc").dtype == np.float32
    assert embed_query(embedder, "").tolist() == [0, 1]


def test_a_function_may_name_its_own_space() -> None:
    class Named:
        id = "mine-v2"
        dim = 3

        def __call__(self, texts: list[str]) -> Any:
            raise AssertionError(texts)

    assert check_embedder(wrapped_function(Named())) == Space("mine-v2", 3)


def test_an_object_that_can_be_called_is_named_by_its_class() -> None:
    class Model:
        def __call__(self, texts: list[str]) -> Any:
            return lengths(texts)

    assert wrapped_function(Model()).id.endswith("<locals>.Model")


@pytest.mark.parametrize(
    "function",
    [Chain().embed_documents, partial(lengths), lambda texts: [*lengths(texts)]],
    ids=["method", "partial", "lambda"],
)
def test_the_name_of_a_method_lambda_or_partial_identifies_no_model(function: Any) -> None:
    assert not wrapped_function(function).is_named
    assert wrapped_function(lengths).is_named


def test_lambda_and_partial_with_an_id_are_embedders() -> None:
    for function in (partial(lengths), lambda texts: [*lengths(texts)]):
        function.id = "lengths-2"  # type: ignore[attr-defined]
        assert check_embedder(wrapped_function(function)) == Space("lengths-2", 2)


def test_embeddings_of_langchain_keep_texts_and_queries_apart() -> None:
    embedder = wrapped_langchain(Chain(model="small"))
    assert check_embedder(embedder) == Space("langchain:Chain:small", 2)
    assert embedder.embed_documents(["ab"]).tolist() == [[2, 1]]
    assert embedder.embed_query("ab").tolist() == [2, 2]


def test_embeddings_of_langchain_need_no_models_name() -> None:
    assert wrapped_langchain(Chain()).id == "langchain:Chain"
    assert wrapped_langchain(Chain(model_name="large")).id == "langchain:Chain:large"


def test_no_texts_are_not_asked_about() -> None:
    assert wrapped_function(lengths).embed_documents([]).shape == (0, 2)


@pytest.mark.parametrize("gives", [[5], [[[1.0]]], [[]]])
def test_what_gives_no_vector_has_no_dimension(gives: Any) -> None:
    def odd(_: list[str]) -> Any:
        return gives

    with pytest.raises(InvalidEmbeddingError, match="returned shape"):
        check_embedder(wrapped_function(odd))


def test_a_function_that_raises_is_not_an_embedder_now() -> None:
    def broken(_: list[str]) -> Any:
        raise OSError("no model")

    with pytest.raises(EmbedderUnavailableError, match="broken' failed: OSError: no model"):
        check_embedder(wrapped_function(broken))


def test_a_vector_too_few_is_refused() -> None:
    def first_only(texts: list[str]) -> Any:
        return lengths(texts[:1])

    with pytest.raises(EmbeddingDimMismatchError, match=r"returned shape \(1, 2\)"):
        embed_texts(wrapped_function(first_only), ["a", "b"])


def test_an_embedder_that_failed_is_asked_again() -> None:
    answers: list[Any] = [OSError("starting"), None]

    def starting(texts: list[str]) -> Any:
        if isinstance(answers.pop(0), OSError):
            raise OSError("starting")
        return lengths(texts)

    embedder = wrapped_function(starting)
    with pytest.raises(EmbedderUnavailableError):
        check_embedder(embedder)
    assert check_embedder(embedder).dim == 2
