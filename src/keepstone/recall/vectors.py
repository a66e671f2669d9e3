"""One agent's vectors in one space: given by callers or made by the embedder, stored, and compared.

``filling`` makes the vectors of entries that have none.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
    SpaceMismatchError,
    StoreError,
)
from keepstone.log.arguments import count_of
from keepstone.model import Entry, Record, Scope
from keepstone.recall import filling
from keepstone.recall.relevance import Cosines, calibrated
from keepstone.recall.selection import Meaning, whose_vectors
from keepstone.store.protocol import Store
from keepstone.store.reader import HNSW_FROM, Ahead, Reader, Similar, with_reader
from keepstone.vector import Space, Vector, check_dim, decode, encode, given_space, settle, unit

if TYPE_CHECKING:
    from keepstone.embed import Embedder
    from keepstone.embed.maker import Maker

T = TypeVar("T")

logger = logging.getLogger("keepstone.recall")

SECONDS = 0.05
"""Seconds after a recall begins during which it makes missing vectors."""

FAILURES = (EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError, StoreError)
"""Errors after which a recall uses words only."""

_FRESH = 1.0
"""Seconds for which the space in use is cached, so that not every recall asks the store for it."""


class SimilarEntries(list[tuple[Entry, float]]):
    """Entries with cosines, best first; ``searched`` is ``"hnsw"`` or ``"exact"``, as in ``Similar``."""

    def __init__(self, found: Iterable[tuple[Entry, float]] = (), searched: str = "exact") -> None:
        super().__init__(found)
        self.searched = searched


class Vectors:
    """The vectors of an agent's entries, and searches by them.

    With an embedder all vectors are in its space: vectors that callers give count as its own, and
    the vectors of other entries are made when they are needed. Vectors made this way are kept in the
    index only. Without an embedder only callers give vectors; the first one decides the space.

    Raises:
        TypeError, ValueError: ``dim`` is not a dimension.
        EmbeddingDimMismatchError: ``dim`` is not the named embedder's dimension.
    """

    def __init__(self, store: Store, agent: str, meaning: Meaning, dim: int | None = None) -> None:
        """Use ``Agent.vectors`` instead."""
        self._store = store
        self.agent = agent
        self.meaning = meaning
        self._dim = None if dim is None else count_of(dim, "dim", least=1)
        if self._dim is not None and meaning.own is not None:
            space = meaning.space()
            if space is not None and space.dim != self._dim:
                raise EmbeddingDimMismatchError(
                    f"dim is {dim}, but the embedder {space.id!r:.80} makes vectors of {space.dim}: "
                    "leave dim out"
                )

    def space(self, dim: int | None = None) -> Space | None:
        """Return the space in use; None if it is not decided yet.

        ``dim`` is the dimension of a vector that a caller gives; if no space is decided yet, the first vector
        decides it.

        Raises:
            SpaceMismatchError: The stored vectors are from an embedder other than the named one.
        """
        own = self.meaning.own
        key = None if own is None else own.id, self.agent, dim or self._dim
        cached = self.meaning.spaces.get(key)
        if cached is not None and time.monotonic() - cached[1] < _FRESH:
            return cached[0]
        space = self._decided(dim)
        self.meaning.hold(key, space)
        return space or self._first(dim or self._dim)

    def _decided(self, dim: int | None) -> Space | None:
        """Return the space of the named embedder, or else of the stored vectors; None without either."""
        if self.meaning.own is not None:
            own = self.meaning.space()
            if own is not None and self._store.home_space() is None:
                self._check_own(own)
            return own
        known = self._store.spaces(self.agent)
        own = self.meaning.space()
        given = next((space for space in known if space.is_given), None)
        if given is not None and (own is None or own not in known or dim == given.dim):
            return given
        if own is None and known and given is None:
            self._record(known[0])  # The home's record is missing, but the index has the space.
            return known[0]
        return own

    def _first(self, dim: int | None) -> Space | None:
        """Return the space that the first vector decides."""
        embedder = self.meaning.choice().embedder
        if embedder is not None and dim in (None, embedder.dim):  # The first vector is the embedder's.
            return Space(embedder.id, embedder.dim)
        return None if dim is None else given_space(dim)

    def _check_own(self, own: Space) -> None:
        known = self._store.spaces(self.agent)
        other = next((space for space in known if not space.is_given and space != own), None)
        if other is not None:
            raise SpaceMismatchError(
                f"agent {self.agent!r} has vectors of {other.id!r:.80} with {other.dim} numbers, not of "
                f"{own.id!r:.80} with {own.dim}: pass that embedder, or use another agent"
            )

    def embedder(self) -> Embedder | None:
        """Return the embedder for the space in use; None if no available embedder matches it."""
        return self._selection()[0]

    @property
    def is_remote(self) -> bool:
        """Whether the embedder asks a server, so that no call should wait for it."""
        return self.meaning.choice().remote

    def reason(self) -> str:
        """Return a readable reason for the choice of embedder, or for having none."""
        return self._selection()[2]

    def _selection(self) -> tuple[Embedder | None, Space | None, str]:
        """Return the usable embedder, the space if any embedder is chosen, and the reason for both."""
        choice = self.meaning.named or self.meaning.choice()
        if choice.embedder is None:
            return None, None, choice.reason
        space = self.space()
        if self.meaning.named is None:
            choice = self.meaning.choice()  # The choice changes if the space was just recorded.
        if choice.embedder is None or (space is not None and space.id == choice.embedder.id):
            return choice.embedder, space, choice.reason
        return None, space, whose_vectors(space.id if space else "", choice.embedder.id)

    def query(self, text: str, given: Vector | None) -> tuple[Vector | None, Space | None, str]:
        """Return the vector to search with (the given vector, else the text's), its space, and the reason.

        Raises:
            SpaceMismatchError: The agent's vectors are from another embedder.
            EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``embed``.
        """
        if given is not None:
            return given, self.space(), "a vector was given"
        embedder, space, reason = self._selection()
        if embedder is None or not text.strip():
            return None, None, reason
        from keepstone.embed import embed_query

        return embed_query(embedder, text), space, reason

    def check(self, value: Any) -> Vector:
        """Return a caller's vector as float32 of unit length.

        Raises:
            TypeError: The value is not a sequence or array of numbers.
            InvalidEmbeddingError: The vector is empty, has NaN or infinity, or only zeros.
            EmbeddingDimMismatchError: Its dimension differs from ``dim`` or from the space in use.
        """
        return self._checked(value)[0]

    def given(self, value: Any) -> Record:
        """Return a caller's vector in the form of a log line; errors as for ``check``."""
        vector, space = self._checked(value)
        return encode(space.id, vector)

    def _checked(self, value: Any) -> tuple[Vector, Space]:
        vector = unit(value)
        return vector, self.space_for(vector)

    def space_for(self, vector: Vector) -> Space:
        """Return the space that a caller's vector is in; errors as for ``check``."""
        if self._dim is not None:
            check_dim(len(vector), given_space(self._dim))
        space = self.space(len(vector)) or given_space(len(vector))
        check_dim(len(vector), space)
        return space

    def settle(self, records: Sequence[Record]) -> None:
        """Put the vectors in records into the agent's space; the first vector decides the space.

        Raises:
            EmbeddingDimMismatchError: A vector has another dimension than the space; no record was changed.
        """
        first = next((decode(record["embedding"]) for record in records if record.get("embedding")), None)
        self.meaning.spaces.clear()  # Record the current space, not a cached one.
        dim = None if first is None else first[0].dim
        space = self.space(dim)
        settle(records, space)
        self._record(space)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the embedder's vectors of texts, one for each text.

        Raises:
            EmbedderUnavailableError: There is no embedder, or it raised.
            EmbeddingDimMismatchError, InvalidEmbeddingError: The embedder returned unusable vectors.
            SpaceMismatchError: The agent's vectors are from another embedder.
        """
        embedder, _, reason = self._selection()
        if embedder is None:
            raise EmbedderUnavailableError(
                f"no embedder is available to embed the text ({reason}): pass embedding=, or "
                "embedder=, an object with id, dim, embed_documents(texts) and embed_query(text)"
            )
        maker = self.meaning.maker(embedder)
        made = maker.make(texts, must=True) if len(texts) > 1 else {}
        return [unit(made[text] if text in made else maker.make_one(text)) for text in texts]

    def keep(self, made: Sequence[tuple[Entry, Vector]]) -> None:
        """Keep the vectors that the embedder made of entries' texts."""
        embedder = self.embedder()
        if embedder is not None:
            self.keep_made(self.meaning.maker(embedder), made)

    def keep_made(self, maker: Maker, made: Sequence[tuple[Entry, Vector]]) -> int:
        """Keep the vectors that a maker made of entries' texts; return how many."""
        space = self.space()
        if space is None:
            return 0
        self._record(space)
        kept = self._store.keep_vectors(self.agent, space.id, made)
        if kept == len(made):
            maker.stored([entry.text for entry, _ in made])
        return kept

    def _record(self, space: Space | None) -> None:
        if space is not None and not space.is_given:
            self.meaning.record(space)

    def similar(
        self, vector: Vector, scope: Scope, limit: int, *, hnsw_from: int = HNSW_FROM
    ) -> SimilarEntries:
        """Return the entries in scope whose vectors are nearest, best first, each with its cosine.

        With an embedder, entries without a vector are embedded first. A whole session or agent with at
        least ``hnsw_from`` vectors is searched with HNSW once its graph exists.

        Raises:
            StoreError: Vectors cannot be compared now.
            EmbedderUnavailableError: The embedder raised.
        """
        space = self.space(len(vector))
        if space is None or not limit:
            return SimilarEntries()
        self.fill(scope)

        def nearest(reader: Reader) -> SimilarEntries:
            found = reader.similar(vector, space.id, scope, limit, hnsw_from)
            if found.is_due:
                self.wake()
            loaded = reader.load([candidate.key for candidate in found])
            pairs = ((loaded[near.key], near.score) for near in found if near.key in loaded)
            return SimilarEntries(pairs, found.searched)

        return self.with_reader(nearest)

    def with_reader(self, question: Callable[[Reader], T]) -> T:
        """Answer a question with a reader of the agent as it is now; see ``store.reader.with_reader``."""
        return with_reader(self._store, self.agent, question)

    def of(self, session: str, entries: Sequence[Entry]) -> dict[str, Vector]:
        """Return the vectors of a session's entries, by id; entries without a vector are left out."""
        space = self.space()
        if space is None or not entries:
            return {}
        return self._store.vectors(self.agent, session, space.id, [entry.id for entry in entries])

    def fill(self, scope: Scope) -> None:
        """Embed all entries in scope that have no vector, except texts that the embedder refuses.

        Raises:
            StoreError: The store cannot currently list the entries without a vector.
            EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``embed``.
        """
        embedder = self.embedder()
        if embedder is not None:
            self.with_reader(lambda reader: filling.fill(self, embedder, reader, scope))

    def wake(self) -> None:
        """Schedule background work: missing vectors, or files that speed up the search."""
        self.meaning.owe(self.agent)
        self.meaning.wake(self.agent)

    def pending_count(self, reader: Reader, scope: Scope) -> int:
        """Return how many entries in scope the embedder has not embedded yet."""
        embedder = self.embedder()
        return 0 if embedder is None else reader.pending_count(embedder.id, scope)


class Dense:
    """The vector search of one recall, or the reason for having none.

    ``space`` is the id of the searched space, None if none was searched; ``reason`` says why;
    ``pending`` is the number of entries in scope without a vector; ``searched`` is ``"hnsw"`` or ``"exact"``.
    """

    def __init__(self, reader: Reader, vectors: Vectors, scope: Scope, as_of: datetime | None = None) -> None:
        self._reader = reader
        self._vectors = vectors
        self._scope = scope
        self._as_of = as_of
        self._until = time.monotonic() + SECONDS
        self._vector: Vector | None = None
        self.space: str | None = None
        self.reason = ""
        self.pending = 0
        self.searched: str | None = None

    def take_query(self, text: str, vector: Vector | None) -> None:
        """Set the query's vector: the given vector, else the text's. Later calls change nothing."""
        if self.reason:
            return
        if vector is not None:
            # A wrong dimension is the caller's mistake: raise an error instead of searching by words.
            self._vectors.space_for(vector)
        try:
            self._vector, space, self.reason = self._vectors.query(text, vector)
        except FAILURES as error:
            self._fail(error)
        else:
            self.space = space.id if space is not None and self._vector is not None else None

    def nearest(self, ahead: Ahead | None, limit: int, part: Scope | None = None) -> Similar:
        """Return the entries with the nearest vectors; entries in ``ahead`` are embedded first."""
        if self._vector is None or self.space is None:
            return Similar()
        try:
            if ahead is not None:
                self._fill(ahead.keys)
            found = self._reader.similar(self._vector, self.space, part or self._scope, limit, ahead=ahead)
        except StoreError as error:
            self._fail(error)
            return Similar()
        self.searched = found.searched
        if self.pending or found.is_due:
            self._vectors.wake()
        return found

    def cosines(self, keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines of entries; entries without a vector are left out."""
        if self._vector is None or self.space is None:
            return {}
        return self._reader.cosines(self._vector, self.space, keys)

    def calibrated(self, rows: int) -> Cosines | None:
        """Return the typical cosines of the query among the entries; None if they are unknown."""
        if self._vector is None or self.space is None:
            return None
        return calibrated(self._reader, self._vector, self.space, rows)

    def _fill(self, first: Iterable[int]) -> None:
        if self._as_of is None:
            self._fill_by(self._reader, first)
        else:  # Vectors belong to current texts; past versions with the same texts share them.
            self._vectors.with_reader(lambda today: self._fill_by(today, ()))

    def _fill_by(self, reader: Reader, first: Iterable[int]) -> None:
        try:
            self.pending = self._vectors.pending_count(reader, self._scope)
            if self.pending and not self._vectors.is_remote:
                self.pending, refused = filling.fill_quickly(
                    self._vectors, reader, self._scope, first, self._until
                )
                self.reason = refused or self.reason
            elif self.pending:
                self.reason = filling.refusal(self._vectors) or self.reason
        except FAILURES as error:
            # Entries that have vectors can still be compared.
            self.reason = str(error)
            self.pending = self._vectors.pending_count(reader, self._scope)

    def _fail(self, error: KeepstoneError) -> None:
        # An embedder's error may quote a text, and program logs must not hold any.
        logger.warning("recall by words only: %s", type(error).__name__)
        self._vector, self.space, self.reason = None, None, str(error)
