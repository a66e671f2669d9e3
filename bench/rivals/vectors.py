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
        self._known: dict[bytes, Vector] = {}
        self._question: tuple[str, Vector] = "", np.empty(0, np.float32)

    def prepare(self, name: str, texts: Iterable[str], question: str) -> None:
        """Load the vectors of these texts, or compute and save them; compute the question's vector."""
        path = self._folder / f"{name}.npz"
        wanted = {_key(text): text for text in texts}
        if not path.exists():
            matrix = self._model.embed_documents([*wanted.values()])
            np.savez(path, keys=np.array([*wanted]), vectors=matrix)
        with np.load(path) as kept:
            self._known = dict(zip((bytes(key) for key in kept["keys"]), kept["vectors"], strict=True))
        self._question = question, self._model.embed_query(question)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of texts; vectors that were not prepared are computed now."""
        missing = [text for text in texts if _key(text) not in self._known]
        made = dict(zip(missing, self._model.embed_documents(missing), strict=True)) if missing else {}
        return np.stack([made[text] if text in made else self._known[_key(text)] for text in texts])

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a question."""
        question, vector = self._question
        return vector if text == question else self._model.embed_query(text)


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=15).hexdigest().encode()
