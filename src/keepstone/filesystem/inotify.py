"""Names of the files that change in a folder, as Linux reports them (inotify).

Changes are not reported on other systems, nor on file systems that other machines may change: there the
caller checks every file.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator

# Numbers of Linux's ``sys/inotify.h``.
_MODIFY, _ATTRIB, _MOVED, _CREATE, _DELETE, _ONLYDIR = 0x2, 0x4, 0xC0, 0x100, 0x200, 0x01000000
_WANTED = _MODIFY | _ATTRIB | _MOVED | _CREATE | _DELETE | _ONLYDIR
_LOST = 0x2000 | 0x4000 | 0x8000
"""The folder was unmounted, events overflowed, or the watch ended."""

# ``struct inotify_event`` without the name: watch, mask, cookie, and the length of the name.
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16
_STATFS_BYTES = 256
_LOCAL = frozenset(
    {0xEF53, 0x58465342, 0x9123683E, 0x01021994, 0x794C7630, 0xF2F52010, 0x2FC12FC1, 0xCA451A4E}
)
"""``statfs`` numbers of ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS, ZFS and bcachefs."""


class FolderChanges:
    """A watch on the changes of one folder. Not thread-safe: the caller holds a lock."""

    def __init__(self, path: str) -> None:
        """Watch a folder; raises OSError if the system cannot report its changes."""
        self._fd = -1
        library = ctypes.CDLL(None, use_errno=True)
        if not hasattr(library, "inotify_init1") or not _is_local(library, path):
            raise OSError(f"changes in {path} are not reported here")
        self._fd = _checked(library.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        try:
            _checked(library.inotify_add_watch(self._fd, os.fsencode(path), _WANTED))
        except OSError:
            self.close()
            raise

    def names(self) -> list[str] | None:
        """Return the names of files that changed since the last call; None if some names were lost."""
        found: list[str] = []
        while self._fd >= 0:
            try:
                events = os.read(self._fd, _BUFFER)
            except BlockingIOError:
                return found
            for mask, name in _events(events):
                if mask & _LOST:
                    return None
                found.append(name)
        return None

    def close(self) -> None:
        """Stop watching."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    def __del__(self) -> None:
        self.close()


def _events(data: bytes) -> Iterator[tuple[int, str]]:
    at = 0
    while at < len(data):
        _, mask, _, length = _EVENT.unpack_from(data, at)
        at += _EVENT.size
        # The name is padded with NUL, so that the next event is aligned.
        yield mask, os.fsdecode(data[at : at + length].rstrip(b"\0"))
        at += length


def _is_local(library: ctypes.CDLL, path: str) -> bool:
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    _checked(library.statfs(os.fsencode(path), buffer))
    # The type is the first field of ``struct statfs``; type numbers have 32 bits.
    return struct.unpack_from("I", buffer)[0] in _LOCAL


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
