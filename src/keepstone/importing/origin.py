"""The file, folder or zip archive of a source. Nothing is unpacked, and no link is followed."""

from __future__ import annotations

import io
import os
import stat
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Self

from keepstone.errors import KeepstoneError, SourceError
from keepstone.filesystem.confine import Folder, check_path
from keepstone.importing.item import Unread
from keepstone.log.line import MAX_LINE, format_time

MOST_MEMBERS = 200_000
"""Maximum number of members of an archive."""
_MOST_DIRECTORY = 64 << 20
"""Maximum size of an archive's central directory, in bytes."""
LARGEST_MEMBER = 16 << 30
"""Maximum unpacked size of an archive's member, in bytes."""
_SUSPECT = 8 << 20
"""Unpacked size, in bytes, above which a member's compression ratio is checked."""
_MOST_RATIO = 250
"""Maximum compression ratio. Texts reach a ratio of about 10; only runs of one byte exceed this maximum."""
_DEEPEST = 40
"""Maximum depth of folders."""


class Origin:
    """A source on the disk; a ``with`` statement closes it.

    Raises:
        SourceError: It is missing, neither file nor folder, or an archive that is damaged or hostile.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.refused: list[Unread] = []
        """Files that are not read, such as links; complete once ``names`` has returned."""
        try:
            status = path.stat()
            self.is_zip = stat.S_ISREG(status.st_mode) and _is_zip(path)
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error
        self.is_folder = stat.S_ISDIR(status.st_mode)
        if not (self.is_folder or stat.S_ISREG(status.st_mode)):
            raise SourceError(f"{path} is neither a file nor a folder")
        self.mtime = format_time(datetime.fromtimestamp(status.st_mtime, UTC))
        self._closing = ExitStack()
        if self.is_zip:
            # If a check refuses the archive, the caller has not entered ``with`` yet, so its file is closed
            # here.
            with ExitStack() as opened:
                self._archive = _opened(path, opened.enter_context(_ArchiveFile(path)))
                self._members = _checked(path, self._archive.infolist())
                self._closing = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.close()

    @property
    def name(self) -> str:
        """The name of the file without its extension, or of the folder."""
        # The path may be ``.`` or end in ``..``, which are not names.
        path = self.path.resolve()
        return (path.name if self.is_folder else path.stem) or "imported"

    def names(self, *extensions: str) -> list[str]:
        """Return the sorted relative paths of its files, with ``/``; for a single file, its name.

        ``extensions`` filter the files of folders and archives, but not a single file.
        """
        self.refused.clear()
        if self.is_folder:
            with Folder(self.path.resolve()) as folder:
                found = list(self._below(folder, ""))
        elif self.is_zip:
            found = list(self._members)
        else:
            return [self.path.name]
        return sorted(name for name in found if not extensions or name.lower().endswith(extensions))

    def near(self, name: str) -> list[Path]:
        """Return the files with a name in the folder and its direct subfolders, without following links."""
        # The pattern ``*/`` also finds links to folders, which may lead out of the source.
        folders = [self.path, *sorted(self.path.glob("*/"))]
        places = [folder / name for folder in folders if folder == self.path or not folder.is_symlink()]
        return [path for path in places if path.is_file() and not path.is_symlink()]

    def _below(self, folder: Folder, sub: str) -> Iterator[str]:
        if sub.count("/") > _DEEPEST:
            self.refused.append(Unread(sub, f"more than {_DEEPEST} folders deep"))
            return
        # The list lets the folder close before its subfolders are opened, so that depth costs no descriptors.
        for entry in list(folder.scan(sub)):
            name = f"{sub}/{entry.name}" if sub else entry.name
            status = folder.stat(name)
            if stat.S_ISDIR(status.st_mode):
                # Hidden folders such as ``.git``, ``.obsidian`` and ``.trash`` hold a tool's own files, or
                # deleted notes.
                if not entry.name.startswith("."):
                    yield from self._below(folder, name)
            elif stat.S_ISREG(status.st_mode):
                yield name
            elif stat.S_ISLNK(status.st_mode):
                self.refused.append(Unread(name, "is a link, and links are not followed"))

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """Open one of its files for reading bytes."""
        try:
            if self.is_folder:
                with (
                    Folder(self.path.resolve()) as folder,
                    os.fdopen(folder.open(name, os.O_RDONLY), "rb") as file,
                ):
                    yield file
            elif self.is_zip:
                # Read from the archive that was checked, so that its directory is parsed only once.
                with self._archive.open(self._members[name]) as member:
                    yield member
            else:
                with self.path.open("rb") as file:
                    yield file
        # Members are unpacked while the caller reads, so damage shows inside of the caller's ``with`` block.
        # zipfile raises RuntimeError for an encrypted member, its subclass NotImplementedError for an unknown
        # compression method, and passes on errors of zlib.
        except (OSError, zipfile.BadZipFile, EOFError, RuntimeError, zlib.error) as error:
            if isinstance(error, KeepstoneError):
                raise SourceError(str(error)) from error
            raise SourceError(f"{name} cannot be read: {error}") from error

    def modified(self, name: str) -> str:
        """Return the modification time of a file, or of the archive that holds it."""
        if self.is_folder:
            status = (self.path / name).lstat()
            return format_time(datetime.fromtimestamp(status.st_mtime, UTC))
        return self.mtime

    def read(self, name: str, limit: int = MAX_LINE) -> bytes:
        """Return a whole file of at most ``limit`` bytes.

        Raises:
            ValueError: The file is longer.
        """
        # Reading one byte more than allowed shows whether the file is longer; a stated size could be wrong.
        with self.open(name) as file:
            raw = file.read(limit + 1)
        if len(raw) > limit:
            raise ValueError(f"has more than {limit:,} bytes")
        return raw


def _is_zip(path: Path) -> bool:
    # Do not use zipfile.is_zipfile: it searches the last 64 KiB for the end of a directory, and any other
    # file may have the same bytes there. The second signature is that of an archive without members.
    with path.open("rb") as file:
        return file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")


class _ArchiveFile(io.FileIO):
    """A zip file that refuses to read a large directory, as ``ZipFile`` makes an object for each member."""

    is_checked = False
    """Whether the directory has been read; from then on reads are not limited."""

    def read(self, size: int | None = -1, /) -> bytes:
        if self.is_checked:
            return super().read(size) or b""
        if size is not None and size > _MOST_DIRECTORY:
            raise SourceError(
                f"{self.name} has a directory of {size:,} bytes; at most {_MOST_DIRECTORY:,} are read: "
                "unpack it, then import the folder"
            )
        data = super().read(size) or b""
        # Count the members: the number in the archive may be wrong, and ``ZipFile`` ignores it.
        members = data.count(b"PK\x01\x02")
        if members > MOST_MEMBERS:
            raise SourceError(
                f"{self.name} has {members:,} members; at most {MOST_MEMBERS:,} are read: "
                "unpack it, then import the folder"
            )
        return data


def _opened(path: Path, file: _ArchiveFile) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(file)
    except SourceError:
        raise
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        raise SourceError(f"{path} is not a whole zip archive: {error}") from error
    file.is_checked = True
    return archive


def _checked(path: Path, members: Sequence[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Check all members of an archive, and return its files by name."""
    # Members that share bytes, or overstate their packed size, would pass the ratio check of each member.
    # Python refuses overlapping members only since 3.11.8.
    if sum(member.compress_size for member in members) > path.stat().st_size:
        raise SourceError(f"{path} is a zip bomb: its members say that they are longer than the archive")
    found: dict[str, zipfile.ZipInfo] = {}
    for member in members:
        _check_member(path, member)
        # Programs differ in whether they read the first or the last of two members with one name.
        if member.filename in found:
            raise SourceError(
                f"{path} has two members {member.filename!r:.80}: which one is meant is unclear"
            )
        if not member.is_dir():
            found[member.filename] = member
    return found


def _check_member(path: Path, member: zipfile.ZipInfo) -> None:
    name = member.filename
    try:
        check_path(name.removesuffix("/"))
    except (KeepstoneError, ValueError) as error:
        raise SourceError(f"{path} has a member with a dangerous path: {error}") from error
    # Archives made on Unix keep the mode of the file in the upper half.
    if stat.S_ISLNK(member.external_attr >> 16):
        raise SourceError(f"{path} has a link as member {name!r:.80}; links are not followed")
    if member.flag_bits & 1:
        raise SourceError(f"{path} is encrypted: unpack it, then import the folder")
    # A small member may have any ratio, as it can do no harm.
    is_bomb = member.file_size > _SUSPECT and member.file_size > _MOST_RATIO * max(member.compress_size, 1)
    if member.file_size > LARGEST_MEMBER or is_bomb:
        raise SourceError(
            f"{path} is a zip bomb: member {name!r:.80} of {member.compress_size:,} bytes "
            f"would unpack to {member.file_size:,}"
        )
