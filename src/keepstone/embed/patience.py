"""An embedder that is somebody else's code, asked for a limited time only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from keepstone.embed.base import Embedder
from keepstone.errors import EmbedderUnavailableError
from keepstone.vector import Matrix, Vector

T = TypeVar("T")

SECONDS, SECONDS_A_TEXT = 5.0, 0.5
"""How long an answer may take, and how much longer for each text to be found: somebody may wait."""


class Patient:
    """Asks an embedder in a thread of its own, and gives up when it keeps silent for too long.

    What hangs cannot be stopped. Until it answers after all, each further question fails at once.

    Example:
        >>> Patient(embedder).embed_query("which authentication did we choose?")
    """

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._hanging: threading.Thread | None = None
        self.id = embedder.id

    @property
    def dim(self) -> int:
        """How many numbers its vectors have."""
        return self._ask(lambda: self._embedder.dim, self._seconds)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return what the embedder does; EmbedderUnavailableError if it keeps silent for too long."""
        seconds = self._seconds + SECONDS_A_TEXT * len(texts)
        return self._ask(lambda: self._embedder.embed_documents(texts), seconds)

    def embed_query(self, text: str) -> Vector:
        """Return what the embedder does; EmbedderUnavailableError if it keeps silent for too long."""
        return self._ask(lambda: self._embedder.embed_query(text), self._seconds)

    def _ask(self, question: Callable[[], T], seconds: float) -> T:
        if self._hanging is not None and self._hanging.is_alive():
            raise EmbedderUnavailableError(f"the embedder {self.id!r:.80} still hangs in an earlier call")
        answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        asking = threading.Thread(target=_answer, args=(question, answers), daemon=True)
        asking.start()
        try:
            answer, error = answers.get(timeout=seconds)
        except Empty:
            self._hanging = asking
            raise EmbedderUnavailableError(
                f"the embedder {self.id!r:.80} kept silent for {seconds:g} seconds, and was given up"
            ) from None
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]  # None is an answer only if the embedder gave it.


def _answer(question: Callable[[], T], answers: SimpleQueue[tuple[T | None, BaseException | None]]) -> None:
    try:
        answers.put((question(), None))
    except BaseException as error:  # noqa: BLE001  Whoever asked raises it.
        answers.put((None, error))
