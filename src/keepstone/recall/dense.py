"""The list by vectors: what is near a query in meaning, or the reason why that cannot be compared."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime

from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
    StoreError,
)
from keepstone.model import Scope
from keepstone.recall.relevance import Cosines, calibrated
from keepstone.recall.vectors import Vectors
from keepstone.store.reader_protocol import Ahead, Reader, Similar
from keepstone.vector import Vector

logger = logging.getLogger("keepstone.recall")

SECONDS = 0.05
"""How long a recall makes vectors that are missing."""

FAILURES = (EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError, StoreError)
"""What leaves a recall to its words."""


class Dense:
    """What is near a query in meaning, or the reason why that cannot be compared.

    ``space`` is the id of the space that was searched, None if none was; ``reason`` says why;
    ``pending`` is how many entries in scope have no vector yet; ``searched`` is how vectors were compared.
    """

    def __init__(self, reader: Reader, vectors: Vectors, scope: Scope, as_of: datetime | None = None) -> None:
        self._reader = reader
        self._vectors = vectors
        self._scope = scope
        self._as_of = as_of
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
            self._vector, space, self.reason = self._vectors.query(text, vector)
        except FAILURES as error:
            self._fail(error)
        else:
            self.space = space.id if space is not None and self._vector is not None else None

    def nearest(self, ahead: Ahead, limit: int) -> Similar:
        """Return the entries in scope whose vectors are nearest; those that have none are made some first.

        ``ahead`` has the keys of entries that need theirs most, and says what is asked next.
        """
        if self._vector is None or self.space is None:
            return Similar()
        try:
            self._fill(ahead.keys)
            found = self._reader.similar(self._vector, self.space, self._scope, limit, ahead=ahead)
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
        return self._reader.cosines(self._vector, self.space, keys)

    def calibrated(self, rows: int) -> Cosines | None:
        """Return where the query's cosines lie among so many entries; None where nothing tells."""
        if self._vector is None or self.space is None:
            return None
        return calibrated(self._reader, self._vector, self.space, rows)

    def _fill(self, first: Iterable[int]) -> None:
        if self._as_of is None:
            self._fill_by(self._reader, first)
        else:  # Vectors are of what entries say today; those of the same texts then are theirs too.
            self._vectors.ask(lambda today, _: self._fill_by(today, ()))

    def _fill_by(self, reader: Reader, first: Iterable[int]) -> None:
        try:
            self.pending, refused = self._vectors.fill_quickly(reader, self._scope, first, SECONDS)
            self.reason = refused or self.reason
        except FAILURES as error:
            # What has a vector can be compared all the same.
            self.reason = str(error)
            self.pending = self._vectors.pending_count(reader, self._scope)

    def _fail(self, error: KeepstoneError) -> None:
        # What an embedder says of its failure may quote a text, and logs hold none.
        logger.warning("recall by words only: %s", type(error).__name__)
        self._vector, self.space, self.reason = None, None, str(error)
