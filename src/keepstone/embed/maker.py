"""Embedding many texts with retries, for embedders that fail, reject texts or respond late."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keepstone.embed.embedder import Embedder, Patient, PendingCall, embed_texts, unit_rows
from keepstone.embed.unstored import Unstored, digest_of
from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
)
from keepstone.text.embedded import embedded_text
from keepstone.vector import Vector

FAILURES = (EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError)
"""The errors of a call to an embedder."""

_PROBE = "probe"
"""A text that no embedder rejects: it distinguishes a rejected text from a failed embedder."""
_EMBEDDER_WAIT, _TEXT_WAIT = (1.0, 60.0), (60.0, 86_400.0)
"""Initial and maximum backoff in seconds, for a failed embedder and for a rejected text."""
_QUICKEST = 1e-6
"""Minimum time that is assumed for a text, in seconds."""
_MOST_REFUSED = 10_000
"""Maximum number of rejected texts that are remembered."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """A failure, and when to retry."""

    words: str
    wait: float
    until: float

    @classmethod
    def after(
        cls, before: _Failure | None, error: Exception, waits: tuple[float, float], now: float
    ) -> _Failure:
        """Return the next failure, with twice the wait of the previous failure."""
        wait = waits[0] if before is None else min(2 * before.wait, waits[1])
        return cls(str(error), wait, now + wait)


class Maker:
    """Makes vectors of entries' texts, with backoff after failures.

    The embedder gets ``embedded_text`` of a text, which is also the key of cached vectors and failures.

    A failed batch is halved until the rejected texts are found; they are left out and retried after a
    minute, then after twice as long each time. A failed embedder is retried after a second at first.
    Vectors that were made are cached until they are stored.

    Args:
        embedder: The embedder.
        now: Returns the time in seconds.
    """

    def __init__(self, embedder: Embedder, now: Callable[[], float] = time.monotonic) -> None:
        self.embedder = embedder
        self._now = now
        self._unstored = Unstored()
        self._refused: dict[bytes, _Failure] = {}
        self._failed: _Failure | None = None
        self._pace: float | None = None
        self.late: PendingCall[dict[str, Vector]] | None = None
        """The last call of ``make`` that a recall waited for only until a given time."""

    def fitting(self, seconds: float, unknown: int) -> int:
        """Return how many texts can probably be embedded in some seconds; ``unknown`` before any call."""
        if seconds <= 0:
            return 0
        return unknown if self._pace is None else int(seconds / max(self._pace, _QUICKEST))

    def make(self, texts: Sequence[str], *, must: bool = False) -> dict[str, Vector]:
        """Return the vectors, of unit length or zeros, of all texts that the embedder does not reject.

        Args:
            texts: The texts.
            must: Whether the caller needs the vectors now: the backoff is ignored, and the first call has a
                timeout of a minute, as the embedder may have to load its model.

        Raises:
            EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: The embedder
                failed, not only with these texts. The next call returns the vectors made before the error.
        """
        cut = {text: embedded_text(text) for text in texts}
        # Long texts that begin alike are embedded once.
        made = self._make(list(dict.fromkeys(cut.values())), must=must)
        return {text: made[short] for text, short in cut.items() if short in made}

    def _make(self, texts: Sequence[str], *, must: bool) -> dict[str, Vector]:
        self._take_late()
        made = self._unstored.get(texts)
        missing = [text for text in texts if text not in made and not self._is_refused(text)]
        if not missing:
            return made
        if not must and self._failed is not None and self._now() < self._failed.until:
            # Cached vectors are of use although the embedder fails.
            if made:
                return made
            raise EmbedderUnavailableError(self._failed.words)
        return made | self._embed_in_halves(missing, must=must)

    def make_one(self, text: str) -> Vector:
        """Return the vector of a text; errors as for ``make``, and also if the embedder rejects the text."""
        self._take_late()
        short = embedded_text(text)
        made = self._unstored.get([short]) or self._embed([short], must=True)
        return made[short]

    def refuses(self, text: str) -> bool:
        """Return whether the embedder rejected a text and its backoff has not ended."""
        return self._is_refused(embedded_text(text))

    def _is_refused(self, short: str) -> bool:
        failure = self._refused.get(digest_of(short))
        return failure is not None and self._now() < failure.until

    def why_refused(self, text: str) -> str:
        """Return the embedder's reason for rejecting a text; empty if it did not."""
        failure = self._refused.get(digest_of(embedded_text(text)))
        return "" if failure is None else failure.words

    @property
    def refusal(self) -> str:
        """The embedder's reason for rejecting the last text that it rejected; empty if it rejected none."""
        return next(reversed(self._refused.values())).words if self._refused else ""

    def stored(self, texts: Sequence[str]) -> None:
        """Drop the vectors of texts, which the index now has."""
        self._unstored.drop(map(embedded_text, texts))

    def _take_late(self) -> None:
        if not isinstance(self.embedder, Patient):
            return
        for texts, answer in self.embedder.late():
            try:
                rows = unit_rows(answer, self.embedder.id, (len(texts), self.embedder.dim))
            except KeepstoneError:
                continue  # The next call for these texts fails the same way, and is reported.
            self._unstored.put(zip(texts, rows, strict=True))

    def _embed_in_halves(self, texts: list[str], *, must: bool, probed: bool = False) -> dict[str, Vector]:
        try:
            return self._embed(texts, must=must)
        except FAILURES as error:
            # The probe is embedded once for a failed batch, and again before a text counts as rejected, as
            # the embedder may have failed since the first probe.
            if not probed or len(texts) == 1:
                self._check_usable(error)
            if len(texts) == 1:
                self._refuse(texts[0], error)
                return {}
        half = len(texts) // 2
        made = self._embed_in_halves(texts[:half], must=must, probed=True)
        return made | self._embed_in_halves(texts[half:], must=must, probed=True)

    def _embed(self, texts: list[str], *, must: bool) -> dict[str, Vector]:
        began = self._now()
        try:
            rows = embed_texts(self.embedder, texts)
        except EmbedderUnavailableError:
            # A first call may load a model for longer than its timeout; the caller cannot go on without the
            # vectors.
            has_loaded = must and isinstance(self.embedder, Patient) and self.embedder.finish_loading()
            self._take_late()
            made = self._unstored.get(texts)
            if len(made) == len(texts):
                return made
            # ``must`` is False here, so that a second timeout is raised.
            if has_loaded:
                return self._embed(texts, must=False)
            raise
        pace = (self._now() - began) / len(texts)
        self._pace = pace if self._pace is None else (self._pace + pace) / 2
        self._failed = None
        for text in texts if self._refused else ():
            self._refused.pop(digest_of(text), None)
        made = dict(zip(texts, rows, strict=True))
        self._unstored.put(made.items())
        return made

    def _check_usable(self, error: Exception) -> None:
        """Raise the error again unless the embedder can embed another text."""
        try:
            embed_texts(self.embedder, [_PROBE])
        except FAILURES:
            self._failed = _Failure.after(self._failed, error, _EMBEDDER_WAIT, self._now())
            # The error keeps its own cause, as Python would show the probe's error as the cause.
            raise error from error.__cause__
        self._failed = None

    def _refuse(self, text: str, error: Exception) -> None:
        key = digest_of(text)
        # The key is removed and added again, so that the newest failure is last: ``refusal`` returns it, and
        # the oldest failure is evicted.
        self._refused[key] = _Failure.after(self._refused.pop(key, None), error, _TEXT_WAIT, self._now())
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
