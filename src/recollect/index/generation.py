"""A generation: one file that holds the vectors of a space in int8, sorted so that a scope is a few ranges.

It is derived from SQLite, which keeps the vectors in float32 and has the last word on whatever is found
here. All processes map the same file. It is written whole and never grows; only a purge writes to it again,
zeros. All numbers are little-endian; each part begins at a multiple of 64 bytes:

    header   4096 bytes, JSON with spaces after it: what ``Header`` has
    vids     int64   the numbers of the vectors
    times    int64   of the entries, in microseconds
    sids     int32   the numbers of the sessions
    types    int32   which of the header's types each entry has
    sums     uint64  the sum of a row's eight-byte words and of its scale's bits
    scales   float32 a row times its scale is nearly the vector
    rows     int8    each as long as the dimension, rounded up to 8

Rows are sorted by session, time and entry. The header has a checksum of the columns before ``sums``, and
SQLite one of the header. A row is right when its sum is; one of zeros, scale and sum included, is erased.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from recollect.confine import Folder
from recollect.errors import RecollectError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
HEADER = 4096
_ALIGNED = 64
_AT_ONCE = 1 << 16
"""Rows that are checked at a time."""


@dataclass(frozen=True, slots=True)
class Header:
    """What a generation is of."""

    identity: str
    """Of the SQLite file that it was made from."""
    space: int
    """The number of the space there."""
    dim: int
    rows: int
    upto: int
    """The vectors with numbers up to this one are in it, later ones are not."""
    types: int
    """How many bytes the types of entries take, as JSON, after the columns."""
    columns: int = 0
    """The checksum of the columns and types."""
    format: int = FORMAT

    @property
    def stride(self) -> int:
        """Return how many bytes a row takes."""
        return -(-self.dim // 8) * 8

    def raw(self) -> bytes:
        """Return the header as it stands in the file."""
        return json.dumps(asdict(self)).encode().ljust(HEADER)


class Generation:
    """A generation that is mapped. Its arrays are views of the file."""

    def __init__(self, mapped: mmap.mmap, header: Header) -> None:

        self.header = header
        count, self._mapped, self._offset = header.rows, mapped, HEADER
        self.vids: NDArray[np.int64] = self._part("<i8", count)
        self.times: NDArray[np.int64] = self._part("<i8", count)
        self.sids: NDArray[np.int32] = self._part("<i4", count)
        self.types: NDArray[np.int32] = self._part("<i4", count)
        self.type_names: NDArray[np.uint8] = self._part("u1", header.types)
        self._columns = self._offset
        self.sums: NDArray[np.uint64] = self._part("<u8", count)
        self.scales: NDArray[np.float32] = self._part("<f4", count)
        self.rows: NDArray[np.int8] = self._part("i1", count * header.stride).reshape(count, header.stride)
        self.steps = 0.0
        """The largest scale: no cosine is wrong by more than a few of these."""

    def _part(self, dtype: str, count: int) -> Any:
        import numpy as np

        part = np.frombuffer(self._mapped, dtype, count, self._offset)
        self._offset = _aligned(self._offset + part.nbytes)
        return part

    def names(self) -> list[str]:
        """Return the types that entries have."""
        return list(json.loads(self.type_names.tobytes()))

    def checksum(self) -> int:
        """Return the checksum of all columns that never change."""
        return zlib.crc32(memoryview(self._mapped)[HEADER : self._columns])

    def is_sound(self) -> bool:
        """Tell whether every byte is as it was written, or erased."""
        return self.header.columns == self.checksum() and all(
            bool((sums_of(self.rows[at : at + _AT_ONCE], self.scales[at : at + _AT_ONCE]) == sums).all())
            for at in range(0, self.header.rows, _AT_ONCE)
            for sums in (self.sums[at : at + _AT_ONCE],)
        )

    def is_whole(self) -> bool:
        """Tell whether the file is as long as when it was mapped: reading on would end the process."""
        return self._mapped.size() == len(self._mapped)

    def erase(self, rows: NDArray[np.intp]) -> None:
        """Put zeros in the place of rows. The file must be mapped for writing."""
        self.rows[rows] = 0
        self.scales[rows] = 0
        self.sums[rows] = 0

    def sync(self) -> None:
        """Return once the file is on the disk."""
        self._mapped.flush()

    def let_go(self) -> None:
        """Let the system take the memory of pages back that were only read for a check."""
        if hasattr(self._mapped, "madvise"):
            self._mapped.madvise(mmap.MADV_DONTNEED)


def size_of(header: Header) -> int:
    """Return how many bytes the file of a generation has."""
    size = HEADER
    for each in (8, 8, 4, 4):
        size = _aligned(size + each * header.rows)
    size = _aligned(size + header.types)
    for each in (8, 4, header.stride):
        size = _aligned(size + each * header.rows)
    return size


def quantized(vectors: NDArray[np.float32], stride: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return vectors as rows of int8, and what each row must be multiplied with."""
    import numpy as np

    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / np.float32(127)
    rows = np.zeros((len(vectors), stride), np.int8)
    rows[:, : vectors.shape[1]] = np.rint(vectors / scales[:, None])
    return rows, scales


def sums_of(rows: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the sums by which rows are known to be right."""
    import numpy as np

    words = np.ascontiguousarray(rows).view("<u8").sum(axis=1, dtype=np.uint64)
    bits = np.ascontiguousarray(scales).view("<u4").astype(np.uint64)
    return np.asarray(words + bits, np.uint64)


def create(folder: Folder | None, name: str, header: Header) -> Generation:
    """Make a generation of zeros, to be filled; without a folder it is in memory only."""
    if folder is None:
        return Generation(mmap.mmap(-1, size_of(header)), header)
    fd = folder.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    try:
        try:
            _reserve(fd, size_of(header))
        except OSError:
            folder.unlink(name)
            raise
        return Generation(mmap.mmap(fd, 0), header)
    finally:
        os.close(fd)


def _reserve(fd: int, size: int) -> None:
    """Give a file its length and room on the disk: writing to a map without would end the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(fd, 0, size)
    else:
        os.ftruncate(fd, size)


def seal(generation: Generation, header: Header) -> int:
    """Write the header of a generation that is filled, and sync it; return the header's checksum."""
    raw = header.raw()
    generation._mapped[:HEADER] = raw  # noqa: SLF001
    generation.sync()
    return zlib.crc32(raw)


def load(
    folder: Folder, name: str, identity: str, checksum: int, *, writable: bool = False
) -> Generation | None:
    """Return the generation in a file; None if it is missing, damaged, or not the one that is meant."""
    try:
        fd = folder.open(name, os.O_RDWR if writable else os.O_RDONLY)
    except (FileNotFoundError, RecollectError):
        return None
    try:
        header = _header(os.read(fd, HEADER), identity, checksum)
        if header is None or os.fstat(fd).st_size != size_of(header):
            return None
        access = mmap.ACCESS_WRITE if writable else mmap.ACCESS_READ
        generation = Generation(mmap.mmap(fd, 0, access=access), header)
    finally:
        os.close(fd)
    if not writable and not generation.is_sound():
        return None
    generation.steps = float(generation.scales.max(initial=0))
    generation.let_go()
    return generation


def _header(raw: bytes, identity: str, checksum: int) -> Header | None:
    if len(raw) != HEADER or zlib.crc32(raw) != checksum:
        return None
    header = Header(**json.loads(raw))
    return header if header.identity == identity and header.format == FORMAT else None


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED
