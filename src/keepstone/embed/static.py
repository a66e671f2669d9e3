"""The local embedder of averaged static word vectors: small and fast, less accurate than a model.

The vectors come from the package ``wordllama``. Its files are read as data, as importing it would
configure the program's logging and needs more packages.
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
"""The id of its space, which names the vectors' release. It must never change."""
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
"""Maximum characters of a text; the rest is ignored."""

_Model = tuple["Tokenizer", "NDArray[Any]"]


class Static:
    """Makes vectors of dimension 256: the mean of a text's token vectors, zeros without tokens.

    The vectors are loaded at the first call, never from the network. Safe to share between threads.
    """

    id = SPACE
    dim = DIM

    def __init__(self) -> None:
        self._model: Lazy[_Model] = Lazy(_load)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts: float32 of shape ``(len(texts), 256)``.

        Raises:
            EmbedderUnavailableError: ``wordllama`` is not installed, or has other vectors.
        """
        import numpy as np

        return np.array([self.embed_query(text) for text in texts], np.float32).reshape(-1, DIM)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of one text; errors as for ``embed_documents``."""
        tokenizer, vectors = self._model()
        tokens = tokenizer.encode(encodable(text[:_CHARACTERS]), add_special_tokens=False).ids
        return _mean(vectors, tokens)


def check_static() -> None:
    """Check that ``Static()`` is usable, without loading anything.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
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
    # Its cache takes whole texts as words and would hold 10,000 of them, some KB each, per thread.
    tokenizer.model._resize_cache(0)  # noqa: SLF001  The only way for a tokenizer from a file.
    return tokenizer, read_tensors(folder / WEIGHTS.name)["embedding.weight"]


def _package_folder() -> Path:
    spec = find_spec("wordllama")  # Does not import it.
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations or [""])))


def _mean(vectors: NDArray[Any], tokens: list[int]) -> NDArray[np.float32]:
    import numpy as np

    if not tokens:
        return np.zeros(DIM, np.float32)
    made: Vector = vectors[tokens].mean(axis=0, dtype=np.float32)
    return made
