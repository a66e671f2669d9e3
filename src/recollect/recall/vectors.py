"""One agent's vectors in one space: what is given, made, kept and compared."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recollect.embed import Embedder, check_embedder, embed_texts
from recollect.errors import EmbedderUnavailableError, EmbeddingDimMismatchError, SpaceMismatchError
from recollect.model import Entry, Record, Scope
from recollect.store.base import Store
from recollect.vector import Space, Vector, check_dim, encode, given_space, unit

AT_ONCE = 64
"""Texts that an embedder is given at a time."""


class Vectors:
    """Vectors of an agent's entries, and how near they are to others.

    With an embedder they are of its space: vectors that callers give count as its own,
    and those of other entries are made when they are needed. Such vectors are kept in the
    index only. Without an embedder there are only those given, in the space of the first.

    Raises:
        TypeError, ValueError: What was passed is no embedder, or no dimension.
        EmbeddingDimMismatchError: ``dim`` is not the embedder's dimension.
    """

    def __init__(self, store: Store, agent: str, embedder: Embedder | None, dim: int | None) -> None:
        """Use ``Agent.vectors`` instead."""
        self._store = store
        self._agent = agent
        self._embedder = embedder
        self._own = None if embedder is None else check_embedder(embedder)
        self._dim = _dim_of(dim)
        if self._own is not None and dim not in (None, self._own.dim):
            raise EmbeddingDimMismatchError(
                f"dim is {dim}, but the embedder {self._own.id!r:.80} makes vectors of {self._own.dim}: "
                "leave dim out"
            )

    def space(self) -> Space | None:
        """Return the space in use, None where no vector decided it yet.

        Raises:
            SpaceMismatchError: The agent's vectors are of another embedder.
        """
        known = self._store.spaces(self._agent)
        if self._own is None:
            return space_of_given(known) or (None if self._dim is None else given_space(self._dim))
        other = next((space for space in known if not space.is_given and space != self._own), None)
        if other is not None:
            raise SpaceMismatchError(
                f"agent {self._agent!r} has vectors of {other.id!r:.80} with {other.dim} numbers, not of "
                f"{self._own.id!r:.80} with {self._own.dim}: pass that embedder, or use another agent"
            )
        return self._own

    def check(self, value: Any) -> Vector:
        """Return a caller's vector as float32 of unit length.

        Raises:
            TypeError: It is no sequence or array of numbers.
            InvalidEmbeddingError: It is empty, holds NaN or infinity, or only zeros.
            EmbeddingDimMismatchError: It has another dimension than the space in use, or than ``dim``.
        """
        return self._checked(value)[0]

    def given(self, value: Any) -> Record:
        """Return a caller's vector as a log line says it; errors as for ``check``."""
        vector, space = self._checked(value)
        return encode(space.id, vector)

    def _checked(self, value: Any) -> tuple[Vector, Space]:
        vector = unit(value)
        if self._dim is not None:
            check_dim(len(vector), given_space(self._dim))
        space = self.space() or given_space(len(vector))
        check_dim(len(vector), space)
        return vector, space

    def embed(self, text: str) -> Vector:
        """Return the vector that the embedder makes of a text.

        Raises:
            EmbedderUnavailableError: There is no embedder, or it raised.
            EmbeddingDimMismatchError, InvalidEmbeddingError: It made what is no such vector.
            SpaceMismatchError: The agent's vectors are of another embedder.
        """
        if self._embedder is None:
            raise EmbedderUnavailableError(
                "there is no embedder to make a vector of the text: pass embedding=, or embedder=, an object "
                "with id, dim, embed_documents(texts) and embed_query(text)"
            )
        self.space()
        return unit(embed_texts(self._embedder, [text])[0])

    def keep(self, entry: Entry, vector: Vector) -> None:
        """Keep the vector that the embedder made of an entry's text."""
        if self._own is not None:
            self._store.keep_vectors(self._agent, self._own.id, [(entry, vector)])

    def similar(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[Entry, float]]:
        """Return the entries in scope whose vectors are nearest, best first, each with its cosine.

        With an embedder, entries that have no vector yet get theirs before.

        Raises:
            StoreError: Vectors cannot be compared now.
            EmbedderUnavailableError: The embedder raised.
        """
        space = self.space()
        if space is None or not limit:
            return []
        self._fill(scope)
        found = self._store.similar(vector, space.id, scope, limit)
        loaded = self._store.load(self._agent, [candidate.key for candidate in found])
        return [(loaded[found.key], found.score) for found in found if found.key in loaded]

    def of(self, session: str, entries: Sequence[Entry]) -> dict[str, Vector]:
        """Return the vectors of a session's entries, by id, as far as they were given or made."""
        space = self.space()
        if space is None or not entries:
            return {}
        return self._store.vectors(self._agent, session, space.id, [entry.id for entry in entries])

    def _fill(self, scope: Scope) -> None:
        if self._embedder is None or self._own is None:
            return
        keys = self._store.pending(self._own.id, scope)
        for begin in range(0, len(keys), AT_ONCE):
            entries = list(self._store.load(self._agent, keys[begin : begin + AT_ONCE]).values())
            made = embed_texts(self._embedder, [entry.text for entry in entries])
            self._store.keep_vectors(self._agent, self._own.id, list(zip(entries, made, strict=True)))


def space_of_given(known: Iterable[Space]) -> Space | None:
    """Return the space, of those an agent has, that vectors belong to which come without an embedder.

    Should two processes have given the first vectors at one moment and in two dimensions,
    it is the same one of the two for everybody.
    """
    spaces = list(known)
    return next((space for space in spaces if space.is_given), spaces[0] if spaces else None)


def _dim_of(value: int | None) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"dim must be a whole number, not {type(value).__name__}: {value!r:.80}")
    if value < 1:
        raise ValueError(f"dim must be at least 1, not {value}")
    return value
