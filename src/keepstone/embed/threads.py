"""Threads of NumPy's matrix multiplication: one, except for bulk work on an idle machine.

Several threads wait for each other in busy loops: on a busy machine one text then takes several times
the processor time, and finishes later. NumPy's OpenBLAS has one number of threads for the whole
process. OpenBLAS is called directly: ``threadpoolctl`` lets only one thread of a process set the
number, and that thread may be the user's.
"""

from __future__ import annotations

import ctypes
import os
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from pathlib import Path
from threading import Lock

from keepstone.filesystem.fork import hold_over_forks, reset_in_child

_SPELLINGS = ("scipy_{}64_", "scipy_{}", "{}64_", "{}")
"""Patterns of OpenBLAS's function names, in NumPy's wheels and in other builds."""
_PTHREADS = 1
"""The result of ``openblas_get_parallel`` if the whole process shares the threads."""


class Blas:
    """The OpenBLAS that NumPy uses. Without a process-wide OpenBLAS the number is always 1."""

    def __init__(self) -> None:
        self._functions: tuple[ctypes._NamedFuncPointer, ...] | None = _functions()

    @property
    def threads(self) -> int:
        """How many threads a multiplication uses."""
        return int(self._functions[0]()) if self._functions else 1

    @threads.setter
    def threads(self, number: int) -> None:
        if self._functions:
            self._functions[1](number)


def _functions() -> tuple[ctypes._NamedFuncPointer, ctypes._NamedFuncPointer] | None:
    """Return the functions that get and set the number of threads; None if they do not exist."""
    for path in _libraries():
        library = ctypes.CDLL(path)
        for spelling in _SPELLINGS:
            names = [
                spelling.format(f"openblas_{function}")
                for function in ("get_parallel", "get_num_threads", "set_num_threads")
            ]
            if all(hasattr(library, name) for name in names):
                parallel, get, change = (library[name] for name in names)
                return (get, change) if parallel() == _PTHREADS else None
    return None


def _libraries() -> list[str]:
    """Return the files that give access to OpenBLAS: NumPy's extension, then the DLL in its Windows wheel."""
    numpy, extension = find_spec("numpy"), find_spec("numpy._core._multiarray_umath")
    if not (numpy and numpy.origin and extension and extension.origin):
        return []
    beside = Path(numpy.origin).parent.with_name("numpy.libs")
    return [extension.origin, *map(str, beside.glob("*openblas*.dll"))]


class OneThread:
    """A context in which OpenBLAS uses one thread; the last thread to leave it restores the number.

    Safe to enter from several threads at once.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._blas: Blas | None = None
        self._before = 1
        # The lock is held during a fork, so that no child starts while the number is being changed.
        hold_over_forks(self._lock)
        reset_in_child(self)

    def __enter__(self) -> None:
        with self._lock:
            # OpenBLAS is looked up at the first use, as this loads libraries.
            if self._blas is None:
                self._blas = Blas()
            # Only the first thread inside sees the number to restore; other threads see 1.
            if not self._inside:
                self._before = self._blas.threads
                self._blas.threads = 1
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._blas and not self._inside:
                self._blas.threads = self._before

    def reset(self) -> None:
        """Restore the number in a child process, which has none of the threads that were inside."""
        if self._blas and self._inside:
            self._inside = 0
            self._blas.threads = self._before


_ONE_THREAD = OneThread()


def fitting_threads(*, is_bulk: bool) -> AbstractContextManager[None]:
    """Return a context for multiplying matrices: with one thread, or with all for bulk work when idle."""
    return nullcontext() if is_bulk and _is_idle() else _ONE_THREAD


def _is_idle() -> bool:
    """Return whether at most half of the processors are in use; False if the system does not report it."""
    try:
        return os.getloadavg()[0] <= (os.cpu_count() or 1) / 2
    except (AttributeError, OSError):
        return False
