"""Readers: the queries of a store that a recall needs. This module is imported before any index is open.

Invariant (docs/decisions/0015-one-reader-pins-one-state-of-the-index.md): a key means one entry during a
recall. The key contains the epoch of its index, and a key of another epoch raises ``ExpiredError`` instead of
naming another entry.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from keepstone.errors import StoreError
from keepstone.model import Entry, Scope
from keepstone.vector import Vector

if TYPE_CHECKING:
    from keepstone.index import Index
    from keepstone.store.protocol import Store

T = TypeVar("T")

TRIES = 3
"""Maximum number of times that a question is asked if the index is replaced during it."""

HNSW_FROM = 50_000
"""Number of vectors from which a whole session or agent is searched by a graph."""

ROWS = 1 << 44
"""Number of keys for each epoch of the index: a key is epoch * ``ROWS`` + row number.

A damaged row whose number is out of range is left out.
"""


class Candidate(NamedTuple):
    """An entry that one list of a search found."""

    key: int
    """The key of the entry in its epoch of the index; ``Reader.load`` takes it."""
    score: float
    """BM25 or cosine, higher is better; comparable within one list."""


@dataclass(frozen=True, slots=True)
class Ahead:
    """The next lookups for the found entries, which a remote store does in the same round trip."""

    keys: Sequence[int] = ()
    """Keys of further entries for the same lookups."""
    reach: int = 0
    """Maximum distance of the neighbours to look up; with 0, the records of the found entries are loaded."""


class Matches(list[Candidate]):
    """Candidates by words, best first, with statistics of the words over all of the agent's entries.

    Attributes:
        rows: Number of the agent's entries.
        holders: Number of the agent's entries that hold each searched word.
        length: Average number of words of the agent's entries.
    """

    def __init__(
        self,
        found: Iterable[Candidate] = (),
        rows: int = 0,
        holders: Mapping[str, int] | None = None,
        length: float = 0.0,
    ) -> None:
        super().__init__(found)
        self.rows = rows
        self.holders = holders or {}
        self.length = length


class Similar(list[Candidate]):
    """Candidates, best first.

    Attributes:
        searched: ``"hnsw"`` if a graph was searched, ``"exact"`` if every vector in scope was compared.
        is_due: Whether ``Maintenance.upkeep`` can do work that makes the next such query faster.
    """

    def __init__(
        self, found: Iterable[Candidate] = (), searched: str = "exact", *, is_due: bool = False
    ) -> None:
        super().__init__(found)
        self.searched = searched
        self.is_due = is_due


class ExpiredError(Exception):
    """A key belongs to another epoch: ask again with a new reader."""


class Reader(Protocol):
    """One state of an agent's index, current or past, with the entries that it refers to.

    A key identifies an entry and an epoch of the index. An epoch ends when keys come to stand for other
    entries, such as at a rebuild. Keys are opaque, and valid for every reader of the agent in this process
    until the epoch ends. After that, each method that takes or returns keys raises ``ExpiredError``.
    ``with_reader`` then repeats its question with a new reader.

    Scopes must name the reader's agent. ``Scope.where`` is ignored: the caller checks it on loaded entries.
    """

    @property
    def stale(self) -> bool:
        """Whether an answer of this reader may lack entries because the index is behind the logs."""

    def search(self, terms: Sequence[str], scope: Scope, limit: int, names: Sequence[str] = ()) -> Matches:
        """Return entries in scope that hold any of the words, best first; none, and stale, if that fails.

        The holders of a word are counted over the whole agent, not the scope. ``names`` are identifiers that
        the caller will pass to ``holding``.
        """

    def holding(
        self, words: Sequence[str], scope: Scope, most: int, among: Sequence[int]
    ) -> dict[str, set[int]]:
        """Return the keys of the entries in scope that hold each word, as a phrase if it has several parts.

        If more than ``most`` entries hold a word, only keys in ``among`` are returned, which are keys
        that a search in this scope found.
        """

    def similar(
        self,
        vector: Vector,
        space: str,
        scope: Scope,
        limit: int,
        hnsw_from: int = HNSW_FROM,
        *,
        ahead: Ahead | None = None,
    ) -> Similar:
        """Return the entries in scope whose vectors of a space are nearest, best first, scored by cosine.

        The vector has unit length. The scope filters before the comparison, so that it never reduces recall.
        The vector of an entry that was purged, deleted, or has another text now is never compared.

        A scope that is a whole session or agent with ``hnsw_from`` vectors is searched by a graph.
        The first such query is an exact scan, after which ``Maintenance.upkeep`` builds the graph.

        Raises:
            StoreError: Vectors cannot be compared now.
        """

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        """Return entries in scope at most ``reach`` places away from given entries in their session.

        Each item is a given key, the key of the other entry, and the distance, which is at least 1.
        """

    def cosines(self, vector: Vector, space: str, keys: Sequence[int]) -> dict[int, float]:
        """Return the cosines of entries' vectors with ``vector``; entries without a vector are left out."""

    def cosine_quartiles(self, vector: Vector, space: str) -> tuple[float, float] | None:
        """Return median and upper quartile of a vector's cosines with a sample of the agent's vectors.

        Returns None if the sample is too small.
        """

    def heads(self, keys: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        """Return the first 64 or more characters of entries' texts, and their timestamps, by key."""

    def load(self, keys: Sequence[int]) -> dict[int, Entry]:
        """Return the entries with these keys; entries that changed after they were found are left out."""

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        """Return the keys of entries in scope with text but without a vector of a space, oldest first.

        Args:
            space: The id of the space.
            scope: The scope.
            limit: Maximum number of keys.
            cursor: The last key of the previous page.
            newest_first: Whether to return the newest entries first.
            keys: Keys of the only entries to consider, or None.

        Raises:
            StoreError: Vectors cannot be read now.
        """

    def pending_count(self, space: str, scope: Scope) -> int:
        """Return how many keys ``pending`` returns without a limit; errors as for ``pending``."""


def with_reader(
    store: Store, agent: str, question: Callable[[Reader], T], as_of: datetime | None = None
) -> T:
    """Answer a question with a reader of an agent; after ``ExpiredError``, ask a new reader.

    Raises:
        StoreError: The index was replaced during every attempt.
    """
    for _ in range(TRIES):
        with suppress(ExpiredError), store.reader(agent, as_of) as reader:
            return question(reader)
    raise StoreError(f"the index of agent {agent!r} was replaced {TRIES} times during one call; try again")


class IndexReader(ABC):
    """A ``Reader`` of an index. The key of a row is ``epoch * ROWS + row``."""

    _epoch = 0

    @property
    def stale(self) -> bool:
        return False

    @abstractmethod
    def _pinned_index(self) -> AbstractContextManager[Index]:
        """Use the index, whose epoch is ``_epoch``, inside a ``with``; StoreError if it cannot be used."""

    @abstractmethod
    def _reach(self, sessions: Sequence[str] | None) -> None:
        """Bring the index up to date with some sessions, or with all of them (None)."""

    @abstractmethod
    def load(self, keys: Sequence[int]) -> dict[int, Entry]: ...

    def _rows(self, keys: Sequence[int]) -> list[int]:
        first = self._epoch * ROWS
        rows = [key - first for key in keys]
        if rows and not 0 <= min(rows) <= max(rows) < ROWS:
            raise ExpiredError("a key is of another epoch")
        return rows

    def search(
        self,
        terms: Sequence[str],
        scope: Scope,
        limit: int,
        names: Sequence[str] = (),  # noqa: ARG002  The index is local.
    ) -> Matches:
        if not terms:
            return Matches()
        self._reach(scope.sessions)
        for flush in (True, False):  # Flushing must write; else only the newest entries are missed.
            with suppress(StoreError), self._pinned_index() as index:
                found, first = index.ranked(terms, scope, limit, flush=flush), self._epoch * ROWS
                rows = [Candidate(first + row, score) for row, score in found if 0 <= row < ROWS]
                return Matches(rows, found.rows, found.holders, found.length)
        return Matches()

    def holding(
        self, words: Sequence[str], scope: Scope, most: int, among: Sequence[int]
    ) -> dict[str, set[int]]:
        if not words:
            return {}
        self._reach(scope.sessions)
        with suppress(StoreError), self._pinned_index() as index:
            found, first = index.holding(words, scope, most, self._rows(among)), self._epoch * ROWS
            return {word: {first + row for row in rows if 0 <= row < ROWS} for word, rows in found.items()}
        return {word: set() for word in words}

    def similar(
        self,
        vector: Vector,
        space: str,
        scope: Scope,
        limit: int,
        hnsw_from: int = HNSW_FROM,
        *,
        ahead: Ahead | None = None,  # noqa: ARG002  The index is local.
    ) -> Similar:
        if not limit:
            return Similar()
        self._reach(scope.sessions)
        with self._pinned_index() as index:
            found, first = index.nearest(vector, space, scope, limit, hnsw_from), self._epoch * ROWS
        near = [Candidate(first + row, score) for row, score in found if 0 <= row < ROWS]
        return Similar(near, found.searched, is_due=found.is_due)

    def neighbours(self, keys: Sequence[int], reach: int, scope: Scope) -> list[tuple[int, int, int]]:
        with suppress(StoreError), self._pinned_index() as index:
            found = index.neighbours(self._rows(keys), reach, scope) if keys else []
            first = self._epoch * ROWS
            return [(first + row, first + other, far) for row, other, far in found if 0 <= other < ROWS]
        return []

    def cosines(self, vector: Vector, space: str, keys: Sequence[int]) -> dict[int, float]:
        with suppress(StoreError), self._pinned_index() as index:
            found = index.cosines(vector, space, self._rows(keys)) if keys else {}
            first = self._epoch * ROWS
            return {first + row: cosine for row, cosine in found.items()}
        return {}

    def cosine_quartiles(self, vector: Vector, space: str) -> tuple[float, float] | None:
        with suppress(StoreError), self._pinned_index() as index:
            return index.cosine_quartiles(vector, space)
        return None

    def heads(self, keys: Sequence[int]) -> dict[int, tuple[str, datetime]]:
        with suppress(StoreError), self._pinned_index() as index:
            found = index.heads(self._rows(keys)) if keys else {}
            first = self._epoch * ROWS
            return {first + row: head for row, head in found.items()}
        return {}

    def pending(
        self,
        space: str,
        scope: Scope,
        limit: int | None = None,
        cursor: int | None = None,
        *,
        newest_first: bool = False,
        keys: Sequence[int] | None = None,
    ) -> list[int]:
        self._reach(scope.sessions)
        with self._pinned_index() as index:
            after = None if cursor is None else self._rows([cursor])[0]
            among = None if keys is None else self._rows(keys)
            found = index.pending(space, scope, limit, after, newest_first=newest_first, among=among)
            first = self._epoch * ROWS
            return [first + row for row in found if 0 <= row < ROWS]

    def pending_count(self, space: str, scope: Scope) -> int:
        self._reach(scope.sessions)
        with self._pinned_index() as index:
            return index.pending_count(space, scope)
