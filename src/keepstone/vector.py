"""Vectors, as callers give them and as a log line holds them.

NumPy is loaded when the first vector is met: memory without vectors does without it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, TypeAlias

from keepstone.errors import EmbeddingDimMismatchError, InvalidEmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"
"""The embedding of one text: float32 of shape ``(dim,)``, of unit length."""
Matrix: TypeAlias = "NDArray[np.float32]"
"""The embeddings of several texts: float32 of shape ``(n, dim)``, each row of unit length."""


class SupportsArray(Protocol):
    """An object that NumPy makes an array of, such as an array or a tensor."""

    def __array__(self, *args: Any, **keys: Any) -> Any:
        """Return the values as an array of NumPy."""


VectorLike: TypeAlias = Sequence[SupportsFloat] | SupportsArray
"""A vector as callers give it: a sequence of numbers, or an array."""
EmbeddingLike: TypeAlias = VectorLike | Mapping[str, Any]
"""The vector of an entry: as callers give it, or as a log line holds it."""

F32 = "<f4"
"""How NumPy calls the little-endian float32 that reaches the disk."""

_GIVEN = "given:"
_TINY, _HUGE = 1e-200, 1e200
"""Between these the square of a vector's length has lost nothing to underflow or overflow."""
_IS_UNIT = 1e-6
"""Tolerance for the length of a float32 vector after rounding; within it a vector is left as it is."""


@dataclass(frozen=True, slots=True)
class Space:
    """The vector space of one embedder. Vectors of different spaces are never compared."""

    id: str
    """The embedder's id, or ``given:384`` for vectors that callers gave without one."""
    dim: int
    probe: str = field(default="", compare=False, repr=False)
    """The embedder's answer to a fixed text, see ``embed.probe``; empty if it was not asked for."""

    @property
    def is_given(self) -> bool:
        """Whether no embedder is known for it."""
        return self.id.startswith(_GIVEN)


@cache
def given_space(dim: int) -> Space:
    """Return the space of vectors of this dimension that come without an embedder."""
    return Space(f"{_GIVEN}{dim}", dim)


SAMPLE = 256
"""Vectors of a space that show the usual cosines: all of fewer, else the first by ``drawn``.

The quartiles of 64 vary so much with the draw that one in five found something unrelated relevant.
"""
_FEWEST = 8
"""Vectors that suffice for that."""


def drawn(entry_id: str) -> str:
    """Return the place of an entry's vector among those that a sample is taken of: a digest of its id.

    PostgreSQL computes the same. Which vectors are drawn does not depend on the order of writing.
    """
    return hashlib.md5(entry_id.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def quartiles(cosines: Sequence[float]) -> tuple[float, float] | None:
    """Return median and upper quartile of a vector's cosines with a sample; None if there are too few."""
    from statistics import quantiles  # Ten times as quick as NumPy's for so few.

    if len(cosines) < _FEWEST:
        return None
    _, median, upper = quantiles(cosines, method="inclusive")
    return median, upper


def unit(value: Any) -> Vector:
    """Return a caller's vector as float32 of unit length; the caller's own is not changed.

    Raises:
        TypeError: It is no sequence or array of numbers.
        InvalidEmbeddingError: It is empty, has more than one axis, holds NaN or infinity, or only zeros.

    Examples:
        >>> unit([3, 4]).tolist()
        [0.6000000238418579, 0.800000011920929]
    """
    import numpy as np

    numbers = _numbers(value)
    if numbers.ndim != 1 or not numbers.size:
        raise InvalidEmbeddingError(
            f"an embedding has one axis and at least one number; this has the shape {numbers.shape}"
        )
    with np.errstate(all="ignore"):
        square = float(numbers @ numbers)
    if _TINY < square < _HUGE:  # False for NaN, too.
        return np.asarray(numbers / math.sqrt(square), np.float32)
    largest = np.abs(numbers).max()
    if not np.isfinite(numbers).all():
        raise InvalidEmbeddingError("an embedding has finite numbers only; this holds NaN or infinity")
    if not largest:
        raise InvalidEmbeddingError("an embedding of zeros has no direction, so nothing is similar to it")
    # Scaled first, as the squares of very large or very small numbers overflow or underflow.
    scaled = numbers / largest
    return np.asarray(scaled / np.linalg.norm(scaled), np.float32)


def _numbers(value: Any) -> NDArray[np.float64]:
    import numpy as np

    if not isinstance(value, np.ndarray) and isinstance(
        value, str | bytes | bytearray | memoryview | Mapping
    ):
        raise _no_numbers(value)
    try:
        found = np.asarray(value)
    except ValueError as error:
        raise InvalidEmbeddingError(f"an embedding has one axis: {error}") from error
    has_bool = isinstance(value, list | tuple) and any(isinstance(item, bool) for item in value)
    # An empty list becomes an array of floats, which is refused for its shape.
    if found.ndim == 0 or found.dtype.kind not in "fiu" or has_bool:
        raise _no_numbers(value)
    return found.astype(np.float64)


def _no_numbers(value: object) -> TypeError:
    return TypeError(
        f"an embedding must be a sequence or array of numbers, not {type(value).__name__}: {value!r:.80}"
    )


class Embedding(dict[str, str]):
    """A vector in a log line: its space, and its float32 in base64; and the vector itself.

    So what was just encoded need not be decoded by those who pass it on, nor looked through for
    characters that JSON escapes.
    """

    def __init__(self, space: str, vector: Vector, coded: str) -> None:
        super().__init__(space=space, f32=coded)
        self.vector = vector

    def moved(self, space: str) -> Embedding:
        """Return the same vector in another space."""
        return Embedding(space, self.vector, self["f32"])


def encode(space: str, vector: Vector) -> Embedding:
    """Return the value in a log line for a vector of unit length."""
    plain = vector.astype(F32, copy=False)
    return Embedding(space, plain, binascii.b2a_base64(plain.tobytes(), newline=False).decode("ascii"))


def encoded(record: dict[str, Any], encode: Callable[[Any], str]) -> str:
    """Return a line's JSON; a vector goes last, for its base64 has nothing to escape."""
    embedding = record.get("embedding")
    if not isinstance(embedding, Embedding):
        return encode(record)
    # A mark at the end of the object, so that the vector can be put in its place without encoding it again.
    others = encode({key: value for key, value in record.items() if key != "embedding"} | {"": 0})
    coded = f'"embedding":{{"space":{encode(embedding["space"])},"f32":"{embedding["f32"]}"}}}}'
    return others.removesuffix('"":0}') + coded


def decode(value: object) -> tuple[Space, Vector] | None:
    """Return space and vector (of unit length) that a log line's ``embedding`` says, None if it says none."""
    if isinstance(value, Embedding):
        return Space(value["space"], len(value.vector)), value.vector
    if not isinstance(value, dict):
        return None
    name, coded = value.get("space"), value.get("f32")
    if not (isinstance(name, str) and name and name.isprintable() and isinstance(coded, str)):
        return None
    try:
        vector = _unit_of(base64.b64decode(coded, validate=True))
    except (binascii.Error, ValueError):
        return None
    # A line that was edited by hand may name one dimension and hold another.
    if name.startswith(_GIVEN) and name != given_space(len(vector)).id:
        return None
    return Space(name, len(vector)), vector


def _unit_of(raw: bytes) -> Vector:
    """Return the vector of these bytes, bit for bit if it has unit length; ValueError if it is none."""
    import numpy as np

    vector = np.frombuffer(raw, F32).astype(np.float32)
    wide = vector.astype(np.float64)
    length = math.sqrt(wide @ wide)
    return vector if abs(length - 1) < _IS_UNIT else unit(vector)


def embedding_of(value: Any) -> Embedding:
    """Return a caller's embedding as a log line says it.

    A sequence or array is of the space ``given:N`` until ``settle`` knows better. A
    mapping of the log's own shape, as another entry's line has it, names its space.

    Raises:
        TypeError, InvalidEmbeddingError: As for ``unit``; also a mapping that is not of that shape.
    """
    if isinstance(value, Embedding):
        return value
    if not isinstance(value, Mapping):
        vector = unit(value)
        return encode(given_space(len(vector)).id, vector)
    found = decode(dict(value))
    if found is None or value.keys() != {"space", "f32"}:
        raise InvalidEmbeddingError(
            f"an embedding of a log line is {{'space': name, 'f32': base64 of float32}}: {dict(value)!r:.80}"
        )
    space, vector = found
    return encode(space.id, vector)


def embeddings_of(values: Sequence[Any]) -> list[Embedding] | None:
    """Return callers' embeddings as log lines say them, made all at once, which takes a third of the time.

    None unless all are arrays of floats of one length that ``unit`` has nothing to say against.
    """
    if not values or not hasattr(values[0], "dtype"):
        return None
    import numpy as np

    first = values[0]
    if not all(isinstance(value, np.ndarray) and value.dtype.kind == "f" for value in values):
        return None
    if first.ndim != 1 or any(value.shape != first.shape for value in values):
        return None
    numbers = np.array(values, np.float64)
    with np.errstate(all="ignore"):
        squares = np.einsum("ij,ij->i", numbers, numbers)
    if not ((squares > _TINY) & (squares < _HUGE)).all():  # False for NaN, too.
        return None
    name = given_space(len(first)).id
    return [encode(name, row.copy()) for row in (numbers / np.sqrt(squares)[:, None]).astype(F32)]


def settle(records: Iterable[dict[str, Any]], known: Space | None) -> None:
    """Bring the embeddings of checked records that name no embedder into the agent's space.

    ``known`` is that space; where there is none, the first such embedding decides.

    Raises:
        EmbeddingDimMismatchError: One has another dimension than the space. Nothing was changed then.
    """
    given = []
    for record in records:
        found = decode(record.get("embedding"))
        if found is not None and (found[0].is_given or (known and found[0].id == known.id)):
            known = known or found[0]
            # All of them before any is changed: a batch is all or nothing.
            check_dim(found[0].dim, known)
            given.append(record)
    for record in given:
        embedding = record["embedding"]
        if known is not None and embedding["space"] != known.id:
            moved = isinstance(embedding, Embedding)
            record["embedding"] = embedding.moved(known.id) if moved else embedding | {"space": known.id}


def check_dim(dim: int, space: Space) -> None:
    """Raise EmbeddingDimMismatchError unless ``dim`` is the dimension of the space."""
    if dim != space.dim:
        raise EmbeddingDimMismatchError(
            f"the embedding has {dim} numbers, and the space {space.id!r:.80} in use here has {space.dim}: "
            "give vectors of one embedder, or use another agent"
        )
