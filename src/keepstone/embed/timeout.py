"""Embedders of other people's code, asked in a thread of their own and for a limited time."""

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
"""How long an answer may take, and how much longer for each text to be found: a recall may wait."""
LOADING_SECONDS = 60.0
"""How long the first answer may take where the caller cannot go on without it: it may load a model."""


class PendingCall(Generic[T]):
    """A question that is asked in a thread of its own; what hangs there cannot be stopped.

    Args:
        question: What is asked.
        texts: The texts whose vectors the answer has, if it has any.
    """

    def __init__(self, question: Callable[[], T], texts: Sequence[str] = ()) -> None:
        self.texts = texts
        self.began = time.monotonic()
        self._question = question
        self._answers: SimpleQueue[tuple[T | None, BaseException | None]] = SimpleQueue()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def answer(self, seconds: float) -> T:
        """Return the answer, once, or raise what the question raised.

        Raises:
            queue.Empty: It is not there within some seconds.
        """
        answer, error = self._answers.get(timeout=max(0.0, seconds))
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]  # None is an answer only if the question gave it.

    def _run(self) -> None:
        try:
            self._answers.put((self._question(), None))
        except BaseException as error:  # noqa: BLE001  ``answer`` raises it.
            self._answers.put((None, error))


def ask_within(seconds: float, name: str, question: Callable[[], T]) -> T:
    """Return the answer of a question to the embedder of this name.

    Raises:
        EmbedderUnavailableError: It did not come within some seconds.
    """
    try:
        return PendingCall(question).answer(seconds)
    except Empty:
        raise _timed_out(name, seconds) from None


class Patient:
    """An embedder that is given up when an answer takes too long.

    Until the call that hangs comes back, each further question fails at once. The vectors that it
    brings after all are not lost: ``late`` gives them.
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
        """How many numbers its vectors have."""
        if self._dim is None:
            self._dim = self._ask(lambda: self._embedder.dim, self._seconds)
        return self._dim

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return what the embedder does; EmbedderUnavailableError if that takes too long."""
        seconds = self._seconds + SECONDS_A_TEXT * len(texts)
        made = self._ask(lambda: self._embedder.embed_documents(texts), seconds, texts)
        self._has_answered = True
        return made

    def embed_query(self, text: str) -> Vector:
        """Return what the embedder does; EmbedderUnavailableError if that takes too long."""
        made = self._ask(lambda: self._embedder.embed_query(text), self._seconds)
        self._has_answered = True
        return made

    def late(self) -> Iterator[tuple[Sequence[str], Any]]:
        """Yield what ``embed_documents`` answered after it was given up, with the texts, each once."""
        for _ in range(len(self._given_up)):
            call = self._given_up.popleft()
            try:
                answer = call.answer(0)
            except Empty:
                self._given_up.append(call)
            except Exception:  # noqa: BLE001, S112  Nobody waits for it any more; the next call fails likewise.
                continue
            else:
                if call.texts:
                    self._has_answered = True
                    yield call.texts, answer

    def finish_loading(self) -> bool:
        """Wait for a call that was given up before any vector was made; True once it has come back."""
        if self._has_answered or not self._given_up:
            return False
        call = self._given_up[0]
        call.thread.join(max(0.0, call.began + LOADING_SECONDS - time.monotonic()))
        return not call.thread.is_alive()

    def _ask(self, question: Callable[[], T], seconds: float, texts: Sequence[str] = ()) -> T:
        if any(call.thread.is_alive() for call in list(self._given_up)):
            raise EmbedderUnavailableError(f"the embedder {self.id!r:.80} still hangs in an earlier call")
        call = PendingCall(question, texts)
        try:
            return call.answer(seconds)
        except Empty:
            self._given_up.append(call)
            raise _timed_out(self.id, seconds) from None


def _timed_out(name: str, seconds: float) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(f"the embedder {name!r:.80} timed out after {seconds:g} s")
