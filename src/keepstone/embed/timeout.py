"""Timeouts for third-party embedders, which are called in threads of their own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

from keepstone.embed.embedder import Embedder
from keepstone.errors import EmbedderUnavailableError
from keepstone.vector import Matrix, Vector

T = TypeVar("T")

SECONDS, SECONDS_A_TEXT = 5.0, 0.5
"""Timeout in seconds of a call, and additional seconds per document."""
LOADING_SECONDS = 60.0
"""Timeout in seconds of a first call whose result the caller needs: it may load a model."""


class PendingCall(Generic[T]):
    """A function call in a thread of its own. A call that hangs cannot be stopped.

    Args:
        question: The function.
        texts: The texts whose vectors it returns, if any.
    """

    def __init__(self, question: Callable[[], T], texts: Sequence[str] = ()) -> None:
        self.texts = texts
        self.began = time.monotonic()
        self._question = question
        self._answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def answer(self, seconds: float) -> T:
        """Return the result, once, or raise the function's error.

        Raises:
            queue.Empty: There is no result within ``seconds``.
        """
        answer, error = self._answers.get(timeout=max(0.0, seconds))
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]  # None only if the function returned it.

    def _run(self) -> None:
        try:
            self._answers.put((self._question(), None))
        except BaseException as error:  # noqa: BLE001  ``answer`` raises it.
            self._answers.put((None, error))


def ask_within(seconds: float, name: str, question: Callable[[], T]) -> T:
    """Call a function of the embedder of this name, with a timeout.

    Raises:
        EmbedderUnavailableError: The call timed out.
    """
    try:
        return PendingCall(question).answer(seconds)
    except Empty:
        raise _timed_out(name, seconds) from None


class Patient:
    """An embedder with a timeout for each call.

    While a timed-out call is still running, further calls fail at once. Its vectors are not lost:
    ``late`` yields them.
    """

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._dim: int | None = None
        self._has_answered = False
        self._given_up: deque[PendingCall[Any]] = deque()
        self.id = embedder.id

    @property
    def dim(self) -> int:
        """The dimension of its vectors."""
        if self._dim is None:
            self._dim = self._ask(lambda: self._embedder.dim, self._seconds)
        return self._dim

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of documents; EmbedderUnavailableError after a timeout."""
        seconds = self._seconds + SECONDS_A_TEXT * len(texts)
        made = self._ask(lambda: self._embedder.embed_documents(texts), seconds, texts)
        self._has_answered = True
        return made

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query; EmbedderUnavailableError after a timeout."""
        made = self._ask(lambda: self._embedder.embed_query(text), self._seconds)
        self._has_answered = True
        return made

    def late(self) -> Iterator[tuple[Sequence[str], Any]]:
        """Yield the results of timed-out ``embed_documents`` calls with their texts, each once."""
        for _ in range(len(self._given_up)):
            call = self._given_up.popleft()
            try:
                answer = call.answer(0)
            except Empty:
                self._given_up.append(call)
            except Exception:  # noqa: BLE001, S112  Its caller is gone; the next call fails the same way.
                continue
            else:
                if call.texts:
                    self._has_answered = True
                    yield call.texts, answer

    def finish_loading(self) -> bool:
        """Wait for a timed-out call that may be loading a model; True once it has returned."""
        if self._has_answered or not self._given_up:
            return False
        call = self._given_up[0]
        call.thread.join(max(0.0, call.began + LOADING_SECONDS - time.monotonic()))
        return not call.thread.is_alive()

    def _ask(self, question: Callable[[], T], seconds: float, texts: Sequence[str] = ()) -> T:
        if any(call.thread.is_alive() for call in list(self._given_up)):
            raise EmbedderUnavailableError(f"embedder {self.id!r:.80} still hangs in an earlier call")
        call = PendingCall(question, texts)
        try:
            return call.answer(seconds)
        except Empty:
            self._given_up.append(call)
            raise _timed_out(self.id, seconds) from None


def _timed_out(name: str, seconds: float) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(f"embedder {name!r:.80} timed out after {seconds:g} s")
