"""Making the vectors of many texts with an embedder that may fail, refuse a text or answer late."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keepstone.embed.embedder import Embedder, embed_texts, unit_rows
from keepstone.embed.timeout import Patient
from keepstone.embed.unstored import Unstored, digest_of
from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
)
from keepstone.vector import Vector

FAILURES = (EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError)
"""What asking an embedder raises."""

_PROBE = "probe"
"""A text that no embedder refuses: whether it is answered tells a bad text from a broken embedder."""
_EMBEDDER_WAIT, _TEXT_WAIT = (1.0, 60.0), (60.0, 86_400.0)
"""Seconds until a failed embedder, or a refused text, is asked again: at first, and at most."""
_MOST_REFUSED = 10_000
"""Refused texts that are remembered."""


@dataclass(frozen=True, slots=True)
class _Failure:
    """What failed, and from when on it may be tried again."""

    words: str
    wait: float
    until: float

    @classmethod
    def after(
        cls, before: _Failure | None, error: Exception, waits: tuple[float, float], now: float
    ) -> _Failure:
        """Return the failure that follows another one, with twice its wait."""
        wait = waits[0] if before is None else min(2 * before.wait, waits[1])
        return cls(str(error), wait, now + wait)


class Maker:
    """Makes vectors of texts, and asks for none in vain.

    A batch that fails is halved until the texts that the embedder refuses are found; they are left out,
    and asked about again after a minute, then after twice as long each time. An embedder that fails
    altogether is left alone for a second at first. What was made counts as made until it is stored.

    Args:
        embedder: What is asked.
        now: Tells the time in seconds.
    """

    def __init__(self, embedder: Embedder, now: Callable[[], float] = time.monotonic) -> None:
        self.embedder = embedder
        self._now = now
        self._unstored = Unstored()
        self._refused: dict[bytes, _Failure] = {}
        self._failed: _Failure | None = None

    def make(self, texts: Sequence[str], *, must: bool = False) -> dict[str, Vector]:
        """Return the vectors, of unit length or zeros, of those texts that the embedder does not refuse.

        Args:
            texts: What to make vectors of.
            must: Whether the caller cannot go on without: an embedder that failed just now is asked all the
                same, and one that answers for the first time gets a minute, for it may load its model.

        Raises:
            EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError: The embedder
                failed, with other texts, too. What was made before is given by the next call.
        """
        self._take_late()
        made = self._unstored.get(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in made and not self.refuses(text)]
        if not missing:
            return made
        if not must and self._failed is not None and self._now() < self._failed.until:
            if made:
                return made
            raise EmbedderUnavailableError(self._failed.words)
        return made | self._asked(missing, must=must)

    def make_one(self, text: str) -> Vector:
        """Return the vector of a text; errors as for ``make``, and also if the embedder refuses this text."""
        self._take_late()
        made = self._unstored.get([text]) or self._embedded([text], must=True)
        return made[text]

    def refuses(self, text: str) -> bool:
        """Tell whether the embedder refused a text, and it is too early to ask again."""
        failure = self._refused.get(digest_of(text))
        return failure is not None and self._now() < failure.until

    def why_refused(self, text: str) -> str:
        """Return the embedder's reason for refusing a text, empty if it did not."""
        failure = self._refused.get(digest_of(text))
        return "" if failure is None else failure.words

    def stored(self, texts: Sequence[str]) -> None:
        """Forget the vectors of texts, which an index holds now."""
        self._unstored.drop(texts)

    def _take_late(self) -> None:
        if not isinstance(self.embedder, Patient):
            return
        for texts, answer in self.embedder.late():
            try:
                rows = unit_rows(answer, self.embedder.id, (len(texts), self.embedder.dim))
            except KeepstoneError:
                continue  # The next call for these texts fails likewise, and is reported.
            self._unstored.put(zip(texts, rows, strict=True))

    def _asked(self, texts: list[str], *, must: bool, probed: bool = False) -> dict[str, Vector]:
        try:
            return self._embedded(texts, must=must)
        except FAILURES as error:
            if not probed or len(texts) == 1:
                self._check_usable(error)
            if len(texts) == 1:
                self._refuse(texts[0], error)
                return {}
        half = len(texts) // 2
        made = self._asked(texts[:half], must=must, probed=True)
        return made | self._asked(texts[half:], must=must, probed=True)

    def _embedded(self, texts: list[str], *, must: bool) -> dict[str, Vector]:
        try:
            rows = embed_texts(self.embedder, texts)
        except EmbedderUnavailableError:
            has_loaded = must and isinstance(self.embedder, Patient) and self.embedder.finish_loading()
            self._take_late()
            made = self._unstored.get(texts)
            if len(made) == len(texts):
                return made
            if has_loaded:
                return self._embedded(texts, must=False)
            raise
        self._failed = None
        for text in texts if self._refused else ():
            self._refused.pop(digest_of(text), None)
        made = dict(zip(texts, rows, strict=True))
        self._unstored.put(made.items())
        return made

    def _check_usable(self, error: Exception) -> None:
        """Raise the error again unless the embedder answers something else."""
        try:
            embed_texts(self.embedder, [_PROBE])
        except FAILURES:
            self._failed = _Failure.after(self._failed, error, _EMBEDDER_WAIT, self._now())
            raise error from error.__cause__
        self._failed = None

    def _refuse(self, text: str, error: Exception) -> None:
        key = digest_of(text)
        self._refused[key] = _Failure.after(self._refused.pop(key, None), error, _TEXT_WAIT, self._now())
        if len(self._refused) > _MOST_REFUSED:
            del self._refused[next(iter(self._refused))]
