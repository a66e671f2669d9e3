"""The local embedder of averaged static word vectors: small and fast, but less accurate than a model.

The vectors come from the package ``wordllama``, whose compiled code is not used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepstone.embed.catalogue import STATIC_MODEL
from keepstone.embed.embedder import check_package, encodable
from keepstone.embed.installed import check_file, check_installed, model_folder
from keepstone.embed.lazy import Lazy
from keepstone.embed.tensors import read_tensors
from keepstone.vector import Matrix, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

SPACE = "static:wordllama-0.4-l2_supercat_256"
"""The id of the embedder's space, which names the vectors' release. It must never change."""
DIM = 256
_CHARACTERS = 16_384
"""Maximum characters of a text; the rest is ignored."""

_Model = tuple["Tokenizer", "NDArray[Any]"]


class Static:
    """Makes vectors of dimension 256: the mean of a text's token vectors, zeros without tokens.

    The vectors are loaded at the first call. Safe to share between threads.

    Args:
        folder: The folder of the two files; default: where ``keepstone model install static`` installs them.

    Examples:
        >>> Static().dim
        256
    """

    id = SPACE
    dim = DIM

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._model: Lazy[_Model] = Lazy(self._load)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), 256)``.

        Raises:
            EmbedderUnavailableError: The model or ``tokenizers`` is missing, or a file is damaged.
        """
        import numpy as np

        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(-1, DIM)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of one text; errors as for ``embed_documents``."""
        tokenizer, vectors = self._model()
        tokens = tokenizer.encode(encodable(text[:_CHARACTERS]), add_special_tokens=False).ids
        return _mean(vectors, tokens)

    def _load(self) -> _Model:
        folder = self._folder
        if folder is None:
            check_static()
            folder = model_folder(STATIC_MODEL)
        check_package("tokenizers", "static", "static")
        weights, words = STATIC_MODEL.files
        for file in STATIC_MODEL.files:
            check_file(folder / file.name, file)
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(folder / words.name))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        # The cache treats whole texts as words and would hold 10,000 of them, some KB each, per thread.
        tokenizer.model._resize_cache(0)  # noqa: SLF001  The only way for a tokenizer from a file.
        return tokenizer, read_tensors(folder / weights.name)["embedding.weight"]


def check_static() -> None:
    """Check that ``Static()`` is usable, without loading anything.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
    """
    check_installed(STATIC_MODEL)
    check_package("tokenizers", "static", "static")


def _mean(vectors: NDArray[Any], tokens: list[int]) -> NDArray[np.float32]:
    import numpy as np

    if not tokens:
        return np.zeros(DIM, np.float32)
    # The file has float16 numbers; a sum in float16 would lose digits.
    made: Vector = vectors[tokens].mean(axis=0, dtype=np.float32)
    return made
