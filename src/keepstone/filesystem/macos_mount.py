"""The type of the file system that holds a path, as macOS reports it (statfs)."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

_BUFFER = 4096
"""Bytes of a buffer; macOS fills 2,168 of them."""
_FLAGS, _NAME, _NAME_END = 64, 72, 88
"""Offsets of the flags and of the type's name in ``struct statfs`` with 64-bit inodes."""
_LOCAL = 0x1000
"""The flag MNT_LOCAL: the data is stored on this machine."""


def file_system(path: Path, library: Any = None) -> tuple[str, bool] | None:
    """Return the type, such as ``apfs`` or ``smbfs``, and whether the data is on this machine.

    Returns None if the path does not exist. ``library`` is the C library.
    """
    library = library or ctypes.CDLL(None, use_errno=True)
    # On Intel the plain name is the older call with 32-bit inodes.
    statfs = getattr(library, "statfs$INODE64", None) or library.statfs
    buffer = ctypes.create_string_buffer(_BUFFER)
    if statfs(os.fsencode(path), buffer) != 0:
        return None
    flags = int.from_bytes(buffer.raw[_FLAGS : _FLAGS + 4], "little")
    name = buffer.raw[_NAME:_NAME_END].partition(b"\0")[0].decode("ascii", "replace")
    return name, bool(flags & _LOCAL)
