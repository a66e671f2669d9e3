"""The conversations, remembered once for each embedder, and what recall finds in them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from tests.embed.conftest import minilm_folder, static_folder
from tests.quality.measure import KINDS, PLACES, Question, Search, sessions_of

import keepstone
from keepstone import Home
from keepstone.embed.minilm import SPACE, MiniLM
from keepstone.embed.static import Static
from keepstone.model import Scope
from keepstone.vector import Matrix

__all__ = ["minilm_folder", "static_folder"]

OpenHome = Callable[[str], Home]
SearchBy = Callable[[str], Search]


class Remembering(MiniLM):
    """The model, which keeps its vectors in pytest's cache: only the first run of the tests waits for it."""

    def __init__(self, folder: Path, kept: Path) -> None:
        super().__init__(folder)
        self._kept = kept

    def embed_documents(self, texts: list[str]) -> Matrix:
        digest = sha256(json.dumps([SPACE, texts]).encode()).hexdigest()
        path = self._kept / f"{digest}.npy"
        if not path.exists():
            unfinished = self._kept / f"{digest}.{os.getpid()}.npy"
            np.save(unfinished, super().embed_documents(texts))
            unfinished.replace(path)
        made: Matrix = np.load(path)
        return made


@pytest.fixture(scope="session")
def home_by(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Iterator[OpenHome]:
    """Open the home that remembers all conversations with ``"none"``, ``"static"`` or ``"minilm"``."""
    folder = tmp_path_factory.getbasetemp()
    if worker_id != "master":
        folder = folder.parent  # All workers share one home: the model's vectors are made once.
    with ExitStack() as opened:

        @cache
        def home_by(name: str) -> Home:
            root = folder / f"quality-{name}"
            embedder = _embedder(request, name)
            with FileLock(f"{root}.lock"):
                _remember(root)
                home = opened.enter_context(keepstone.open(root, embedder=embedder, durability="os"))
                _make_vectors(home, name)
            return home

        yield home_by


@pytest.fixture(scope="session")
def search_by(home_by: OpenHome) -> SearchBy:
    """Search by ``"none"``, ``"static"`` or ``"minilm"``; by ``"cosine minilm"`` for the vectors alone.

    What it found is kept, so that each question is asked once.
    """

    @cache
    def search_by(name: str) -> Search:
        plain, _, embedder = name.rpartition(" ")
        home = home_by(embedder)
        return cache(lambda question: (_nearest if plain else _recalled)(home, question))

    return search_by


def _embedder(request: pytest.FixtureRequest, name: str) -> Any:
    if name == "minilm":
        kept = request.config.cache
        assert kept is not None
        return Remembering(request.getfixturevalue("minilm_folder"), kept.mkdir("quality"))
    if name == "static":
        return Static(request.getfixturevalue("static_folder"))
    return name


def _remember(root: Path) -> None:
    """Add all conversations; what is there already stays as it is."""
    with keepstone.open(root, embedder="none", durability="os") as home:
        for kind in KINDS:
            for session, lines in sessions_of(kind).items():
                home.agent(kind).session(session).add_many(lines)


def _make_vectors(home: Home, name: str) -> None:
    """Make the vectors that are missing, here and now instead of bit by bit with the first questions."""
    if name != "none":
        for kind in KINDS:
            home.agent(kind).vectors().fill(Scope(kind))


def _recalled(home: Home, question: Question) -> Sequence[str]:
    return [hit.entry.id for hit in home.agent(question.kind).recall(question.text, limit=PLACES)]


def _nearest(home: Home, question: Question) -> Sequence[str]:
    """Find by the cosine of the question's vector and nothing else."""
    vectors = home.agent(question.kind).vectors()
    query, _, _ = vectors.query(question.text, None)
    assert query is not None
    return [entry.id for entry, _ in vectors.similar(query, Scope(question.kind), PLACES)]
