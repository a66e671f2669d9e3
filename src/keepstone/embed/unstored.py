"""Vectors that an embedder has made and no index holds yet."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable

from keepstone.filesystem.fork import reset_in_child
from keepstone.vector import Vector

_LARGEST = 16 << 20
"""Bytes of vectors that are kept; beyond it the oldest go."""


class Unstored:
    """Keeps vectors by their texts, so that none is asked for twice because it could not be stored.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget all vectors."""
        self._guard = threading.Lock()
        self._vectors: dict[bytes, Vector] = {}

    def put(self, made: Iterable[tuple[str, Vector]]) -> None:
        """Keep vectors with their texts."""
        with self._guard:
            for text, vector in made:
                self._vectors[digest_of(text)] = vector
                while len(self._vectors) * vector.nbytes > _LARGEST:
                    del self._vectors[next(iter(self._vectors))]

    def get(self, texts: Iterable[str]) -> dict[str, Vector]:
        """Return the vectors of those texts that have one here."""
        with self._guard:
            found = ((text, self._vectors.get(digest_of(text))) for text in texts)
            return {text: vector for text, vector in found if vector is not None}

    def drop(self, texts: Iterable[str]) -> None:
        """Forget the vectors of texts: an index holds them now."""
        with self._guard:
            for text in texts:
                self._vectors.pop(digest_of(text), None)


def digest_of(text: str) -> bytes:
    """Return what tells a text from others, without holding it."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
