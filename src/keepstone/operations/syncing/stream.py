"""The files of one device as a compressed stream: the manifest, then exactly the files that it lists."""

from __future__ import annotations

import gzip
import io
import re
import tarfile
import zlib
from pathlib import Path
from typing import IO

from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.operations.syncing.devices import MANIFEST, TEMPORARY, Device
from keepstone.text.display import one_line, size

MOST = 1_000_000_000
"""Default maximum for the total size of a stream's files, in bytes."""
_NAME = re.compile(
    r"(?P<device>devices/[0-9a-f-]{36})/"
    r"(?P<file>[^/.\0][^/\0]*|[^/.\0][^/\0]*/(?:\.archive/)?[^/\0]+)"
)
_MANIFEST_BYTES = 64_000_000
_BESIDE = 8_192
"""Maximum bytes of a file in the stream in addition to its content: long-name headers and padding."""
_END = 32_768
"""Maximum bytes of a stream that belong to no file: the zero blocks and the padding at the end of the tar."""


class _Header(tarfile.TarInfo):
    """The header of a file or of its long name; other headers are refused.

    For other headers, tarfile fills files with holes that take no bytes in the stream, or parses text in more
    than linear time.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        header = super().frombuf(buf, encoding, errors)
        is_name = header.type == tarfile.GNUTYPE_LONGNAME and header.size <= _BESIDE
        if not is_name and header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
            raise _foreign(header)
        return header


class _TooLongError(ValueError):
    """The stream is longer than its manifest says."""


class _Bounded(io.RawIOBase):
    """The unpacked bytes of a stream, up to a limit that can be raised."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._unpacked = gzip.GzipFile(fileobj=stream, mode="rb")
        self.left = _MANIFEST_BYTES + _END

    def read(self, count: int = -1, /) -> bytes:
        raw = self._unpacked.read(count)
        self.left -= len(raw)
        if self.left < 0:
            raise _TooLongError("the other side sent more than its manifest says: nothing of it was taken")
        return raw


def pack(place: Path, device: str, stream: IO[bytes]) -> None:
    """Write the files of a device, the manifest first."""
    folder = place / "devices" / device
    paths = sorted(folder.rglob("*"), key=lambda path: (path != folder / MANIFEST, path))
    with tarfile.open(fileobj=stream, mode="w|gz", format=tarfile.GNU_FORMAT) as archive:
        for path in paths:
            # A link may point to any file on this machine; the other machine must not get such files.
            if path.is_file() and not path.is_symlink():
                archive.add(path, path.relative_to(place).as_posix())


def unpack(stream: IO[bytes], place: Path, most: int = MOST) -> None:
    """Write the files of a stream into a folder.

    Raises:
        ValueError: The stream was not written by ``pack``, its files have more than ``most`` bytes, or they
            differ from its manifest.
    """
    bounded = _Bounded(stream)
    try:
        with (
            Folder(place, create=True) as folder,
            tarfile.open(fileobj=bounded, mode="r|", tarinfo=_Header) as archive,
        ):
            device, listed = None, dict[str, int]()
            for member in archive:
                name = _NAME.fullmatch(member.name)
                if name is None or device not in (None, name["device"]):
                    raise _foreign(member)
                # Remove the file from the list, so that no file is accepted twice.
                if device is not None and listed.pop(name["file"], None) != member.size:
                    raise _foreign(member)
                if device is None and name["file"] != MANIFEST:
                    raise ValueError(
                        "the other side sends no manifest first: install the same keepstone on both machines"
                    )
                _write(folder, archive, member)
                if device is None:
                    device = name["device"]
                    listed = _listed(folder, device, most)
                    # From here on, at most as many bytes are unpacked as the files in the manifest can take.
                    bounded.left = sum(listed.values()) + _BESIDE * len(listed) + _END
    except (tarfile.TarError, EOFError, zlib.error, OSError, RecursionError) as error:
        raise ValueError(f"the other side sent no files that can be read: {error}") from error


def _foreign(member: tarfile.TarInfo) -> ValueError:
    name = f"{one_line(member.name)!r:.80}"
    return ValueError(
        f"{name} is not a file that keepstone sync sends: install the same keepstone on both machines"
    )


def _write(folder: Folder, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
    # Not ``extractall``: the name is checked above, and ``Folder`` follows no link.
    content = archive.extractfile(member)
    if content is not None:
        folder.make_folder(member.name.rpartition("/")[0])
        chunks = iter(lambda: content.read(1 << 20), b"")
        replace_file(folder, member.name, chunks, temporary=TEMPORARY)


def _listed(folder: Folder, device: str, most: int) -> dict[str, int]:
    """Return a manifest's file sizes by name; refuse invalid sizes and a total above ``most``."""
    listed = {
        f"{agent}/{file}": length for (agent, file), (length, _) in Device(folder, device).listed.items()
    }
    # ``True`` is an integer in Python, and a negative size would raise the limit of other files.
    if any(type(length) is not int or length < 0 for length in listed.values()):
        raise ValueError("the other side sent a manifest without the sizes of its files")
    total = sum(listed.values())
    if total > most:
        raise ValueError(
            f"the other side sends {size(total)}, more than {size(most)}: if that is right, give --max "
            f"{total // 1_000_000 + 1}"
        )
    return listed
