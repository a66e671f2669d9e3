"""Cache of vectors that are not stored in an index yet."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable

from keepstone.filesystem.fork import reset_in_child
from keepstone.vector import Vector

_LARGEST = 16 << 20
"""Maximum bytes of vectors; above it the oldest are evicted."""


class Unstored:
    """Caches vectors by text, so that no vector is made twice because storing it failed.

    Safe to share between threads.
    """

    def __init__(self) -> None:
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Drop all vectors."""
        self._guard = threading.Lock()
        self._vectors: dict[bytes, Vector] = {}

    def put(self, made: Iterable[tuple[str, Vector]]) -> None:
        """Cache vectors under their texts."""
        with self._guard:
            for text, vector in made:
                self._vectors[digest_of(text)] = vector
                # All vectors of an embedder have one size.
                while len(self._vectors) * vector.nbytes > _LARGEST:
                    del self._vectors[next(iter(self._vectors))]

    def get(self, texts: Iterable[str]) -> dict[str, Vector]:
        """Return the cached vectors of texts."""
        with self._guard:
            found = ((text, self._vectors.get(digest_of(text))) for text in texts)
            return {text: vector for text, vector in found if vector is not None}

    def drop(self, texts: Iterable[str]) -> None:
        """Drop the vectors of texts, which the index now has."""
        with self._guard:
            for text in texts:
                self._vectors.pop(digest_of(text), None)


def digest_of(text: str) -> bytes:
    """Return the digest of a text, its key in caches."""
    # Lone surrogates cannot be encoded without ``surrogatepass``.
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
