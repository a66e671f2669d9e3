"""The forward pass of a BERT encoder, in NumPy and float32."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

_EPSILON = 1e-12
_BLOCK = 16_384
"""How many numbers ``gelu`` processes at a time, so that its temporaries stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class Linear:
    """``x @ weight + bias``."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """Return a new array."""
        made: Floats = x @ self.weight
        made += self.bias
        return made


@dataclass(frozen=True, slots=True)
class Norm:
    """Mean 0 and variance 1 along the last axis, then scaled and shifted."""

    weight: Floats
    bias: Floats

    def __call__(self, x: Floats) -> Floats:
        """Return ``x``, changed in place."""
        import numpy as np

        # Callers pass an array that nothing else uses, so it is not copied.
        x -= x.mean(axis=-1, keepdims=True)
        # ``einsum`` sums the squares without an array of the squares themselves.
        squares = np.einsum("...i,...i->...", x, x)[..., None]
        x *= 1 / np.sqrt(squares / x.shape[-1] + np.float32(_EPSILON))
        x *= self.weight
        x += self.bias
        return x


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: attention, then two linear steps; each is added to its input and normalised."""

    attend: Linear
    """The weights of queries, keys and values, concatenated."""
    gather: Linear
    norm_attended: Norm
    widen: Linear
    narrow: Linear
    norm: Norm

    def __call__(self, x: Floats, bias: Floats | None, shape: tuple[int, int, int]) -> Floats:
        """Return the layer's output for tokens in rows; ``shape`` is (texts, tokens per text, heads)."""
        attended = self.gather(_attention(self.attend(x), bias, shape))
        attended += x
        x = self.norm_attended(attended)
        made = self.narrow(gelu(self.widen(x)))
        made += x
        return self.norm(made)


class Bert:
    """A BERT encoder.

    Args:
        tensors: Its weights, by their names in the model's file.
        heads: The number of attention heads per layer.

    Raises:
        KeyError: A weight is missing.
    """

    def __init__(self, tensors: Mapping[str, Any], heads: int) -> None:
        """Copy the layers' weights; the word embeddings stay mapped."""
        self._heads = heads
        self._words = tensors["embeddings.word_embeddings.weight"]
        # All tokens have type 0, so its embedding is added to the positions once.
        kinds = tensors["embeddings.token_type_embeddings.weight"]
        self._positions = tensors["embeddings.position_embeddings.weight"] + kinds[0]
        self._norm = _norm(tensors, "embeddings")
        names = {name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")}
        self._layers = [_layer(tensors, f"encoder.layer.{number}.") for number in range(len(names))]

    def __call__(self, ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> Floats:
        """Return the vectors of tokens: float32 of shape (texts, tokens, width).

        Args:
            ids: The tokens' numbers, of shape (texts, tokens).
            mask: True for tokens, False for padding; the same shape.
        """
        import numpy as np

        texts, tokens = ids.shape
        x = self._norm(self._words[ids] + self._positions[:tokens]).reshape(texts * tokens, -1)
        bias = None
        if not mask.all():
            # Minus infinity becomes a weight of 0, so that padding changes no vector.
            bias = np.where(mask, np.float32(0), np.float32(-np.inf))[:, None, None, :]
        for layer in self._layers:
            x = layer(x, bias, (texts, tokens, self._heads))
        return x.reshape(texts, tokens, -1)


def _layer(tensors: Mapping[str, NDArray[Any]], prefix: str) -> Layer:
    attention = f"{prefix}attention."
    return Layer(
        attend=_linear(tensors, *(f"{attention}self.{name}" for name in ("query", "key", "value"))),
        gather=_linear(tensors, f"{attention}output.dense"),
        norm_attended=_norm(tensors, f"{attention}output"),
        widen=_linear(tensors, f"{prefix}intermediate.dense"),
        narrow=_linear(tensors, f"{prefix}output.dense"),
        norm=_norm(tensors, f"{prefix}output"),
    )


def _linear(tensors: Mapping[str, NDArray[Any]], *names: str) -> Linear:
    import numpy as np

    weight = np.concatenate([tensors[f"{name}.weight"] for name in names])
    # Multiplying a few rows is much faster with a contiguous transposed matrix.
    return Linear(np.ascontiguousarray(weight.T), np.concatenate([tensors[f"{name}.bias"] for name in names]))


def _norm(tensors: Mapping[str, NDArray[Any]], name: str) -> Norm:
    return Norm(tensors[f"{name}.LayerNorm.weight"], tensors[f"{name}.LayerNorm.bias"])


def _attention(made: Floats, bias: Floats | None, shape: tuple[int, int, int]) -> Floats:
    """Return the attention output for concatenated queries, keys and values."""
    import numpy as np

    texts, tokens, heads = shape
    queries, keys, values = made.reshape(texts, tokens, 3, heads, -1).transpose(2, 0, 3, 1, 4)
    scores = queries @ keys.swapaxes(-1, -2)
    scores *= np.float32(queries.shape[-1] ** -0.5)
    if bias is not None:
        scores += bias
    # Subtract the largest score, as ``exp`` of large numbers overflows; the quotients stay the same.
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    gathered: Floats = (scores @ values).transpose(0, 2, 1, 3).reshape(texts * tokens, -1)
    return gathered


def gelu(x: Floats) -> Floats:
    """Apply GELU in place to a contiguous array, and return it.

    It is ``max(x, 0) - abs(x) * erfc(abs(x) / sqrt(2)) / 2`` with formula 7.1.26 of
    Abramowitz and Stegun, whose erfc has an error of at most 1.5e-7.
    """
    flat = x.reshape(-1)
    for begin in range(0, flat.size, _BLOCK):
        _gelu_block(flat[begin : begin + _BLOCK])
    return x


_STEPS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
"""The coefficients of formula 7.1.26, highest power first."""
_SLOPE = 0.3275911 * 0.5**0.5
"""The formula's p, scaled for an argument not yet divided by the square root of 2."""


def _gelu_block(x: Floats) -> None:
    import numpy as np

    size = np.abs(x)
    t = np.reciprocal(size * np.float32(_SLOPE) + np.float32(1))
    # Horner's scheme, in place.
    tail = np.zeros_like(x)
    for step in _STEPS:
        tail += np.float32(step)
        tail *= t
    tail *= size
    # The exponent is -x²/2, as the argument of erfc is x divided by the square root of 2.
    size *= size
    size *= np.float32(-0.5)
    tail *= np.exp(size, out=size)
    tail *= np.float32(0.5)
    np.maximum(x, 0, out=x)
    x -= tail
