"""HNSW graphs over rows of a generation: caches that may be missing.

A graph covers the rows of one session or of all. SQLite records the graph's checksum and its
generation; native code only reads bytes that match the checksum.
"""

from __future__ import annotations

import os
import sys
import threading
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import sync_file, write_all
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.fork import hold_over_forks
from keepstone.index.vectors.scope_filter import Range
from keepstone.index.vectors.segment import Generation, read_into

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from usearch.index import Index

# The parameters M, efConstruction and ef of HNSW (Malkov and Yashunin, arXiv 1603.09320).
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 128
"""Neighbours of each row; candidates examined to add a row; candidates examined in a search."""
_STEP = 2000
"""Number of rows added in one step, which takes less than a second."""
_QUICK = 4 << 20
"""Maximum size in bytes of a graph that a query waits for; larger graphs load in the background."""
_PAGE = 4096
_LOWEST = 19
"""The lowest scheduling priority; on Linux each thread has its own."""


class Graph:
    """A graph that can be searched."""

    def __init__(self, index: Index, raw: bytearray | None = None) -> None:
        self.index = index
        self._raw = raw
        """The bytes that the graph is a view of."""

    def memory(self) -> int:
        """Return how many bytes of memory the graph takes."""
        return 0 if self._raw is None else len(self._raw)

    def nearest(self, row: NDArray[np.int8], count: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Return the approximately nearest rows to a vector, the nearest first, with their cosines."""
        import numpy as np

        found = self.index.search(row, count, threads=1)
        return np.asarray(found.keys).astype(np.intp), 1 - np.asarray(found.distances, np.float32)


class Growing:
    """A graph that is being built: call ``step`` until it returns True.

    ``begun`` is a saved graph of the rows before ``rows``, if there is one.
    """

    def __init__(
        self, generation: Generation, rows: Range, dead: NDArray[np.intp], begun: Graph | None = None
    ) -> None:
        self._generation = generation
        self._dead = dead
        self.done, self._end = rows
        self._index = begun.index if begun else _empty(generation.header.stride)

    def step(self) -> bool:
        """Add some rows; return True once the graph has all rows."""
        import numpy as np

        end = min(self.done + _STEP, self._end)
        live = np.setdiff1d(np.arange(self.done, end), self._dead, assume_unique=True)
        rows = self._generation.between(self.done, end)[live - self.done]
        # Rows added at the same time do not find each other; in a small graph some would be unreachable.
        is_alone = len(self._index) == 0
        with_idle_processors(
            lambda count: self._index.add(live.astype(np.uint64), rows, threads=1 if is_alone else count)
        )
        self.done = end
        return end == self._end

    def save(self, fd: int) -> int:
        """Write the graph to an empty file, sync it, and return its checksum."""
        raw = self._index.save() or b""
        with memoryview(raw) as view:  # A copy would take as much memory as the graph.
            write_all(fd, view)
        sync_file(fd)
        return checksum_of(raw)


def is_large(folder: Folder, name: str) -> bool:
    """Return whether a graph is so large that no query should wait for it to be read."""
    try:
        return folder.stat(name).st_size > _QUICK
    except (FileNotFoundError, KeepstoneError):
        return False


def load(folder: Folder, name: str, stride: int, checksum: int, *, grows: bool = False) -> Graph | None:
    """Return the graph in a file, None if the file is missing or has another checksum.

    With ``grows``, rows can be added to the graph; loading it then briefly takes twice the memory.
    """
    try:
        fd = folder.open(name, os.O_RDONLY)
    except (FileNotFoundError, KeepstoneError):
        return None
    try:
        # A copy, so that later changes of the file do not reach native code.
        raw = bytearray(os.fstat(fd).st_size)
        is_read = read_into(fd, memoryview(raw), 0)
    finally:
        os.close(fd)
    if not raw or not is_read or checksum_of(raw) != checksum:
        return None
    index = _empty(stride)
    if grows:
        index.load(memoryview(raw))
        return Graph(index)
    index.view(memoryview(raw))
    return Graph(index, raw)


_importing = threading.RLock()
"""Held while the library is imported: a fork during the import would leave the child waiting forever."""
hold_over_forks(_importing)


def _empty(stride: int) -> Index:
    with _importing:
        from usearch.index import Index

    return Index(
        ndim=stride,
        metric="cos",
        dtype="i8",
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
        # Rows are never looked up or removed by their keys, so the library need not keep a table of them.
        enable_key_lookups=False,
    )


def with_idle_processors(work: Callable[[int], object]) -> None:
    """Call a function with a number of threads, in a thread of the lowest priority.

    Threads that the function starts inherit this priority. Where only processes have priorities,
    the number leaves one processor free instead.
    """
    count = os.cpu_count() or 1
    if sys.platform != "linux":
        work(max(1, count - 1))
        return
    failed: list[BaseException] = []

    def run() -> None:
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _LOWEST)
            work(count)
        except BaseException as error:  # noqa: BLE001  The caller gets it.
            failed.append(error)

    thread = threading.Thread(target=run, name="keepstone-graph", daemon=True)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def checksum_of(raw: bytes | bytearray) -> int:
    """Return a checksum that takes no longer than reading.

    It is a CRC: first over one sum for each whole page, which adds up the page's 64-bit words, then over the
    bytes after the last whole page.
    """
    import numpy as np

    whole = len(raw) // _PAGE * _PAGE
    pages = np.frombuffer(raw, "<u8", whole // 8).reshape(-1, _PAGE // 8)
    sums = pages.sum(axis=1, dtype=np.uint64).tobytes()
    return zlib.crc32(raw[whole:], zlib.crc32(sums))
