"""The log file of one session: append, read, replace. docs/formats/log.md describes the format.

``line`` and ``fold`` interpret lines; ``rewrite`` decides which lines a rewrite keeps.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from keepstone.errors import AccessDeniedError, CorruptLogError, IsAFolderError, PathEscapeError, StoreError
from keepstone.filesystem.atomic import replace_file, sync_file, truncate, write_all
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, PREPARED, TEMPORARY
from keepstone.filesystem.lock import TIMEOUT, Lock
from keepstone.log.fold import Fold
from keepstone.log.kept import keep_part
from keepstone.log.line import MAX_LINE
from keepstone.log.prepared import Prepared, blocks, remove_left
from keepstone.log.scan import LogDescriptor, Scan, behind_last_newline, torn_batch, whole

_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Stat:
    """The state of a log file, which shows whether it has changed."""

    size: int
    mtime: int
    """Last change in nanoseconds since 1970."""
    inode: int


class Log:
    """One session's log in a folder of logs.

    Reading needs no lock and uses separate descriptors. Methods that write must be called inside ``locked``.
    """

    def __init__(self, folder: Folder, name: str, lock: Lock, *, durable: bool = True) -> None:
        self.name = name
        self._temporary = name + TEMPORARY
        self._prepared = name + PREPARED
        plain = self._prepared.removeprefix(f"{ARCHIVE}/")
        self._prepared_beside = plain, f"{ARCHIVE}/{plain}"
        """The file that may be prepared for the log or its archive, which share a lock."""
        self._parent = name.rpartition("/")[0]
        self._folder = folder
        self.lock = lock
        self._durable = durable
        self._fd = -1
        self._inode = 0
        self._mended = -1
        self._fresh = True
        self._closing = False

    @contextmanager
    def locked(self, timeout: float = TIMEOUT) -> Iterator[None]:
        """Hold the session's lock, after removing temporary files of a killed rewrite."""
        try:
            with self.lock.hold(timeout) as marked:
                # A missing log was not being rewritten, unless the lock file has the mark.
                if marked or (self._fresh and self.stat() is not None):
                    self.clear_away()
                self._fresh = False
                self.begin()
                yield
        finally:
            # ``close`` was called while this thread used the log.
            if self._closing:
                self.close_if_idle()

    def begin(self) -> None:
        """Hook that is called first once the lock is held; a plain log does nothing."""

    def clear_away(self, *, in_use: bool = False) -> None:
        """Remove temporary files of a killed rewrite. The caller holds the lock.

        With ``in_use``, also remove a file that another writer is preparing; that writer has to begin again.
        """
        for temporary in (self._temporary, f"{ARCHIVE}/{self._temporary}"):
            with suppress(FileNotFoundError, NotADirectoryError):
                self._folder.unlink(temporary)
        stays = [remove_left(self._folder, name, in_use=in_use) for name in self._prepared_beside]
        self.lock.mark(on=any(stays))

    def prepare(self) -> Prepared:
        """Begin a file that ``replace`` puts in the log's place later. The caller holds the lock."""
        # The mark is set first: a process that is killed before the file exists leaves a mark without a
        # file, never a file that no process would remove.
        self.lock.mark(on=True)
        return Prepared(self._folder, self._prepared)

    def is_prepared(self) -> bool:
        """Return whether a file exists that was prepared to take the log's place."""
        return self._is_there(self._prepared)

    def _is_there(self, name: str) -> bool:
        with suppress(FileNotFoundError, NotADirectoryError):
            self._folder.stat(name)
            return True
        return False

    def stat(self) -> Stat | None:
        """Return the log's state on disk; None if there is no log.

        Raises:
            CorruptLogError: The path is a link, a folder or a device.
        """
        try:
            status = self._folder.stat(self.name)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise self._not_regular()
        return Stat(status.st_size, status.st_mtime_ns, status.st_ino)

    def create(self) -> Stat:
        """Create an empty log if there is none, open it for writing, and return its state."""
        # An editor or a sync service may have put another file in the log's place since it was opened.
        now = self.stat()
        if now is None or self._fd < 0 or now.inode != self._inode:
            now = self._open(os.O_CREAT if now is None else 0)
        return now

    def append(self, lines: Sequence[bytes], *, sync: bool = True) -> tuple[int, Stat]:
        """Append whole lines in one write and sync it; return their offset and the log's new state.

        First, a torn batch at the end is moved away, see ``mend``, and an unfinished line gets its newline.

        Raises:
            StoreError: The disk is full or failed; the log is truncated to its old length.
        """
        size, fd = self.create().size, self._fd
        # A log that still ends where the last write of this process ended needs no check of its end.
        begin, prefix = (size, b"") if size in (0, self._mended) else self._mend(fd, size)
        data = prefix + b"".join(lines)
        # The recorded length is that after the last whole batch. If the record were kept, it could make a
        # torn batch look like one that was cut short by hand.
        if not self._parent:  # Archives have the lock of their log.
            self.lock.record(0)
        try:
            write_all(fd, data)
            if sync and self._durable:
                sync_file(fd)
        except (StoreError, AccessDeniedError) as error:
            self._cut(fd, begin)
            raise StoreError(f"{self._folder.path / self.name}: {error}; nothing was stored") from error
        self._mended = begin + len(data)
        return begin + len(prefix), stat_of(os.fstat(fd))

    def append_batch(self, lines: Sequence[bytes]) -> tuple[int, Stat]:
        """Append lines that are marked as one batch, and record that it is whole; see ``was_shortened``."""
        begin, after = self.append(lines)
        self.lock.record(after.size)
        return begin, after

    def tail(self, size: int) -> bytes:
        """Return the last bytes of a log of ``size`` bytes, directly after an append."""
        length = min(size, CHECKED)
        return os.pread(self._fd, length, size - length)

    @contextmanager
    def reading(self) -> Iterator[LogDescriptor | None]:
        """Yield a descriptor for reading; None if there is no log."""
        fd = self.open_to_read()
        try:
            yield fd
        finally:
            if fd is not None:
                os.close(fd)

    def fold(self) -> Fold:
        """Return all live entries, in order of creation."""
        with self.reading() as fd:
            return Fold() if fd is None else Fold().take(Scan(fd, unfinished=True))

    def truncate(self, size: int = 0) -> None:
        """Truncate the log to ``size`` bytes, if there is one."""
        if self.stat():
            self.create()
            self._cut(self._fd, size)

    def replace(self, lines: Iterable[bytes] | Prepared, mtime: int | None = None) -> Stat:
        """Replace all lines atomically: a killed process leaves the old or the new log.

        ``mtime`` is the modification time to keep, in nanoseconds, if the entries are unchanged. A prepared
        file already has the right time.
        """
        self.lock.mark(on=True)
        try:
            if isinstance(lines, Prepared):
                state = lines.put(self.name)
            else:
                state = replace_file(
                    self._folder, self.name, blocks(lines), temporary=self._temporary, mtime=mtime
                )
        except StoreError as error:
            raise StoreError(f"{error}; the log is unchanged") from error
        except FileNotFoundError as error:
            raise StoreError(
                f"{self._folder.path} was deleted during the write; nothing was saved"
            ) from error
        # Log and archive share the lock and its dirty flag, so the flag stays while a prepared replacement of
        # either file is left.
        self.lock.mark(on=any(map(self._is_there, self._prepared_beside)))
        self.forget()
        return stat_of(state)

    def remove(self) -> None:
        """Remove the log, and its lock file when the lock is released."""
        with suppress(FileNotFoundError):
            self._folder.unlink(self.name)
            self._folder.sync(self._parent)
        self.lock.remove()
        self.forget()

    def close(self) -> None:
        """Close the descriptors once no thread uses them; the next use opens them again."""
        self._closing = True
        self.close_if_idle()

    def close_if_idle(self) -> bool:
        """Close the descriptors unless a thread uses them; return whether that was done."""
        return self.lock.if_free(self._close)

    def forget(self) -> None:
        """Close the descriptor for writing. The caller holds the lock."""
        fd, self._fd, self._inode, self._mended = self._fd, -1, 0, -1
        if fd >= 0:
            os.close(fd)

    def _close(self) -> None:
        self.forget()
        self._closing = False

    def open_to_read(self) -> LogDescriptor | None:
        """Return a descriptor to read from, which the caller closes; None if there is no log."""
        try:
            fd = LogDescriptor(self._folder.open(self.name, os.O_RDONLY))
        except FileNotFoundError:
            return None
        except (IsAFolderError, PathEscapeError) as error:
            raise self._not_regular() from error
        fd.was_shortened = self.was_shortened
        return fd

    def was_shortened(self) -> bool:
        """Return whether the log is shorter than after its last whole batch: lines were removed by hand.

        Returns True for originals: nothing is appended to them, so their batches are never torn.
        """
        if self._parent:
            return True
        stat = self.stat()
        return stat is not None and self.lock.recorded() > stat.size

    def mend(self) -> None:
        """Move a torn batch from the log's end to a file beside the archive. The caller holds the lock.

        A log without a torn batch need not be writable: a rewrite puts another file in its place.
        """
        if self._parent:
            return
        with self.reading() as fd:
            size = 0 if fd is None else os.fstat(fd).st_size
            is_torn = fd is not None and self._torn(fd, size) is not None
        if is_torn:
            size = self.create().size
            self._mend(self._fd, size)

    def _not_regular(self) -> CorruptLogError:
        return CorruptLogError(f"{self._folder.path / self.name} is a folder, link or device: move it away")

    def _open(self, create: int = 0) -> Stat:
        self.forget()
        try:
            # O_APPEND: lines that a program without the lock appends at the same moment are not overwritten.
            fd = self._folder.open(self.name, os.O_RDWR | os.O_APPEND | create)
        except FileNotFoundError:
            if self._parent:
                self._folder.make_folder(self._parent)
            fd = self._folder.open(self.name, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._fd = fd
        now = stat_of(os.fstat(fd))
        if now.size == 0 and self._durable:
            # Sync even if another process created the log: it may have been killed before its own sync.
            self._folder.sync(self._parent)
        self._inode = now.inode
        return now

    def _cut(self, fd: int, size: int) -> None:
        truncate(fd, size)
        sync_file(fd)
        self._mended = -1

    def _mend(self, fd: int, size: int) -> tuple[int, bytes]:
        """Move a torn batch away; return the offset for new lines, and a newline if one is needed."""
        torn = self._torn(fd, size)
        if torn is not None:
            # The batch is copied and synced before it is cut off: whenever the process is killed, the bytes
            # are in one of the files.
            keep_part(self._folder, self.name, fd, torn, size)
            truncate(fd, torn)
            return torn, b""
        return size, b"\n" if behind_last_newline(fd, size) < size else b""

    def _torn(self, fd: int, size: int) -> int | None:
        """Return the offset of a torn batch at the log's end; None if there is no such batch."""
        end = behind_last_newline(fd, size)
        torn = torn_batch(fd, end)
        # The last line of the batch was written, and lacks only its newline.
        if torn is None or whole(os.pread(fd, min(size - end, MAX_LINE), end)) is not None:
            return None
        return None if self.was_shortened() else torn


def stat_of(status: os.stat_result) -> Stat:
    """Return the state of a file from its status."""
    return Stat(status.st_size, status.st_mtime_ns, status.st_ino)


CHECKED = 4096
"""Number of last read bytes whose checksum shows whether a log has only grown."""


def checksum(fd: int, offset: int, length: int = CHECKED) -> int:
    """Return the checksum of up to ``length`` bytes before an offset."""
    length = min(offset, length)
    return zlib.crc32(os.pread(fd, length, offset - length))


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a file of lines was read, to detect later whether the file has only grown after that.

    A rewritten file is recognized by another inode, by the same length with another time, or by the checksum
    of the last bytes read. An edit before these bytes goes unnoticed if the file's length has changed, too.
    """

    stat: Stat
    """The state of the file when it was read."""
    offset: int
    """The number of bytes read."""
    crc: int
    """The checksum of the last ``tail`` bytes before ``offset``."""
    tail: int = CHECKED

    @classmethod
    def read(cls, fd: int, offset: int) -> Extent:
        """Return the extent of a file that was read up to an offset."""
        return cls(stat_of(os.fstat(fd)), offset, checksum(fd, offset))

    def begins(self, fd: int) -> bool:
        """Return whether a file still begins with the part that was read."""
        now, before = stat_of(os.fstat(fd)), self.stat
        # Another file, or the same length with another time, which means an edit in place.
        if now != before and (now.inode != before.inode or now.size == before.size):
            return False
        return now.size >= self.offset and checksum(fd, self.offset, self.tail) == self.crc


def extended(crc: int, fd: int, begin: int, end: int) -> int:
    """Return the checksum of a file up to ``end``, given the checksum up to ``begin``."""
    while begin < end and (block := os.pread(fd, min(end - begin, _BLOCK), begin)):
        crc, begin = zlib.crc32(block, crc), begin + len(block)
    return crc
