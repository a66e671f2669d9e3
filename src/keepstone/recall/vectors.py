"""One agent's vectors in one space: what is given, made, kept and compared."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from keepstone.errors import EmbedderUnavailableError, EmbeddingDimMismatchError, SpaceMismatchError
from keepstone.log.arguments import count_of
from keepstone.model import Entry, Record, Scope
from keepstone.recall.selection import Meaning
from keepstone.store.protocol import Store
from keepstone.store.reader_protocol import HNSW_FROM, Reader, ask
from keepstone.vector import Space, Vector, check_dim, decode, encode, given_space, settle, unit

if TYPE_CHECKING:
    from keepstone.embed import Embedder
    from keepstone.embed.maker import Maker

T = TypeVar("T")

AT_ONCE = 64
"""Texts that an embedder gets at a time when the call waits for all, and in all for a recall."""
FEW = 8
"""Texts that it gets at a time when a recall waits, or another call waits for its turn."""
_STEP, _LONG_STEP = 0.02, 0.25
"""Seconds that background work keeps the turn while calls ask for it now and then, and while none does."""
_PAGE = 64 * AT_ONCE
"""Keys that are read at a time where the vectors of all entries are made."""
_FRESH = 1.0
"""Seconds for which a space that was found counts, so that a recall asks for it once."""
_PATIENCE = 0.25
"""Seconds that a recall waits for its turn; without one it answers with the vectors that there are."""


class SimilarEntries(list[tuple[Entry, float]]):
    """Entries with cosines, best first; ``searched`` is ``"hnsw"`` or ``"exact"``, as in ``Similar``."""

    def __init__(self, found: Iterable[tuple[Entry, float]] = (), searched: str = "exact") -> None:
        super().__init__(found)
        self.searched = searched


class Vectors:
    """Vectors of an agent's entries, and how near they are to others.

    With an embedder they are of its space: vectors that callers give count as its own,
    and those of other entries are made when they are needed. Such vectors are kept in the
    index only. Without an embedder there are only those given, in the space of the first.

    Raises:
        TypeError, ValueError: ``dim`` is not a dimension.
        EmbeddingDimMismatchError: ``dim`` is not the named embedder's dimension.
    """

    def __init__(self, store: Store, agent: str, meaning: Meaning, dim: int | None = None) -> None:
        """Use ``Agent.vectors`` instead."""
        self._store = store
        self._agent = agent
        self._meaning = meaning
        self._dim = None if dim is None else count_of(dim, "dim", least=1)
        self._space: Space | None = None
        self._settled = float("-inf")
        if self._dim is not None and meaning.own is not None:
            space = meaning.space()
            if space is not None and space.dim != self._dim:
                raise EmbeddingDimMismatchError(
                    f"dim is {dim}, but the embedder {space.id!r:.80} makes vectors of {space.dim}: "
                    "leave dim out"
                )

    def space(self, dim: int | None = None) -> Space | None:
        """Return the space in use, None where nothing decided it yet.

        ``dim`` is the dimension of a vector that is to be given: the first one decides.

        Raises:
            SpaceMismatchError: The vectors there are of another embedder than the named one.
        """
        if dim is None and time.monotonic() - self._settled < _FRESH:
            return self._space
        space = self._find(dim)
        self._space, self._settled = space, time.monotonic() if space is not None else float("-inf")
        return space

    def _find(self, dim: int | None) -> Space | None:
        if self._meaning.own is not None:
            own = self._meaning.space()
            if own is not None and self._store.home_space() is None:
                self._check_own(own)
            return own
        known = self._store.spaces(self._agent)
        own = self._meaning.space()
        given = next((space for space in known if space.is_given), None)
        if given is not None and (own is None or own not in known or dim == given.dim):
            return given
        if own is None and known and given is None:
            self._record(known[0])  # The index knows what the home's record, which is gone, said.
            return known[0]
        if own is not None:
            return own
        dim, embedder = dim or self._dim, self._meaning.choice().embedder
        if embedder is not None and dim in (None, embedder.dim):  # The first vector is the embedder's.
            return Space(embedder.id, embedder.dim)
        return None if dim is None else given_space(dim)

    def _check_own(self, own: Space) -> None:
        known = self._store.spaces(self._agent)
        other = next((space for space in known if not space.is_given and space != own), None)
        if other is not None:
            raise SpaceMismatchError(
                f"agent {self._agent!r} has vectors of {other.id!r:.80} with {other.dim} numbers, not of "
                f"{own.id!r:.80} with {own.dim}: pass that embedder, or use another agent"
            )

    def embedder(self) -> Embedder | None:
        """Return what makes vectors of the space in use; None where nothing at hand does."""
        return self._selection()[0]

    @property
    def is_remote(self) -> bool:
        """Whether the embedder asks a server, so that no call should wait for it."""
        return self._meaning.choice().remote

    def reason(self) -> str:
        """Return why the embedder is used that is, or why there is none, for people."""
        return self._selection()[2]

    def _selection(self) -> tuple[Embedder | None, Space | None, str]:
        """Return the embedder in use, the space if there is an embedder at all, and the reason for it."""
        choice = self._meaning.named or self._meaning.choice()
        if choice.embedder is None:
            return None, None, choice.reason
        space = self.space()
        if self._meaning.named is None:
            choice = self._meaning.choice()  # Another one, if the space was recorded only now.
        if choice.embedder is None or (space is not None and space.id == choice.embedder.id):
            return choice.embedder, space, choice.reason
        whose = f"the agent's vectors are {space.id if space else ''}, which its callers made themselves"
        return None, space, whose

    def query(self, text: str, given: Vector | None) -> tuple[Vector | None, Space | None, str]:
        """Return the vector to search with, its space, and why: a given one goes before that of the text.

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

        return unit(embed_query(embedder, text)), space, reason

    def check(self, value: Any) -> Vector:
        """Return a caller's vector as float32 of unit length.

        Raises:
            TypeError: It is no sequence or array of numbers.
            InvalidEmbeddingError: The vector is empty, has NaN or infinity, or only zeros.
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
        space = self.space(len(vector)) or given_space(len(vector))
        check_dim(len(vector), space)
        return vector, space

    def settle(self, records: Sequence[Record]) -> None:
        """Bring the vectors that come with records into the agent's space; the first one decides it.

        Raises:
            EmbeddingDimMismatchError: One has another dimension than the space. Nothing was changed then.
        """
        first = next((decode(record["embedding"]) for record in records if record.get("embedding")), None)
        dim = None if first is None else first[0].dim
        space = self.space(dim)
        settle(records, space)
        self._record(space)

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors that the embedder makes of texts, of all of them.

        Raises:
            EmbedderUnavailableError: There is no embedder, or it raised.
            EmbeddingDimMismatchError, InvalidEmbeddingError: It made what is no such vector.
            SpaceMismatchError: The agent's vectors are from another embedder.
        """
        embedder, _, reason = self._selection()
        if embedder is None:
            raise EmbedderUnavailableError(
                f"no embedder is available to embed the text ({reason}): pass embedding=, or "
                "embedder=, an object with id, dim, embed_documents(texts) and embed_query(text)"
            )
        maker = self._meaning.maker(embedder)
        made = maker.make(texts, must=True) if len(texts) > 1 else {}
        return [unit(made[text] if text in made else maker.make_one(text)) for text in texts]

    def keep(self, made: Sequence[tuple[Entry, Vector]]) -> None:
        """Keep the vectors that the embedder made of entries' texts."""
        embedder = self.embedder()
        if embedder is not None:
            self._keep(self._meaning.maker(embedder), made)

    def _keep(self, maker: Maker, made: Sequence[tuple[Entry, Vector]]) -> int:
        space = self.space()
        if space is None:
            return 0
        self._record(space)
        kept = self._store.keep_vectors(self._agent, space.id, made)
        if kept == len(made):
            maker.stored([entry.text for entry, _ in made])
        return kept

    def _record(self, space: Space | None) -> None:
        if space is not None and not space.is_given:
            self._meaning.record(space)

    def similar(
        self, vector: Vector, scope: Scope, limit: int, *, hnsw_from: int = HNSW_FROM
    ) -> SimilarEntries:
        """Return the entries in scope whose vectors are nearest, best first, each with its cosine.

        With an embedder, entries that have no vector yet get theirs before. A whole session, or
        agent, with ``hnsw_from`` vectors is searched by a graph once there is one.

        Raises:
            StoreError: Vectors cannot be compared now.
            EmbedderUnavailableError: The embedder raised.
        """
        space = self.space(len(vector))
        if space is None or not limit:
            return SimilarEntries()
        self.fill(scope)

        def nearest(reader: Reader, _: bool) -> SimilarEntries:  # noqa: FBT001  Called by place.
            found = reader.similar(vector, space.id, scope, limit, hnsw_from)
            if found.is_due:
                self.wake()
            loaded = reader.load([candidate.key for candidate in found])
            pairs = ((loaded[near.key], near.score) for near in found if near.key in loaded)
            return SimilarEntries(pairs, found.searched)

        return self.ask(nearest)

    def ask(self, question: Callable[[Reader, bool], T]) -> T:
        """Answer a question with a reader of the agent as it is now; see ``ask`` of the store's contract."""
        return ask(self._store, self._agent, question)

    def of(self, session: str, entries: Sequence[Entry]) -> dict[str, Vector]:
        """Return the vectors of a session's entries, by id, as far as they were given or made."""
        space = self.space()
        if space is None or not entries:
            return {}
        return self._store.vectors(self._agent, session, space.id, [entry.id for entry in entries])

    def fill(self, scope: Scope) -> None:
        """Make the vectors of all entries in scope that have none, but for texts that the embedder refuses.

        Raises:
            StoreError: The store cannot tell now which entries have none.
            EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``embed``.
        """
        embedder = self.embedder()
        if embedder is not None:
            self.ask(lambda reader, _: self._fill(embedder, reader, scope))

    def _fill(self, embedder: Embedder, reader: Reader, scope: Scope) -> None:
        if reader.pending(embedder.id, scope, 1):
            with self._meaning.turns.soon():
                refused = {key for agent, key in self._meaning.refused if agent == self._agent}
                for keys in pending_slices(reader, embedder.id, scope, last=refused):
                    if not self._make(embedder, reader, keys, must=True).any:
                        break  # Nothing could be stored, or these texts are refused.

    def wake(self) -> None:
        """Schedule background work: missing vectors, or files that speed up the search."""
        self._meaning.owe(self._agent)
        self._meaning.wake(self._agent)

    def catch_up(self, seconds: float) -> None:
        """Let a server make the vectors of the newest entries that have none: of up to 64, in some seconds.

        Raises:
            KeepstoneError: The server failed or took too long, or the index cannot be used now.
        """
        from keepstone.embed.timeout import ask_within

        until = time.monotonic() + seconds
        server = self._meaning.choice().embedder
        if server is None:
            return

        def make(reader: Reader, _: bool) -> None:  # noqa: FBT001  Called by place.
            keys = reader.pending(server.id, Scope(self._agent), AT_ONCE, newest_first=True)
            if not keys:
                return
            ask_within(seconds, server.id, lambda: server.dim)  # It may have to ask the server.
            with self._meaning.turns.soon(max(0.0, until - time.monotonic())) as mine:
                if not mine or self.embedder() is not server:
                    return
                maker = self._meaning.maker(server)
                entries = reader.load(keys).values()
                texts = [entry.text for entry in entries]
                made = ask_within(until - time.monotonic(), server.id, lambda: maker.make(texts))
                self._keep(maker, [(entry, made[entry.text]) for entry in entries if entry.text in made])

        self.ask(make)

    def pending_count(self, reader: Reader, scope: Scope) -> int:
        """Return how many vectors of entries in scope are still to be made."""
        embedder = self.embedder()
        return 0 if embedder is None else reader.pending_count(embedder.id, scope)

    def fill_quickly(
        self, reader: Reader, scope: Scope, first: Iterable[int], seconds: float
    ) -> tuple[int, str]:
        """Make vectors for a recall: of up to 64 entries, as long as some seconds last.

        ``first`` are the keys of those that matter most; then come the newest. Returns how many entries
        are left without, and why the embedder refuses some of these. Errors are those of ``fill``.
        """
        embedder = self.embedder()
        waiting = 0 if embedder is None else reader.pending_count(embedder.id, scope)
        if embedder is None or not waiting or self.is_remote:
            return waiting, ""
        refused = ""
        until, maker = time.monotonic() + seconds, self._meaning.maker(embedder)
        with self._meaning.turns.soon(seconds) as mine:
            left = reader.pending_count(embedder.id, scope)
            most = AT_ONCE + len(self._meaning.refused)
            wanted = reader.pending(embedder.id, scope, keys=list(first))
            newest = reader.pending(embedder.id, scope, most, newest_first=True)
            chosen = self._refused_last(list(dict.fromkeys((*wanted, *newest))))[:AT_ONCE]
            count = max(1, maker.fitting(max(seconds, _STEP), FEW))
            while mine and chosen and count:
                made = self._make(embedder, reader, chosen[:count])
                left -= made.kept
                chosen = chosen[count:]
                refused = made.reason or refused
                count = maker.fitting(until - time.monotonic(), FEW) if made.any else 0
        return left, refused

    def of_texts(self, texts: Sequence[str], seconds: float) -> dict[str, Vector]:
        """Return vectors of texts that are not entries, as many as can be made in some seconds.

        The maker remembers them, so that later calls get more. A server is not asked.
        Errors are those of ``fill``.
        """
        embedder = self.embedder()
        if embedder is None or self.is_remote:
            return {}
        made: dict[str, Vector] = {}
        maker, began = self._meaning.maker(embedder), time.monotonic()
        with self._meaning.turns.soon(_PATIENCE) as mine:
            for some in _slices(texts, FEW) if mine else ():
                made |= maker.make(some)
                if time.monotonic() - began >= seconds:
                    break
        return made

    def fill_some(self, scope: Scope) -> bool:
        """Make a few vectors, the oldest first, unless a call waits for its turn; False if none are left.

        Errors are those of ``fill``.
        """
        embedder = self.embedder()
        if embedder is None:
            return False

        def make(reader: Reader, _: bool) -> bool:  # noqa: FBT001  Called by place.
            seconds = _STEP if turns.is_busy else _LONG_STEP
            count = max(1, min(self._meaning.maker(embedder).fitting(seconds, FEW), AT_ONCE))
            most = count + 1 + len(self._meaning.refused)  # One more than are made says that some are left.
            pending = self._refused_last(reader.pending(embedder.id, scope, most))
            made = self._make(embedder, reader, pending[:count])
            return made.any and made.kept < len(pending)

        turns = self._meaning.turns
        with turns.later() as mine:
            return self.ask(make) if mine else True

    def _refused_last(self, keys: Sequence[int]) -> list[int]:
        refused = self._meaning.refused
        return sorted(keys, key=lambda key: (self._agent, key) in refused) if refused else list(keys)

    def _make(self, embedder: Embedder, reader: Reader, keys: Sequence[int], *, must: bool = False) -> _Made:
        maker = self._meaning.maker(embedder)
        entries = reader.load(keys) if keys else {}
        known = {text for entry in entries.values() if maker.refuses(text := entry.text)}
        vectors = maker.make([entry.text for entry in entries.values()], must=must)
        made = [(entry, vectors[entry.text]) for entry in entries.values() if entry.text in vectors]
        refused = {key: entry.text for key, entry in entries.items() if maker.refuses(entry.text)}
        self._meaning.refused |= dict.fromkeys((self._agent, key) for key in refused)
        reason = next((maker.why_refused(text) for text in refused.values()), "")
        return _Made(self._keep(maker, made) if made else 0, len(set(refused.values()) - known), reason)


@dataclass(frozen=True, slots=True)
class _Made:
    """How many vectors were stored and texts refused, and why the first of those, now or before."""

    kept: int
    refused: int
    reason: str

    @property
    def any(self) -> bool:
        """Whether asking for more may help."""
        return bool(self.kept or self.refused)


def pending_slices(
    reader: Reader, space: str, scope: Scope, last: Collection[int] = ()
) -> Iterator[Sequence[int]]:
    """Yield the keys of entries without a vector, some at a time for an embedder, the oldest first.

    ``last`` are keys that come after all others.
    """
    cursor, late = None, []
    while page := reader.pending(space, scope, _PAGE, cursor):
        cursor = page[-1]
        late += [key for key in page if key in last]
        yield from _slices([key for key in page if key not in last], AT_ONCE)
    yield from _slices(late, AT_ONCE)


def _slices(keys: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (keys[begin : begin + size] for begin in range(0, len(keys), size))
