"""An embedder that is somebody else's code, asked for a limited time only."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from recollect.embed.base import Embedder
from recollect.errors import EmbedderUnavailableError
from recollect.vector import Matrix, Vector

T = TypeVar("T")

QUERY_SECONDS = 10.0
"""How long a text to search with may take: somebody waits."""
DOCUMENT_SECONDS = 120.0
"""How long some texts to be found may take."""


class Patient:
    """Asks an embedder in a thread of its own, and gives up when it keeps silent for too long.

    What hangs cannot be stopped. Until it answers after all, each further question fails at once.

    Example:
        >>> Patient(embedder).embed_query("which authentication did we choose?")
    """

    def __init__(
        self, embedder: Embedder, *, query: float = QUERY_SECONDS, documents: float = DOCUMENT_SECONDS
    ) -> None:
        self._embedder = embedder
        self._query = query
        self._documents = documents
        self._hanging: threading.Thread | None = None
        self.id = embedder.id

    @property
    def dim(self) -> int:
        """How many numbers its vectors have."""
        return self._ask(lambda: self._embedder.dim, self._query)

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return what the embedder does; EmbedderUnavailableError if it keeps silent for two minutes."""
        return self._ask(lambda: self._embedder.embed_documents(texts), self._documents)

    def embed_query(self, text: str) -> Vector:
        """Return what the embedder does; EmbedderUnavailableError if it keeps silent for ten seconds."""
        return self._ask(lambda: self._embedder.embed_query(text), self._query)

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
