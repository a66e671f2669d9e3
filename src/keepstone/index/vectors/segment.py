"""A generation: one file that holds the vectors of a space in int8, sorted so that a scope is a few ranges.

The file is derived from SQLite, which keeps the vectors in float32; candidates found here are rescored with
those. The file is written whole and never grows; later only a purge writes to it, and only zeros. The file
is read and never mapped: a process that maps a file dies when the file is truncated. All numbers are
little-endian; each part begins at a multiple of 64 bytes:

    header   4096 bytes, JSON with spaces after it: the fields of ``Header``
    vids     int64   the numbers of the vectors
    times    int64   the times of the entries, in microseconds
    sids     int32   the numbers of the sessions
    types    int32   the type of each entry, as a position in ``names``
    names    JSON    the types that entries have
    sums     uint64  the sum of a row's eight-byte words and of its scale's bits
    scales   float32 the factor of each row: a row times its scale is nearly the vector
    rows     int8    the vectors, each as long as the dimension, rounded up to 8

Rows are sorted by session, time and entry. The header has a checksum of the columns before ``sums``, and
SQLite has a checksum of the header. A row is valid if its sum matches. A row of zeros whose scale and sum
are zero is erased.
"""

from __future__ import annotations

import json
import mmap
import os
import weakref
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from keepstone.errors import KeepstoneError
from keepstone.filesystem.atomic import sync_file, write_all
from keepstone.filesystem.confine import Folder, border

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FORMAT = 1
HEADER = 4096
_ALIGNED = 64
_AT_ONCE = 1 << 8
"""Number of rows read and checked at a time."""


@dataclass(frozen=True, slots=True)
class Header:
    """The identity and size of a generation."""

    identity: str
    """The identity of the SQLite file from which the generation was made."""
    space: int
    """The number of the space in that SQLite file."""
    dim: int
    rows: int
    upto: int
    """The highest vector number that the file covers; vectors with higher numbers are not in it."""
    types: int
    """Size in bytes of the types of entries, which follow the columns as JSON."""
    columns: int = 0
    """The checksum of the columns and types."""
    format: int = FORMAT

    @property
    def stride(self) -> int:
        """Return how many bytes a row takes."""
        return -(-self.dim // 8) * 8

    def raw(self) -> bytes:
        """Return the bytes of the header in the file."""
        return json.dumps(asdict(self)).encode().ljust(HEADER)


class ChangedError(OSError):
    """The file of a generation changed after it was opened."""


class Generation:
    """A generation in memory. If it is loaded from a file, rows are read and checked on first use."""

    def __init__(self, memory: mmap.mmap, header: Header, fd: int | None = None) -> None:

        self.header = header
        count, self._memory, self._offset = header.rows, memory, HEADER
        self.vids: NDArray[np.int64] = self._part("<i8", count)
        self.times: NDArray[np.int64] = self._part("<i8", count)
        self.sids: NDArray[np.int32] = self._part("<i4", count)
        self.types: NDArray[np.int32] = self._part("<i4", count)
        self.type_names: NDArray[np.uint8] = self._part("u1", header.types)
        self._columns = self._offset
        self.sums: NDArray[np.uint64] = self._part("<u8", count)
        self._scales = self._offset
        self.scales: NDArray[np.float32] = self._part("<f4", count)
        self._begin = self._offset
        self.rows: NDArray[np.int8] = self._part("i1", count * header.stride).reshape(count, header.stride)
        self.steps = 0.0
        """The largest scale of any row, the quantization step; a cosine is off by at most a few steps."""
        self._fd = fd
        self._missing = bytearray([fd is not None]) * -(-count // _AT_ONCE)
        """One byte for each block of rows: 1 if the block still has to be read, else 0."""
        if fd is not None:
            # The file is closed with the last reference: a query may still use the generation after a newer
            # generation has replaced it.
            weakref.finalize(self, os.close, fd)

    def _part(self, dtype: str, count: int) -> Any:
        import numpy as np

        part = np.frombuffer(self._memory, dtype, count, self._offset)
        self._offset = _aligned(self._offset + part.nbytes)
        return part

    def between(self, begin: int, end: int) -> NDArray[np.int8]:
        """Return the rows from ``begin`` up to, and without, ``end``.

        Raises:
            ChangedError: The rows have changed since the file was opened.
        """
        block, last = begin // _AT_ONCE, -(-end // _AT_ONCE)
        while (block := self._missing.find(1, block, last)) >= 0:
            self._read(block)
        return self.rows[begin:end]

    def at(self, rows: NDArray[np.intp]) -> NDArray[np.int8]:
        """Return a copy of some rows; raises the same errors as ``between``."""
        import numpy as np

        if 1 in self._missing:
            for block in np.unique(rows // _AT_ONCE).tolist():
                if self._missing[block]:
                    self._read(block)
        return self.rows.take(rows, axis=0)

    def _read(self, block: int) -> None:
        at = slice(block * _AT_ONCE, min((block + 1) * _AT_ONCE, self.header.rows))
        if not self._is_read(at, self.rows[at]):
            raise ChangedError("the file of a generation has changed")
        self._missing[block] = 0

    def _is_read(self, at: slice, rows: NDArray[np.int8]) -> bool:
        """Read rows; return whether each of them is in the file and is unchanged or erased."""
        is_complete = self._fd is not None and read_into(
            self._fd, rows.reshape(-1).data.cast("B"), self._begin + at.start * self.header.stride
        )
        return is_complete and bool((sums_of(rows, self.scales[at]) == self.sums[at]).all())

    def names(self) -> list[str]:
        """Return the types that entries have."""
        return list(json.loads(self.type_names.tobytes()))

    def checksum(self) -> int:
        """Return the checksum of all columns that never change."""
        return zlib.crc32(memoryview(self._memory)[HEADER : self._columns])

    def has_columns(self) -> bool:
        """Read all parts except the rows; return whether the columns are unchanged."""
        is_complete = self._fd is not None and read_into(self._fd, memoryview(self._memory)[: self._begin], 0)
        return is_complete and self.header.columns == self.checksum()

    def has_rows(self) -> bool:
        """Return whether every row in the file is unchanged or erased; does not keep the rows."""
        import numpy as np

        count, buffer = self.header.rows, np.empty((_AT_ONCE, self.header.stride), np.int8)
        parts = (slice(at, min(at + _AT_ONCE, count)) for at in range(0, count, _AT_ONCE))
        return all(self._is_read(at, buffer[: at.stop - at.start]) for at in parts)

    def erase(self, rows: Iterable[int]) -> None:
        """Erase rows in the file and sync it."""
        if self._fd is None:
            return
        # The row is erased first, then its scale, then its sum: a process killed before the last step leaves
        # a sum that does not match, and the file is discarded. A row is erased if all three are zero.
        parts = ((self._begin, self.header.stride), (self._scales, 4), (self._columns, 8))
        with border("a file"):
            for row in rows:
                for begin, size in parts:
                    os.pwrite(self._fd, bytes(size), begin + row * size)
        sync_file(self._fd)


def size_of(header: Header) -> int:
    """Return the size in bytes of a generation's file."""
    size = HEADER
    for width in (8, 8, 4, 4):
        size = _aligned(size + width * header.rows)
    size = _aligned(size + header.types)
    for width in (8, 4, header.stride):
        size = _aligned(size + width * header.rows)
    return size


def quantized(vectors: NDArray[np.float32], stride: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return vectors as rows of int8, and the factor of each row."""
    import numpy as np

    # Symmetric quantization with one scale a row: the largest number becomes 127, and zero stays zero. The
    # tiny number avoids a division by zero for a row of zeros.
    scales = np.maximum(np.abs(vectors).max(axis=1), np.finfo(np.float32).tiny) / np.float32(127)
    rows = np.zeros((len(vectors), stride), np.int8)
    rows[:, : vectors.shape[1]] = np.rint(vectors / scales[:, None])
    return rows, scales


def sums_of(rows: NDArray[np.int8], scales: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Return the sums that rows and their scales are checked against."""
    import numpy as np

    words = np.ascontiguousarray(rows).view("<u8").sum(axis=1, dtype=np.uint64)
    bits = np.ascontiguousarray(scales).view("<u4").astype(np.uint64)
    return np.asarray(words + bits, np.uint64)


def create(header: Header) -> Generation:
    """Make a generation of zeros, to be filled."""
    # Anonymous memory is returned to the system as a whole; the file itself is never mapped.
    return Generation(mmap.mmap(-1, size_of(header)), header)


def seal(generation: Generation, fd: int) -> int:
    """Write a filled generation to an empty file and sync it; return its header's checksum."""
    raw = replace(generation.header, columns=generation.checksum()).raw()
    generation._memory[:HEADER] = raw  # noqa: SLF001
    with memoryview(generation._memory) as view:  # noqa: SLF001
        write_all(fd, view)
    sync_file(fd)
    return zlib.crc32(raw)


def load(folder: Folder, name: str, identity: str, checksum: int, *, whole: bool) -> Generation | None:
    """Return the generation in a file; None if it is missing, damaged, or belongs to another index.

    With ``whole`` all rows are checked now; otherwise a damaged row is found when it is first read.
    """
    generation = _opened(folder, name, os.O_RDONLY, identity, checksum)
    if generation is None or not generation.has_columns() or (whole and not generation.has_rows()):
        return None
    generation.steps = float(generation.scales.max(initial=0))
    return generation


def zero(folder: Folder, name: str, identity: str, checksum: int, gone: Sequence[int]) -> bool:
    """Overwrite removed vectors with zeros and sync the file; False if the file cannot be trusted."""
    import numpy as np

    generation = _opened(folder, name, os.O_RDWR, identity, checksum)
    # Check the columns here, as the checksums of rows do not cover them: the columns say which row holds
    # which vector, and damaged ones would erase the wrong rows.
    if generation is None or not generation.has_columns():
        return False
    rows = np.flatnonzero(np.isin(generation.vids, np.array(gone, np.int64)))
    generation.erase(rows.tolist())
    return True


def _opened(folder: Folder, name: str, flags: int, identity: str, checksum: int) -> Generation | None:
    try:
        fd = folder.open(name, flags)
    except (FileNotFoundError, KeepstoneError):
        return None
    header = _header(os.pread(fd, HEADER, 0), identity, checksum)
    # The size of the file is checked before the parts are read; a header that matches its checksum gives the
    # right size.
    if header is None or os.fstat(fd).st_size != size_of(header):
        os.close(fd)
        return None
    return Generation(mmap.mmap(-1, size_of(header)), header, fd)


def read_into(fd: int, buffer: memoryview, at: int) -> bool:
    """Fill a buffer from an offset in a file; return False if the file ends too early."""
    while buffer:
        count = os.preadv(fd, [buffer], at)
        if not count:
            return False
        buffer, at = buffer[count:], at + count
    return True


def _header(raw: bytes, identity: str, checksum: int) -> Header | None:
    # The checksum is compared first, so that JSON of a damaged or foreign file is never parsed.
    if len(raw) != HEADER or zlib.crc32(raw) != checksum:
        return None
    header = Header(**json.loads(raw))
    return header if header.identity == identity and header.format == FORMAT else None


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNED) * _ALIGNED
