"""Syncing to the disk itself: the only module that calls ``fsync`` or its equivalent.

On macOS ``fsync`` leaves data in the drive's cache, which a power cut loses; ``F_FULLFSYNC`` flushes it.
"""

from __future__ import annotations

import errno
import fcntl
import os

_REFUSED = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS})
"""Errors of a drive that does not support ``F_FULLFSYNC``, such as a network drive."""


def sync_data(fd: int) -> None:
    """Sync a file's bytes and length; raises OSError."""
    if _full_sync(fd):
        return
    # fdatasync syncs bytes and length, but not the file's times.
    if hasattr(os, "fdatasync"):
        os.fdatasync(fd)
    else:
        os.fsync(fd)


def sync_names(fd: int) -> None:
    """Sync a folder's names; raises OSError."""
    if not _full_sync(fd):
        os.fsync(fd)


def _full_sync(fd: int) -> bool:
    """Sync and flush the drive's cache; return False if the system or the drive cannot do so."""
    # Only macOS has this command.
    command = getattr(fcntl, "F_FULLFSYNC", None)
    if command is None:
        return False
    try:
        fcntl.fcntl(fd, command)
    except OSError as error:
        if error.errno in _REFUSED:
            return False
        raise
    return True
