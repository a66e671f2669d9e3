"""MiniLM's vectors of texts, made once and given to every system, so that only the systems differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keepstone.embed.minilm import MiniLM

Matrix = NDArray[np.float32]


class CachedMiniLM:
    """all-MiniLM-L6-v2 with the vectors of one question's texts in a file."""

    id, dim = MiniLM.id, MiniLM.dim

    def __init__(self, folder: Path) -> None:
        self._folder, self._model = folder, MiniLM()
        self._known: dict[bytes, Matrix] = {}

    def prepare(self, name: str, texts: Iterable[str]) -> None:
        """Load the vectors of these texts, or make and keep them."""
        path = self._folder / f"{name}.npz"
        wanted = {_key(text): text for text in texts}
        if not path.exists():
            matrix = self._model.embed_documents([*wanted.values()])
            np.savez(path, keys=np.array([*wanted]), vectors=matrix)
        with np.load(path) as kept:
            self._known = dict(zip((bytes(key) for key in kept["keys"]), kept["vectors"], strict=True))

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts; those that were not prepared are made now."""
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Matrix:
        """Return the vector of one text."""
        found = self._known.get(_key(text))
        return found if found is not None else self._model.embed_query(text)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=15).hexdigest().encode()
