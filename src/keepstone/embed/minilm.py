"""The local embedder all-MiniLM-L6-v2, with ``tokenizers`` and NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from keepstone.embed.bert import Bert
from keepstone.embed.catalogue import MINILM
from keepstone.embed.embedder import check_package, encodable
from keepstone.embed.installed import check_file, check_installed, model_folder
from keepstone.embed.lazy import Lazy
from keepstone.embed.pooling import MeanVectors
from keepstone.embed.tensors import read_tensors
from keepstone.vector import Matrix, Vector

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPACE = "minilm:all-MiniLM-L6-v2"
"""The id of the embedder's space. It is stored with the vectors, so it must never change."""
DIM = 384
_HEADS = 12
_TOKENS = 256
"""Maximum tokens of a text, including its two special tokens; the rest is ignored."""
_CHARACTERS = 16_384
"""Maximum characters of a text to tokenize. 256 tokens are about 1,300 characters."""

_Model = tuple["Tokenizer", Bert]


class MiniLM:
    """Makes unit vectors of dimension 384 from the first 256 tokens of each text.

    The model is loaded at the first call. Safe to share between threads.

    Args:
        folder: The folder of ``model.safetensors`` and ``tokenizer.json``; default: where
            ``keepstone model install minilm`` installs them.

    Examples:
        >>> MiniLM().dim
        384
    """

    id = SPACE
    dim = DIM

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._model: Lazy[_Model] = Lazy(self._load)
        # Pass a function, so that the model is loaded at the first call.
        self._vectors = MeanVectors(lambda: self._model()[1], DIM)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), 384)``.

        Raises:
            EmbedderUnavailableError: The model or ``tokenizers`` is missing, or a file is damaged.
        """
        tokenizer, _ = self._model()
        return self._vectors([tokenizer.encode(encodable(text[:_CHARACTERS])).ids for text in texts])

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
        # Override the file's padding: ``pooling`` pads each batch to its longest text.
        tokenizer.no_padding()
        return tokenizer, Bert(read_tensors(folder / "model.safetensors"), _HEADS)


def check_minilm() -> None:
    """Check that ``MiniLM()`` is usable, without loading anything.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
    """
    check_installed(MINILM)
    check_package("tokenizers", "minilm", "minilm")
