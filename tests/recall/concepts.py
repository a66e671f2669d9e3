"""An embedder for tests that knows a few words by their meaning, and can be made to fail."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

CONCEPTS = (
    {"sister", "sibling", "brother"},
    {"lisbon", "city", "porto"},
    {"pnpm", "npm", "packages"},
    {"friday", "deploy", "release"},
)


class Concepts:
    """Vectors whose numbers say how many words of each concept a text has.

    ``fails`` is raised by each call while it is set; ``gate`` holds back texts to be found until it is set.
    """

    def __init__(self, name: str = "concepts", concepts: Sequence[set[str]] = CONCEPTS) -> None:
        self.id = name
        self.dim = len(concepts) + 1
        self.asked: list[str] = []
        self.fails: Exception | None = None
        self.gate = threading.Event()
        self.gate.set()
        self._concepts = concepts

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        self.gate.wait(30)
        if self.fails is not None:
            raise self.fails
        self.asked += texts
        return np.array([self._of(text) for text in texts], np.float32).reshape(len(texts), self.dim)

    def embed_query(self, text: str) -> NDArray[np.float32]:
        if self.fails is not None:
            raise self.fails
        return np.array(self._of(text), np.float32)

    def _of(self, text: str) -> list[float]:
        words = text.lower().split()
        return [*(float(sum(word in concept for word in words)) for concept in self._concepts), 0.01]
