"""Static word vectors, averaged: small and very quick, with less sense for meaning than a model.

The package ``wordllama`` carries them. Its files are read as data; importing it would set up the
logging of the whole program, and needs more packages.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepstone.embed.catalogue import ModelFile
from keepstone.embed.embedder import check_package, encodable
from keepstone.embed.installed import check_file
from keepstone.embed.lazy import Lazy
from keepstone.embed.tensors import read_tensors
from keepstone.vector import Matrix, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

SPACE = "static:wordllama-0.4-l2_supercat_256"
"""The id of its space, with the release that the vectors are from. It must never change."""
DIM = 256
WEIGHTS = ModelFile(
    "weights/l2_supercat_256.safetensors",
    16_384_096,
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
TOKENIZER = ModelFile(
    "tokenizers/l2_supercat_tokenizer_config.json",
    1_842_796,
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)
_CHARACTERS = 16_384
"""Characters of a text that count; the rest is not looked at."""

_Model = tuple["Tokenizer", "NDArray[Any]"]


class Static:
    """Makes vectors of 256 numbers: the mean of the vectors of a text's tokens. Without tokens it is zeros.

    Nothing is loaded before the first text, and nothing ever from the network. Safe to share between threads.
    """

    id = SPACE
    dim = DIM

    def __init__(self) -> None:
        self._model: Lazy[_Model] = Lazy(_load)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), 256)``.

        Raises:
            EmbedderUnavailableError: ``wordllama`` is not installed, or has other vectors than ours.
        """
        import numpy as np

        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(-1, DIM)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of one text; errors as for ``embed_documents``."""
        tokenizer, vectors = self._model()
        tokens = tokenizer.encode(encodable(text[:_CHARACTERS]), add_special_tokens=False).ids
        return _mean(vectors, tokens)


def check_static() -> None:
    """Look whether ``Static()`` can be used here, without loading anything.

    Raises:
        EmbedderUnavailableError: It cannot; the message has the command that changes this.
    """
    for package in ("wordllama", "tokenizers"):
        check_package(package, "static", "static")


def _load() -> _Model:
    check_static()
    from tokenizers import Tokenizer

    folder = _package_folder()
    for file in (WEIGHTS, TOKENIZER):
        check_file(folder / file.name, file)
    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER.name))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # It takes a whole text for one word, and would keep 10,000 of them, some KB each, for each thread.
    tokenizer.model._resize_cache(0)  # noqa: SLF001  The one way to say so of a tokenizer from a file.
    return tokenizer, read_tensors(folder / WEIGHTS.name)["embedding.weight"]


def _package_folder() -> Path:
    spec = find_spec("wordllama")  # This finds it without importing it.
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations or [""])))


def _mean(vectors: NDArray[Any], tokens: list[int]) -> NDArray[np.float32]:
    import numpy as np

    if not tokens:
        return np.zeros(DIM, np.float32)
    made: Vector = vectors[tokens].mean(axis=0, dtype=np.float32)
    return made
