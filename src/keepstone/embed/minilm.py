"""all-MiniLM-L6-v2, on this machine: ``tokenizers`` cuts texts into tokens, NumPy does the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keepstone.embed.bert import Bert
from keepstone.embed.catalogue import MINILM
from keepstone.embed.embedder import check_package, encodable
from keepstone.embed.installed import check_file, model_folder, state_of
from keepstone.embed.lazy import Lazy
from keepstone.embed.tensors import read_tensors
from keepstone.errors import EmbedderUnavailableError
from keepstone.vector import Matrix, Vector

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPACE = "minilm:all-MiniLM-L6-v2"
"""The id of its space. It is kept with the vectors, so it must never change."""
DIM = 384
_HEADS = 12
_TOKENS = 256
"""Tokens of a text that count, its two marks included; the rest is not looked at."""
_CHARACTERS = 16_384
"""Characters of a text that are cut into tokens. 256 tokens are about 1,300 of them."""
_AT_ONCE = 2048
"""Tokens that go through the model at a time, unless one text has more."""

_Model = tuple["Tokenizer", Bert]


class MiniLM:
    """Makes vectors of 384 numbers of unit length, from the first 256 tokens of each text.

    Nothing is loaded before the first text. Safe to share between threads.

    Args:
        folder: Where ``model.safetensors`` and ``tokenizer.json`` lie; without it where
            ``keepstone model install minilm`` puts them.

    Example:
        >>> MiniLM().dim
        384
    """

    id = SPACE
    dim = DIM

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._model: Lazy[_Model] = Lazy(self._load)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), 384)``.

        Raises:
            EmbedderUnavailableError: The model or ``tokenizers`` is missing, or a file of it damaged.
        """
        import numpy as np

        tokenizer, bert = self._model()
        tokens = [tokenizer.encode(encodable(text[:_CHARACTERS])).ids for text in texts]
        made = np.empty((len(texts), DIM), np.float32)
        for batch in _batches([len(ids) for ids in tokens]):
            made[batch] = _pooled(bert, [tokens[place] for place in batch])
        return made

    def embed_query(self, text: str) -> Vector:
        """Return the vector of one text; errors as for ``embed_documents``."""
        vector: Vector = self.embed_documents([text])[0]
        return vector

    def _load(self) -> _Model:
        folder = self._folder
        if folder is None:
            check_minilm()
            folder = model_folder(MINILM)
        check_package("tokenizers", "minilm", "minilm")
        for file in MINILM.files:
            check_file(folder / file.name, file)
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        tokenizer.enable_truncation(_TOKENS)
        tokenizer.no_padding()
        return tokenizer, Bert(read_tensors(folder / "model.safetensors"), _HEADS)


def check_minilm() -> None:
    """Look whether ``MiniLM()`` can be used here, without loading anything.

    Raises:
        EmbedderUnavailableError: It cannot; the message has the command that changes this.
    """
    state = state_of(MINILM)
    if state != "installed":
        raise EmbedderUnavailableError(
            f"the embedder 'minilm' is {'not installed' if state == 'missing' else 'damaged'}: "
            f"keepstone model install minilm ({model_folder(MINILM)})"
        )
    check_package("tokenizers", "minilm", "minilm")


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts that go through the model together: those of like length."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[place] > _AT_ONCE:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch


def _pooled(bert: Bert, tokens: list[list[int]]) -> Matrix:
    """Return the mean of each text's token vectors, at unit length."""
    import numpy as np

    lengths = np.array([len(ids) for ids in tokens])
    ids = np.zeros((len(tokens), lengths.max()), np.int64)
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids[mask] = np.concatenate(tokens)
    sums = np.einsum("btw,bt->bw", bert(ids, mask), mask.astype(np.float32))
    made: Matrix = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return made
