"""The ``Embedder`` protocol, and calls of an embedder: with a timeout, and with its vectors validated.

A third-party embedder is called in a separate thread, so that a hanging call can be abandoned. Calls that
make many vectors take turns.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from keepstone.errors import (
    EmbedderUnavailableError,
    EmbeddingDimMismatchError,
    InvalidEmbeddingError,
    KeepstoneError,
    install_command,
)
from keepstone.filesystem.fork import reset_in_child
from keepstone.vector import Matrix, Space, Vector

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


T = TypeVar("T")

SECONDS, SECONDS_A_TEXT = 5.0, 0.5
"""Timeout in seconds of a call, and additional seconds per document."""
LOADING_SECONDS = 60.0
"""Timeout in seconds of a first call whose result the caller needs: it may load a model."""

_MOMENT = 0.005
"""Seconds that background work waits before it checks again whether it may continue."""

_BUSY = 2.0
"""Seconds after a call within which another call is expected."""


class Embedder(Protocol):
    """Makes vectors of texts, of any length. Must be thread-safe.

    Examples:
        >>> import numpy
        >>> class Lengths:
        ...     id, dim = "lengths", 2
        ...
        ...     def embed_documents(self, texts):
        ...         return numpy.array([[len(text), 1] for text in texts], dtype=numpy.float32)
        ...
        ...     def embed_query(self, text):
        ...         return self.embed_documents([text])[0]
        >>> Lengths().embed_query("pnpm").tolist()
        [4.0, 1.0]
    """

    @property
    def id(self) -> str:
        """The id of the embedder's space. Embedders whose vectors cannot be compared have different ids."""

    @property
    def dim(self) -> int:
        """The dimension of its vectors."""

    def embed_documents(self, texts: list[str]) -> Matrix:
        """Return the vectors of documents: float32 of shape ``(len(texts), dim)``."""

    def embed_query(self, text: str) -> Vector:
        """Return the vector of a query: float32 of shape ``(dim,)``."""


class Embeddings(Protocol):
    """The interface of LangChain's embeddings: vectors as lists of numbers, and no id."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of documents."""

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query."""


EmbedderLike = Embedder | Embeddings | Callable[[list[str]], Any] | str
"""The embedder types that a caller may pass: also a function from texts to vectors, or a name."""


def check_embedder(embedder: Any) -> Space:
    """Return the space of an embedder.

    Raises:
        TypeError: It does not implement the protocol.
        ValueError: Its id is empty or starts with ``given:``, or its dim is not positive.
    """
    name, dim = getattr(embedder, "id", None), getattr(embedder, "dim", None)
    methods = [getattr(embedder, "embed_documents", None), getattr(embedder, "embed_query", None)]
    has_numbers = isinstance(dim, int) and not isinstance(dim, bool)
    if not isinstance(name, str) or not has_numbers or not all(map(callable, methods)):
        raise TypeError(
            f"{embedder!r:.80} is not an embedder: it needs id, dim, embed_documents(texts) and "
            "embed_query(text)"
        )
    space = Space(name, int(dim or 0), getattr(embedder, "probe", ""))
    if not name or space.is_given or space.dim < 1:
        raise ValueError(f"an embedder needs an id of its own and a positive dim, not {name!r:.80} and {dim}")
    return space


def embed_texts(embedder: Embedder, texts: Sequence[str]) -> Matrix:
    """Return an embedder's vectors of documents, normalized to unit length; zeros stay zeros.

    Raises:
        EmbedderUnavailableError: The embedder raised; its error is chained.
        EmbeddingDimMismatchError: The number of vectors or their dimension is wrong.
        InvalidEmbeddingError: It returned NaN, infinity or values that are not numbers.
    """
    clean = [encodable(text) for text in texts]
    made = _call(embedder.id, lambda: embedder.embed_documents(clean))
    return unit_rows(made, embedder.id, (len(clean), embedder.dim))


def embed_query(embedder: Embedder, text: str) -> Vector:
    """Return an embedder's vector of a query, normalized to unit length.

    Raises:
        EmbedderUnavailableError, EmbeddingDimMismatchError: As for ``embed_texts``.
        InvalidEmbeddingError: As for ``embed_texts``, or all numbers are zero.
    """
    clean = encodable(text)
    made = _call(embedder.id, lambda: embedder.embed_query(clean))
    vector: Vector = unit_rows([made], embedder.id, (1, embedder.dim))[0]
    if not vector.any():
        raise InvalidEmbeddingError(
            f"embedder {embedder.id!r:.80} returned only zeros for a query, to which nothing is similar"
        )
    return vector


def encodable(text: str) -> str:
    """Replace lone surrogates by question marks, as neither tokenizers nor JSON accept them."""
    return text.encode("utf-8", "replace").decode("utf-8")


def finite(made: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Return the numbers that an embedder returned, validated.

    Raises:
        EmbeddingDimMismatchError: Their shape is not ``shape``.
        InvalidEmbeddingError: A value is NaN, infinite or not a number, or rows have different lengths.
    """
    import numpy as np

    try:
        numbers = np.asarray(made)
    except (TypeError, ValueError) as error:
        raise InvalidEmbeddingError(f"embedder {name!r:.80} did not return vectors: {error}") from error
    if numbers.shape != shape:
        raise EmbeddingDimMismatchError(
            f"embedder {name!r:.80} returned shape {numbers.shape}, but its dim says {shape}"
        )
    if numbers.dtype.kind not in "fiu" or not np.isfinite(numbers).all():
        raise InvalidEmbeddingError(f"embedder {name!r:.80} returned NaN, infinite or non-numeric values")
    return numbers.astype(np.float64)


def check_package(package: str, embedder: str, extra: str) -> None:
    """Check that a package is installed, without importing it.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
    """
    if find_spec(package) is None:
        raise EmbedderUnavailableError(
            f"embedder {embedder!r:.80} needs the package {package}: {install_command(extra)}"
        )


def _call(name: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except KeepstoneError:
        raise
    except Exception as error:  # An embedder is other people's code.
        raise EmbedderUnavailableError(
            f"embedder {name!r:.80} failed, nothing was written: {type(error).__name__}: {error}"
        ) from error


def unit_rows(made: Any, name: str, shape: tuple[int, int]) -> Matrix:
    """Return the vectors that an embedder returned, normalized to unit length; zeros stay zeros.

    Raises:
        EmbeddingDimMismatchError, InvalidEmbeddingError: As for ``finite``.
    """
    import numpy as np

    matrix = finite(made, name, shape)
    # Rows are scaled first, as the squares of very large or very small numbers overflow or underflow.
    largest = np.abs(matrix).max(axis=1, keepdims=True)
    scaled = matrix / np.where(largest > 0, largest, 1)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths > 0, lengths, 1)).astype(np.float32)


class PendingCall(Generic[T]):
    """A function call in a separate thread. A call that hangs cannot be stopped.

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
        """Return the function's result or raise its error; may be called once.

        Raises:
            queue.Empty: There was no result within ``seconds``.
        """
        answer, error = self._answers.get(timeout=max(0.0, seconds))
        if error is not None:
            raise error
        return answer  # type: ignore[return-value]  # None only if the function returned it.

    def _run(self) -> None:
        try:
            self._answers.put((self._question(), None))
        except BaseException as error:  # noqa: BLE001  ``answer`` raises it.
            self._answers.put((None, _of_call(error)))


def _of_call(error: BaseException) -> BaseException:
    """Return the error to raise for an embedder's error: a cancellation must not cancel the caller."""
    if isinstance(error, Exception | KeyboardInterrupt | SystemExit):
        return error
    failure = EmbedderUnavailableError(f"the embedder cancelled the call: {type(error).__name__}")
    failure.__cause__ = error
    return failure


def ask_within(seconds: float, name: str, question: Callable[[], T]) -> T:
    """Call a function of an embedder with a timeout; ``name`` is for the message.

    Raises:
        EmbedderUnavailableError: The call timed out.
    """
    try:
        return PendingCall(question).answer(seconds)
    except Empty:
        raise _timed_out(name, seconds) from None


class Patient:
    """An embedder with a timeout for each call.

    While a timed-out call is still running, further calls fail at once. The vectors of the timed-out
    call are not lost: ``late`` yields them.
    """

    def __init__(self, embedder: Embedder, seconds: float = SECONDS) -> None:
        self._embedder = embedder
        self._seconds = seconds
        self._dim: int | None = None
        self._has_answered = False
        self._given_up: deque[PendingCall[Any]] = deque()
        self.id = embedder.id
        self.probe: str = getattr(embedder, "probe", "")

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
        # The loop visits each call once, as calls without a result go back to the end.
        for _ in range(len(self._given_up)):
            call = self._given_up.popleft()
            try:
                answer = call.answer(0)
            except Empty:
                self._given_up.append(call)
            except Exception:  # noqa: BLE001, S112  Its caller has left; the next call fails the same way.
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
        # Iterate over a copy, as other threads may change the deque at the same time.
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


class Turns:
    """Serialize embedding: two runs at once, with all cores each, are slower than one after the other.

    After a fork the turn is free in the child: the thread that had it stayed in the parent.
    """

    def __init__(self) -> None:
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Free the turn."""
        self._lock = threading.Lock()
        self._urgent: dict[object, None] = {}
        """One key for each call that waits or runs; adding and removing a key are atomic."""
        self._called = float("-inf")
        self.are_wanted = False
        """Whether background work has more to do."""

    @property
    def is_busy(self) -> bool:
        """Whether a call asked for the turn a moment ago, so that another call may follow."""
        return time.monotonic() - self._called < _BUSY

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """Keep background work from starting inside the ``with``; running work continues."""
        # Keep a reference to this dict, as ``reset`` replaces it in a child process.
        call, urgent = object(), self._urgent
        urgent[call] = None
        self._called = time.monotonic()
        try:
            yield
        finally:
            urgent.pop(call)

    @contextmanager
    def soon(self, seconds: float = -1) -> Iterator[bool]:
        """Take the turn for a call whose caller waits; yield False if it is not free within ``seconds``."""
        lock = self._lock
        with self.ahead():
            mine = lock.acquire(timeout=seconds)
        try:
            yield mine
        finally:
            if mine:
                lock.release()

    @contextmanager
    def later(self) -> Iterator[bool]:
        """Take the turn for background work; False, after a moment, if a call waits for it."""
        if self._urgent:
            time.sleep(_MOMENT)
        lock = self._lock
        mine = not self._urgent and lock.acquire(timeout=_MOMENT)
        try:
            yield mine
        finally:
            if mine:
                lock.release()
