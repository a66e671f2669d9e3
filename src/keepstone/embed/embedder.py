"""The protocol of an embedder, and the one place where one is asked.

What an embedder gives is somebody else's work, so it is checked before anything is kept.
"""

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
    """Makes vectors of texts, which need not be of unit length. Calls may come from several threads.

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
        """The name of its space. Two embedders whose vectors cannot be compared have different ids."""

    @property
    def dim(self) -> int:
        """How many numbers its vectors have."""

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts to be found: float32 of shape ``(len(texts), dim)``."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a text to search with: float32 of shape ``(dim,)``."""


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
        TypeError: It has not what the protocol asks for.
        ValueError: Its id is empty or begins with ``given:``, or its dim is not positive.
    """
    name, dim = getattr(embedder, "id", None), getattr(embedder, "dim", None)
    methods = [getattr(embedder, "embed_documents", None), getattr(embedder, "embed_query", None)]
    has_numbers = isinstance(dim, int) and not isinstance(dim, bool)
    if not isinstance(name, str) or not has_numbers or not all(map(callable, methods)):
        raise TypeError(
            f"{embedder!r:.80} is no embedder: it needs id, dim, embed_documents(texts) and embed_query(text)"
        )
    space = Space(name, int(dim or 0))
    if not name or space.is_given or space.dim < 1:
        raise ValueError(f"an embedder has a name of its own and a positive dim, not {name!r:.80} and {dim}")
    return space


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return the vectors of texts as an embedder makes them, brought to unit length; zeros stay zeros.

    Raises:
        EmbedderUnavailableError: The embedder raised; its error is chained.
        EmbeddingDimMismatchError: It gave another number of vectors, or vectors of another dimension.
        InvalidEmbeddingError: It gave NaN or infinity, or no numbers.
    """
    asked = [encodable(text) for text in texts]
    made = _ask(embedder.id, lambda: embedder.embed_documents(asked))
    return unit_rows(made, embedder.id, (len(asked), embedder.dim))


def embed_query(embedder: Embedder, text: str) -> Vector:
    """Return the vector of a text to search with, brought to unit length; zeros stay zeros.

    Raises:
        EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``embed_texts``.
    """
    asked = encodable(text)
    made = _ask(embedder.id, lambda: embedder.embed_query(asked))
    vector: Vector = unit_rows([made], embedder.id, (1, embedder.dim))[0]
    return vector


def encodable(text: str) -> str:
    """Return a text with a question mark for each lone surrogate, which no tokenizer and no JSON takes."""
    return text.encode("utf-8", "replace").decode("utf-8")


def finite(made: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the numbers that the embedder of this name gave.

    Raises:
        EmbeddingDimMismatchError: They have another shape than ``shape``.
        InvalidEmbeddingError: One is NaN or infinity, or is no number, or rows have different lengths.
    """
    import numpy as np

    try:
        numbers = np.asarray(made)
    except (TypeError, ValueError) as error:
        raise InvalidEmbeddingError(f"the embedder {name!r:.80} gave what are no vectors: {error}") from error
    if numbers.shape != shape:
        raise EmbeddingDimMismatchError(
            f"the embedder {name!r:.80} gave the shape {numbers.shape} where its dim says {shape}"
        )
    if numbers.dtype.kind not in "fiu" or not np.isfinite(numbers).all():
        raise InvalidEmbeddingError(f"the embedder {name!r:.80} gave what are no finite numbers")
    return numbers.astype(np.float64)


def check_package(package: str, embedder: str, extra: str) -> None:
    """Look whether a package is installed, without importing it.

    Raises:
        EmbedderUnavailableError: It is not; the message has the command that installs it.
    """
    if find_spec(package) is None:
        raise EmbedderUnavailableError(
            f"the embedder {embedder!r:.80} needs the package {package}: {install_command(extra)}"
        )


def _ask(name: str, question: Callable[[], Any]) -> Any:
    try:
        return question()
    except KeepstoneError:
        raise
    except Exception as error:  # An embedder is other people's code.
        raise EmbedderUnavailableError(
            f"the embedder {name!r:.80} failed, nothing was written: {type(error).__name__}: {error}"
        ) from error


def unit_rows(made: Any, name: str, shape: tuple[int, int]) -> Matrix:
    """Return the vectors that the embedder of this name gave, at unit length; zeros stay zeros.

    Raises:
        EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``finite``.
    """
    import numpy as np

    matrix = finite(made, name, shape)
    # Scaled first, for the squares of very large or very small numbers are no floats.
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scaled = matrix / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths > 0, lengths, 1)).astype(np.float32)
