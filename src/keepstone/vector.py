"""Vectors in the form that callers give and in the form of a log line.

NumPy is loaded with the first vector: memory without vectors does not need it.
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
    """An object that NumPy can convert to an array, such as an array or a tensor."""

    def __array__(self, *args: Any, **keys: Any) -> Any:
        """Return the values as a NumPy array."""


VectorLike: TypeAlias = Sequence[SupportsFloat] | SupportsArray
"""A caller's vector: a sequence of numbers, or an array."""
EmbeddingLike: TypeAlias = VectorLike | Mapping[str, Any]
"""The vector of an entry: a caller's vector, or the mapping in a log line."""

F32 = "<f4"
"""NumPy's name for the little-endian float32 that is stored on disk."""

_GIVEN = "given:"
_TINY, _HUGE = 1e-200, 1e200
"""Bounds for the squared length of a vector, between which it cannot have underflowed or overflowed."""
_IS_UNIT = 1e-6
"""Maximum deviation from length 1, from rounding to float32, up to which a vector is not rescaled."""


@dataclass(frozen=True, slots=True)
class Space:
    """The vector space of one embedder. Vectors of different spaces are never compared."""

    id: str
    """The embedder's id, or ``given:384`` for vectors that callers gave without an embedder."""
    dim: int
    probe: str = field(default="", compare=False, repr=False)
    """The embedder's result for a fixed text, see ``embed.probe``; empty if it was not computed."""

    @property
    def is_given(self) -> bool:
        """Whether callers give the vectors of this space, and no embedder is known for it."""
        return self.id.startswith(_GIVEN)


@cache
def given_space(dim: int) -> Space:
    """Return the space of vectors of this dimension that callers give without an embedder."""
    return Space(f"{_GIVEN}{dim}", dim)


SAMPLE = 256
"""Number of vectors in the sample of a space: the first by ``drawn``, or all if there are fewer.

Quartiles of 64 vectors depend too much on the sample: one sample in five made unrelated entries relevant.
"""
_FEWEST = 8
"""Minimum number of cosines from which quartiles are computed."""


def drawn(entry_id: str) -> str:
    """Return the sort key of an entry's vector for drawing a sample: a digest of the entry's id.

    PostgreSQL computes the same digest. The sample does not depend on the order of writing.
    """
    return hashlib.md5(entry_id.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def quartiles(cosines: Sequence[float]) -> tuple[float, float] | None:
    """Return the median and upper quartile of a vector's cosines with a sample; None for too few cosines."""
    from statistics import quantiles  # Ten times as fast as NumPy's for a few values.

    if len(cosines) < _FEWEST:
        return None
    _, median, upper = quantiles(cosines, method="inclusive")
    return median, upper


def unit(value: Any) -> Vector:
    """Return a caller's vector as float32 of unit length. The caller's object is not changed.

    Raises:
        TypeError: The value is not a sequence or array of numbers.
        InvalidEmbeddingError: The vector is empty, has more than one axis, or contains NaN, infinity or only
            zeros.

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
    # Scale first, as the squares of very large or very small numbers overflow or underflow.
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
    """The mapping of a vector in a log line: its space and its base64 float32; plus the vector itself.

    Code that passes on an encoded vector need not decode it, nor search it for characters that JSON escapes.
    """

    def __init__(self, space: str, vector: Vector, coded: str) -> None:
        super().__init__(space=space, f32=coded)
        self.vector = vector

    def moved(self, space: str) -> Embedding:
        """Return the same vector in another space."""
        return Embedding(space, self.vector, self["f32"])


def encode(space: str, vector: Vector) -> Embedding:
    """Return the value for a vector of unit length in a log line."""
    plain = vector.astype(F32, copy=False)
    return Embedding(space, plain, binascii.b2a_base64(plain.tobytes(), newline=False).decode("ascii"))


def encoded(record: dict[str, Any], encode: Callable[[Any], str]) -> str:
    """Return a line's JSON; an ``Embedding`` is written last and without JSON escaping."""
    embedding = record.get("embedding")
    if not isinstance(embedding, Embedding):
        return encode(record)
    # Put a mark at the end of the object, and replace it with the vector, without encoding the vector again.
    others = encode({key: value for key, value in record.items() if key != "embedding"} | {"": 0})
    coded = f'"embedding":{{"space":{encode(embedding["space"])},"f32":"{embedding["f32"]}"}}}}'
    return others.removesuffix('"":0}') + coded


def decode(value: object) -> tuple[Space, Vector] | None:
    """Return the space and the unit vector of a log line's ``embedding``; None if it has no valid vector."""
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
    # A line that was edited by hand may name a dimension that its vector does not have.
    if name.startswith(_GIVEN) and name != given_space(len(vector)).id:
        return None
    return Space(name, len(vector)), vector


def _unit_of(raw: bytes) -> Vector:
    """Return the vector of these bytes, scaled unless it has unit length; ValueError if it is not valid."""
    import numpy as np

    vector = np.frombuffer(raw, F32).astype(np.float32)
    wide = vector.astype(np.float64)
    length = math.sqrt(wide @ wide)
    return vector if abs(length - 1) < _IS_UNIT else unit(vector)


def embedding_of(value: Any) -> Embedding:
    """Return a caller's embedding in the form of a log line.

    A sequence or array gets the space ``given:N``, which ``settle`` may replace. A mapping in the format of a
    log line, for example from another entry's line, keeps its space.

    Raises:
        TypeError, InvalidEmbeddingError: As for ``unit``; also for a mapping of another format.
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
    """Convert callers' embeddings to the form of log lines all at once, in a third of the time.

    Return None unless all are valid float arrays of one length, which need no special handling by ``unit``.
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
    """Move the embeddings of checked records that name no embedder into the agent's space.

    ``known`` is that space; if it is None, the first such embedding sets the space.

    Raises:
        EmbeddingDimMismatchError: An embedding's dimension differs from the space's. Nothing was changed.
    """
    given = []
    for record in records:
        found = decode(record.get("embedding"))
        if found is not None and (found[0].is_given or (known and found[0].id == known.id)):
            known = known or found[0]
            # Check all of them before any record is changed: a batch is all or nothing.
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
