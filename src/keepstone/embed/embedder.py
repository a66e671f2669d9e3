"""The ``Embedder`` protocol, and functions that call an embedder and validate its vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
    install_command,
)
from keepstone.vector import Matrix, Space, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """Makes vectors of texts, of any length. Must be thread-safe.

    Example:
        >>> import numpy
        >>> class Lengths:
        ...     id, dim = "lengths", 2
        ...
        ...     def embed_documents(self, texts):
        ...         return numpy.array([[len(text), 1] for text in texts], dtype=numpy.float32)
        ...
        ...     def embed_query(self, text):
        ...         return self.embed_documents([text])[0]
        >>> Lengths().embed_query("pnpm").tolist()
        [4.0, 1.0]
    """

    @property
    def id(self) -> str:
        """The id of its space. Embedders whose vectors cannot be compared have different ids."""

    @property
    def dim(self) -> int:
        """The dimension of its vectors."""

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of documents: float32 of shape ``(len(texts), dim)``."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query: float32 of shape ``(dim,)``."""


class Embeddings(Protocol):
    """What LangChain's embeddings have: vectors as lists of numbers, and no id."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts to be found."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a text to search with."""


EmbedderLike = Embedder | Embeddings | Callable[[list[str]], Any] | str
"""What a caller may give as an embedder: also a function from texts to vectors, or a name."""


def check_embedder(embedder: Any) -> Space:
    """Return the space of an embedder.

    Raises:
        TypeError: It does not implement the protocol.
        ValueError: Its id is empty or starts with ``given:``, or its dim is not positive.
    """
    name, dim = getattr(embedder, "id", None), getattr(embedder, "dim", None)
    methods = [getattr(embedder, "embed_documents", None), getattr(embedder, "embed_query", None)]
    has_numbers = isinstance(dim, int) and not isinstance(dim, bool)
    if not isinstance(name, str) or not has_numbers or not all(map(callable, methods)):
        raise TypeError(
            f"{embedder!r:.80} is not an embedder: it needs id, dim, embed_documents(texts) and "
            "embed_query(text)"
        )
    space = Space(name, int(dim or 0))
    if not name or space.is_given or space.dim < 1:
        raise ValueError(f"an embedder needs an id of its own and a positive dim, not {name!r:.80} and {dim}")
    return space


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return an embedder's vectors of documents, normalized to unit length; zeros stay zeros.

    Raises:
        EmbedderUnavailableError: The embedder raised; its error is chained.
        EmbeddingDimMismatchError: The number of vectors or their dimension is wrong.
        InvalidEmbeddingError: It returned NaN, infinity or values that are not numbers.
    """
    clean = [encodable(text) for text in texts]
    made = _call(embedder.id, lambda: embedder.embed_documents(clean))
    return unit_rows(made, embedder.id, (len(clean), embedder.dim))


def embed_query(embedder: Embedder, text: str) -> Vector:
    """Return an embedder's vector of a query, normalized to unit length; zeros stay zeros.

    Raises:
        EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``embed_texts``.
    """
    clean = encodable(text)
    made = _call(embedder.id, lambda: embedder.embed_query(clean))
    vector: Vector = unit_rows([made], embedder.id, (1, embedder.dim))[0]
    return vector


def encodable(text: str) -> str:
    """Replace lone surrogates by question marks, as neither tokenizers nor JSON accept them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def finite(made: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the numbers that an embedder returned, validated.

    Raises:
        EmbeddingDimMismatchError: Their shape is not ``shape``.
        InvalidEmbeddingError: A value is NaN, infinite or not a number, or rows have different lengths.
    """
    import numpy as np

    try:
        numbers = np.asarray(made)
    except (TypeError, ValueError) as error:
        raise InvalidEmbeddingError(f"embedder {name!r:.80} did not return vectors: {error}") from error
    if numbers.shape != shape:
        raise EmbeddingDimMismatchError(
            f"embedder {name!r:.80} returned shape {numbers.shape}, but its dim says {shape}"
        )
    if numbers.dtype.kind not in "fiu" or not np.isfinite(numbers).all():
        raise InvalidEmbeddingError(f"embedder {name!r:.80} returned NaN, infinite or non-numeric values")
    return numbers.astype(np.float64)


def check_package(package: str, embedder: str, extra: str) -> None:
    """Check that a package is installed, without importing it.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
    """
    if find_spec(package) is None:
        raise EmbedderUnavailableError(
            f"embedder {embedder!r:.80} needs the package {package}: {install_command(extra)}"
        )


def _call(name: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except KeepstoneError:
        raise
    except Exception as error:  # An embedder is other people's code.
        raise EmbedderUnavailableError(
            f"embedder {name!r:.80} failed, nothing was written: {type(error).__name__}: {error}"
        ) from error


def unit_rows(made: Any, name: str, shape: tuple[int, int]) -> Matrix:
    """Return the vectors that an embedder returned, normalized to unit length; zeros stay zeros.

    Raises:
        EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``finite``.
    """
    import numpy as np

    matrix = finite(made, name, shape)
    # Scaled first, as the squares of very large or very small numbers overflow or underflow.
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scaled = matrix / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths > 0, lengths, 1)).astype(np.float32)
