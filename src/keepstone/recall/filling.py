"""Embedding of entries without a vector: during a recall, for a call that waits, and in the background."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import Empty
from typing import TYPE_CHECKING, TypeVar

from keepstone.model import Scope
from keepstone.store.reader import Reader
from keepstone.vector import Vector

if TYPE_CHECKING:
    from keepstone.embed import Embedder
    from keepstone.recall.vectors import Vectors

T = TypeVar("T")

AT_ONCE = 64
"""Number of texts in one call of an embedder if the caller waits for all; also the maximum for one recall."""
FEW = 8
"""Number of texts in one call of an embedder during a recall, or while another call waits for its turn."""
_STEP, _LONG_STEP = 0.02, 0.25
"""Seconds that background work keeps its turn: while other calls ask for turns, too, and while none does."""
_MOMENT = 0.01
"""Minimum time, in seconds, that a recall waits for its turn."""
_PAGE = 64 * AT_ONCE
"""Number of keys read at a time when all entries are embedded."""
_PATIENCE = 0.25
"""Seconds that a recall in excerpts waits for its turn; without a turn it embeds no excerpts."""


def fill(vectors: Vectors, embedder: Embedder, reader: Reader, scope: Scope) -> None:
    """Make the vectors of all entries in scope that have none; see ``Vectors.fill``."""
    if reader.pending(embedder.id, scope, 1):
        with vectors.meaning.turns.soon():
            refused = {key for agent, key in vectors.meaning.refused if agent == vectors.agent}
            for keys in pending_slices(reader, embedder.id, scope, last=refused):
                if not _make(vectors, embedder, reader, keys, must=True).any:
                    break  # Nothing could be stored, or these texts are refused.


def catch_up(vectors: Vectors, seconds: float) -> None:
    """Have a server embed up to 64 of the newest entries without a vector, within some seconds.

    Raises:
        KeepstoneError: The server failed or took too long, or the index cannot be used now.
    """
    from keepstone.embed.embedder import ask_within

    until = time.monotonic() + seconds
    server = vectors.meaning.choice().embedder
    if server is None:
        return

    def make(reader: Reader) -> None:
        keys = reader.pending(server.id, Scope(vectors.agent), AT_ONCE, newest_first=True)
        if not keys:
            return
        ask_within(seconds, server.id, lambda: server.dim)  # Reading ``dim`` may ask the server.
        with vectors.meaning.turns.soon(max(0.0, until - time.monotonic())) as mine:
            # Another call may have changed the embedder during the wait.
            if not mine or vectors.embedder() is not server:
                return
            maker = vectors.meaning.maker(server)
            entries = reader.load(keys).values()
            texts = [entry.text for entry in entries]
            made = ask_within(until - time.monotonic(), server.id, lambda: maker.make(texts))
            vectors.keep_made(maker, [(entry, made[entry.text]) for entry in entries if entry.text in made])

    vectors.with_reader(make)


def fill_quickly(
    vectors: Vectors, reader: Reader, scope: Scope, first: Iterable[int], until: float
) -> tuple[int, str]:
    """Embed up to 64 entries for a recall, until a given time.

    ``first`` are the keys of the entries that matter most; the newest entries follow. If at most 64 entries
    lack a vector, an embedder that comes with keepstone embeds at least one of them, however late it is. The
    recall stops waiting for any other embedder at the given time. Returns how many entries still lack a
    vector, and why the embedder refuses some of them. Errors are those of ``Vectors.fill``.
    """
    from keepstone.embed.embedder import Patient

    embedder = vectors.embedder()
    if embedder is None:
        return 0, ""
    refused, maker = "", vectors.meaning.maker(embedder)
    is_foreign = isinstance(embedder, Patient)
    with vectors.meaning.turns.soon(max(until - time.monotonic(), _MOMENT)) as mine:
        left = reader.pending_count(embedder.id, scope)
        # Refused texts stay pending, so ask for that many more.
        most = AT_ONCE + len(vectors.meaning.refused)
        wanted = reader.pending(embedder.id, scope, keys=list(first))
        newest = reader.pending(embedder.id, scope, most, newest_first=True)
        chosen = _refused_last(vectors, list(dict.fromkeys((*wanted, *newest))))[:AT_ONCE]
        if maker.late is not None and maker.late.thread.is_alive():
            chosen = []  # Start no further call while one is late.
        seconds = until - time.monotonic()
        if left <= AT_ONCE:
            count = maker.fitting(max(seconds, _STEP), FEW) or (0 if is_foreign else 1)
        else:
            count = maker.fitting(seconds, 1)
        while mine and chosen and count:
            made = _make(vectors, embedder, reader, chosen[:count], until=until if is_foreign else None)
            left -= made.kept
            chosen = chosen[count:]
            refused = made.reason or refused
            count = maker.fitting(until - time.monotonic(), 1) if made.any else 0
    return left, refused


def refusal(vectors: Vectors) -> str:
    """Return why the embedder refused a text; empty if it refused none."""
    embedder = vectors.embedder()
    return "" if embedder is None else vectors.meaning.maker(embedder).refusal


def of_texts(vectors: Vectors, texts: Sequence[str], seconds: float) -> dict[str, Vector]:
    """Return vectors of texts that are not entries, as many as can be made in some seconds.

    The maker remembers them, so that later calls get more. A server is not asked.
    Errors are those of ``Vectors.fill``.
    """
    embedder = vectors.embedder()
    if embedder is None or vectors.is_remote:
        return {}
    made: dict[str, Vector] = {}
    maker, began = vectors.meaning.maker(embedder), time.monotonic()
    with vectors.meaning.turns.soon(_PATIENCE) as mine:
        for batch in _slices(texts, FEW) if mine else ():
            made |= maker.make(batch)
            if time.monotonic() - began >= seconds:
                break
    return made


def fill_some(vectors: Vectors, scope: Scope) -> bool:
    """Embed a few entries, the oldest first, unless a call waits for its turn; return False if none are left.

    Errors are those of ``Vectors.fill``.
    """
    embedder = vectors.embedder()
    if embedder is None:
        return False

    def make(reader: Reader) -> bool:
        seconds = _STEP if turns.is_busy else _LONG_STEP
        count = max(1, min(vectors.meaning.maker(embedder).fitting(seconds, FEW), AT_ONCE))
        # Ask for one more than will be made: its presence shows that some are left.
        most = count + 1 + len(vectors.meaning.refused)
        pending = _refused_last(vectors, reader.pending(embedder.id, scope, most))
        made = _make(vectors, embedder, reader, pending[:count])
        turns.are_wanted = made.any and made.kept < len(pending)
        return turns.are_wanted

    turns = vectors.meaning.turns
    with turns.later() as mine:
        return vectors.with_reader(make) if mine else True


def _refused_last(vectors: Vectors, keys: Sequence[int]) -> list[int]:
    refused = vectors.meaning.refused
    return sorted(keys, key=lambda key: (vectors.agent, key) in refused) if refused else list(keys)


def _make(
    vectors: Vectors,
    embedder: Embedder,
    reader: Reader,
    keys: Sequence[int],
    *,
    must: bool = False,
    until: float | None = None,
) -> _Made:
    """Make and store vectors; the maker caches vectors that are late for ``until``, for a later call."""
    from keepstone.embed.embedder import PendingCall

    maker = vectors.meaning.maker(embedder)
    entries = reader.load(keys) if keys else {}
    # Texts refused earlier: only a new refusal shows that another call may help.
    known = {text for entry in entries.values() if maker.refuses(text := entry.text)}
    texts = [entry.text for entry in entries.values()]
    try:
        if until is None:
            found = maker.make(texts, must=must)
        else:
            maker.late = PendingCall(lambda: maker.make(texts))
            found = maker.late.answer(max(until - time.monotonic(), _MOMENT))
    except Empty:
        return _Made(0, 0, "")
    made = [(entry, found[entry.text]) for entry in entries.values() if entry.text in found]
    refused = {key: entry.text for key, entry in entries.items() if maker.refuses(entry.text)}
    vectors.meaning.refused |= dict.fromkeys((vectors.agent, key) for key in refused)
    reason = next((maker.why_refused(text) for text in refused.values()), "")
    return _Made(vectors.keep_made(maker, made) if made else 0, len(set(refused.values()) - known), reason)


@dataclass(frozen=True, slots=True)
class _Made:
    """Numbers of stored vectors and newly refused texts, and the reason of the first refusal, new or old."""

    kept: int
    refused: int
    reason: str

    @property
    def any(self) -> bool:
        """Whether another call may help."""
        return bool(self.kept or self.refused)


def pending_slices(
    reader: Reader, space: str, scope: Scope, last: Collection[int] = ()
) -> Iterator[Sequence[int]]:
    """Yield the keys of entries without a vector in batches, the oldest first.

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
