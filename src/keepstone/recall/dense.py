"""The part of a recall that compares meanings, or the reason why it cannot."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
    StoreError,
)
from keepstone.model import Scope
from keepstone.recall.vectors import Vectors
from keepstone.store.protocol import Searchable, Similar
from keepstone.vector import Vector

logger = logging.getLogger("keepstone.recall")

SECONDS = 0.05
"""How long a recall makes vectors that are missing."""

_FAILURES = (EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError, StoreError)
"""What leaves a recall to its words."""


class Dense:
    """What is near a query in meaning.

    ``space`` is the id of the space that was searched, None if none was; ``reason`` says why;
    ``pending`` is how many entries in scope have no vector yet; ``searched`` is how vectors were compared.
    """

    def __init__(self, store: Searchable, vectors: Vectors, scope: Scope) -> None:
        self._store = store
        self._vectors = vectors
        self._scope = scope
        self._vector: Vector | None = None
        self.space: str | None = None
        self.reason = ""
        self.pending = 0
        self.searched: str | None = None

    def ask(self, text: str, vector: Vector | None) -> None:
        """Take the vector to compare with: the one that is given, else that of a text; once is enough."""
        if self.reason:
            return
        try:
            self.reason = "a vector was given" if vector is not None else self._vectors.reason()
            if vector is None and text.strip() and self._vectors.embedder() is not None:
                vector = self._vectors.embed_query(text)
            space = self._vectors.space()
        except _FAILURES as error:
            self._fail(error)
            return
        if vector is not None and space is not None:
            self._vector, self.space = vector, space.id

    def nearest(self, first: Iterable[int], limit: int) -> Similar:
        """Return the entries in scope whose vectors are nearest; those that have none are made some first.

        ``first`` are the keys of entries that need theirs most.
        """
        if self._vector is None or self.space is None:
            return Similar()
        try:
            self._fill(first)
            found = self._store.similar(self._vector, self.space, self._scope, limit)
        except StoreError as error:
            self._fail(error)
            return Similar()
        self.searched = found.searched
        if self.pending or found.is_due:
            self._vectors.wake()
        return found

    def cosines(self, keys: Sequence[int]) -> dict[int, float]:
        """Return how near the vectors of entries are, without those that have none."""
        if self._vector is None or self.space is None:
            return {}
        return self._store.cosines(self._vector, self.space, self._scope.agent, keys)

    def _fill(self, first: Iterable[int]) -> None:
        try:
            if self._vectors.is_remote:
                self.pending = len(self._vectors.pending(self._scope))
            else:
                self.pending, refused = self._vectors.fill_quickly(self._scope, first, SECONDS)
                self.reason = refused or self.reason
        except _FAILURES as error:
            # What has a vector can be compared all the same.
            self.reason = str(error)
            self.pending = len(self._vectors.pending(self._scope))

    def _fail(self, error: KeepstoneError) -> None:
        # What an embedder says of its failure may quote a text, and logs hold none.
        logger.warning("recall by words only: %s", type(error).__name__)
        self._vector, self.space, self.reason = None, None, str(error)
