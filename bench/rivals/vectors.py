"""Cached vectors of texts, shared by all systems so that embedding does not affect the comparison."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keepstone.embed.embedder import Embedder

Matrix = NDArray[np.float32]
Vector = NDArray[np.float32]


class CachedModel:
    """An embedder with the vectors of one question's texts in a file."""

    def __init__(self, folder: Path, model: Embedder) -> None:
        self._folder, self._model = folder, model
        self.id, self.dim = model.id, model.dim
        self._path = folder / "texts.npz"
        self._known: dict[bytes, Vector] = {}
        self._question: tuple[str, Vector] = "", np.empty(0, np.float32)

    def prepare(self, name: str, texts: Iterable[str], question: str) -> None:
        """Load the vectors of these texts, or compute and save them; compute the question's vector."""
        self._path = self._folder / f"{name}.npz"
        self._known = {}
        if self._path.exists():
            with np.load(self._path) as kept:
                self._known = dict(zip(map(bytes, kept["keys"]), kept["vectors"], strict=True))
        self.embed_documents([*texts])
        self._question = question, self._model.embed_query(question)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts. New ones are saved, too: a system may embed parts of turns."""
        missing = {_key(text): text for text in texts if _key(text) not in self._known}
        if missing:
            self._known |= zip(missing, self._model.embed_documents([*missing.values()]), strict=True)
            np.savez(self._path, keys=np.array([*self._known]), vectors=np.stack([*self._known.values()]))
        return np.array([self._known[_key(text)] for text in texts], np.float32).reshape(-1, self.dim)

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        question, vector = self._question
        return vector if text == question else self._model.embed_query(text)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=15).hexdigest().encode()
