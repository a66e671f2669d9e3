"""Adapters that make embedders of functions and of LangChain's ``Embeddings``."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from keepstone.embed.embedder import finite
from keepstone.embed.lazy import Lazy
from keepstone.errors import EmbedderUnavailableError, InvalidEmbeddingError
from keepstone.vector import Matrix, Vector


class Wrapped:
    """Embedder that calls third-party functions. The first call is made when the dimension is needed.

    Args:
        name: The id of its space.
        is_named: Whether the name identifies the model.
        embed_many: Makes the vectors of documents.
        embed_one: Makes the vector of a query.
        dim: The dimension of the vectors; default: the dimension of a test vector.
    """

    def __init__(
        self,
        name: str,
        embed_many: Callable[[list[str]], Any],
        embed_one: Callable[[str], Any],
        dim: int | None = None,
        *,
        is_named: bool = True,
    ) -> None:
        self.id = name
        self.is_named = is_named
        self._embed_many = embed_many
        self._embed_one = embed_one
        self._dim = Lazy(lambda: dim or self._found_dim())

    @property
    def dim(self) -> int:
        """The dimension of the vectors.

        Raises:
            EmbedderUnavailableError: The function raised while making the test vector.
            InvalidEmbeddingError: The function did not return a vector.
        """
        return self._dim()

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), dim)``.

        Raises:
            EmbeddingDimMismatchError, InvalidEmbeddingError: The function did not return such vectors.
        """
        import numpy as np

        shape = (len(texts), self.dim)
        # For no texts many functions return [], which has the wrong shape.
        return (
            finite(self._embed_many(texts), self.id, shape).astype(np.float32)
            if texts
            else np.empty(shape, "f4")
        )

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query: float32 of shape ``(dim,)``."""
        import numpy as np

        return finite(self._embed_one(text), self.id, (self.dim,)).astype(np.float32)

    def _found_dim(self) -> int:
        import numpy as np

        try:
            shape = np.shape(self._embed_one("dimension"))
        except Exception as error:  # An embedder is other people's code.
            raise EmbedderUnavailableError(
                f"embedder {self.id!r:.200} failed: {type(error).__name__}: {error}"
            ) from error
        if len(shape) != 1 or not shape[0]:
            raise InvalidEmbeddingError(
                f"embedder {self.id!r:.200} returned shape {shape} for one text, not a vector"
            )
        return int(shape[0])


def wrapped_function(function: Callable[[list[str]], Any]) -> Wrapped:
    """Return the embedder of a function from a list of texts to their vectors.

    The function's attributes ``id`` and ``dim`` are used if it has them. Otherwise its name is the id, so
    a function whose vectors change needs another name or an ``id``. The name of a lambda, a bound method
    or a partial does not identify a model; ``probe.identified`` does.

    Examples:
        >>> def lengths(texts):
        ...     return [[len(text), 1] for text in texts]
        >>> wrapped_function(lengths).dim
        2
    """
    name = getattr(function, "id", None)
    is_named = bool(name) or _identifies_a_model(function)
    dim = getattr(function, "dim", None)
    embed_one = lambda text: function([text])[0]  # noqa: E731  Of one line, and used once.
    return Wrapped(name or _name_of(function), function, embed_one, dim, is_named=is_named)


def _identifies_a_model(function: Callable[[list[str]], Any]) -> bool:
    # A callable object has no name, but its class has one.
    kind = function if hasattr(function, "__qualname__") else type(function)
    # A built-in function is bound to its module; a method is bound to an object, which may be any model.
    is_bound = not isinstance(getattr(function, "__self__", None), ModuleType | None)
    return not (is_bound or isinstance(function, partial) or kind.__qualname__.endswith("<lambda>"))


def _name_of(function: Callable[[list[str]], Any]) -> str:
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"function:{kind.__module__}.{kind.__qualname__}"


def wrapped_langchain(embeddings: Any) -> Wrapped:
    """Return the embedder of a LangChain ``Embeddings``, or of an object with the same methods.

    Its id is ``langchain:`` with the names of its class and, if known, its model.
    """
    # LangChain's classes name their model in different attributes.
    named = (getattr(embeddings, attribute, None) for attribute in ("model", "model_name", "model_id"))
    model = next((name for name in named if isinstance(name, str) and name), None)
    name = ":".join(filter(None, ("langchain", type(embeddings).__qualname__, model)))
    return Wrapped(name, embeddings.embed_documents, embeddings.embed_query)
