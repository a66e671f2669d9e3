"""Embedders for tests, and what lies in a home of memories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from keepstone import Home, Memory

SESSIONS = "agents/default/memory/sessions"


class Letters:
    """An embedder for tests: how often each of the first letters is in a text."""

    def __init__(self, dim: int = 4, name: str = "letters") -> None:
        self.id = name
        self.dim = dim
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> Any:
        self.asked += texts
        letters = "abcdefghijklmnopqrstuvwxyz"[: self.dim]
        return np.array([[text.count(letter) for letter in letters] for text in texts], np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


class Broken(Letters):
    """An embedder that gives, or raises, something else."""

    def __init__(self, gives: Any) -> None:
        super().__init__(2, "broken")
        self._gives = gives

    def embed_documents(self, texts: list[str]) -> Any:
        self.asked += texts
        if isinstance(self._gives, Exception):
            raise self._gives
        return self._gives


def texts(memories: list[Memory]) -> list[str]:
    return [memory.text for memory in memories]


def lines_of(home: Home, session: str) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (home.root / SESSIONS / f"{session}.ndjson").read_bytes().splitlines()
    ]


def files_of(root: Path) -> dict[str, bytes]:
    """What is on the disk, without what is derived."""
    found = [path for path in root.rglob("*") if path.is_file() and ".index" not in path.parts]
    return {str(path.relative_to(root)): path.read_bytes() for path in found}


def same(one: Memory, other: Memory) -> bool:
    """Whether two memories are equal, their vectors included."""
    if one.embedding is None or other.embedding is None:
        return one == other and one.embedding is other.embedding
    return one == other and np.array_equal(one.embedding, other.embedding)
