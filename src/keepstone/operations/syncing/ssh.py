"""Sync with a home on another machine: ssh runs keepstone there, and each side sends its files as a stream.

What arrives is a shared folder of two devices, merged as any other.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tarfile
import zlib
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from keepstone.errors import StoreError
from keepstone.filesystem.atomic import replace_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import Layout
from keepstone.home import Home
from keepstone.operations.syncing import Synced, exchange, one_sync
from keepstone.operations.syncing.devices import TEMPORARY
from keepstone.text.display import one_line

_REMOTE = re.compile(r"(?P<host>[^/:\s-][^/:\s]*):(?P<path>[^\0]+)")
_NAME = re.compile(r"devices/[0-9a-f-]{36}(/[^/.\0][^/\0]*|/[^/.\0][^/\0]*/[^/\0]+)")


def is_remote(target: str) -> bool:
    """Tell whether a target names a home on another machine: ``host:path``, ``user@host:path``."""
    return _REMOTE.fullmatch(target) is not None


def sync_over_ssh(
    home: Home,
    layout: Layout,
    target: str,
    *,
    ssh: str = "ssh",
    command: str = "keepstone",
    options: tuple[str, ...] = (),
) -> Synced:
    """Exchange entries and purges with the home at ``target``, such as ``ada@host:agents``.

    Args:
        home: The home here.
        layout: Its layout.
        target: ``HOST:PATH``; the path begins at the user's own folder, if it does not begin with ``/``.
        ssh: The program that reaches the other machine, with its options: ``"ssh -p 2222"``.
        command: What runs keepstone there.
        options: Further options for keepstone there.

    Raises:
        ValueError: ``target`` names no machine and path.
        StoreError: The other machine was not reached, or keepstone failed there. Nothing was changed here.
    """
    found = _REMOTE.fullmatch(target)
    if found is None:
        raise ValueError(f"{target!r:.80} is not HOST:PATH, such as ada@host:agents")
    path = found["path"].removeprefix("~/")
    there = shlex.join([*shlex.split(command), "sync", "-", "--home", path, *options])
    with one_sync(home), TemporaryDirectory() as temporary, TemporaryFile() as answer:
        place = Path(temporary)
        exchange(home, layout, place)
        _send(place, [*shlex.split(ssh), found["host"], there], answer)
        answer.seek(0)
        _unpack(answer, place)
        return exchange(home, layout, place)


def answer_over_ssh(home: Home, layout: Layout, given: IO[bytes], answer: IO[bytes]) -> Synced:
    """Take in the files of another home from a stream, and write those of this one into ``answer``.

    Raises:
        ValueError: The stream is not one that ``sync_over_ssh`` sends.
    """
    with one_sync(home), TemporaryDirectory() as temporary:
        place = Path(temporary)
        _unpack(given, place)
        result = exchange(home, layout, place)
        _pack(place, result.device, answer)
        return result


def _send(place: Path, words: list[str], answer: IO[bytes]) -> None:
    """Send the folder to a program, and write what it answers into a file."""
    with TemporaryFile() as errors:
        try:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=answer, stderr=errors)  # noqa: S603
        except OSError as error:
            raise StoreError(
                f"{words[0]} cannot be run ({error.strerror}): install it, or give --ssh"
            ) from error
        with process:
            if process.stdin is not None:
                # It may end before it has read all; then its status and its words say why.
                with suppress(BrokenPipeError), process.stdin as given:
                    _pack(place, None, given)
        if process.returncode:
            errors.seek(0)
            said = errors.read().decode("utf-8", "replace").strip()
            raise StoreError(f"{words[-2]} could not sync: {one_line(said[-500:]) or process.returncode}")


def _pack(place: Path, device: str | None, stream: IO[bytes]) -> None:
    """Write the files of one device, or of all, as a compressed stream."""
    with tarfile.open(fileobj=stream, mode="w|gz") as archive:
        for path in sorted((place / "devices" / (device or "")).rglob("*")):
            if path.is_file() and not path.is_symlink():
                archive.add(path, path.relative_to(place).as_posix())


def _unpack(stream: IO[bytes], place: Path) -> None:
    """Write the files of a stream into the folder."""
    try:
        with Folder(place, create=True) as folder, tarfile.open(fileobj=stream, mode="r|gz") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None or not _NAME.fullmatch(member.name):
                    raise ValueError(f"{one_line(member.name)!r:.80} is not a file that keepstone sync sends")
                folder.make_folder(member.name.rpartition("/")[0])
                chunks = iter(lambda file=content: file.read(1 << 20), b"")  # type: ignore[misc]
                replace_file(folder, member.name, chunks, temporary=TEMPORARY)
    except (tarfile.TarError, EOFError, zlib.error, OSError) as error:
        raise ValueError(f"the other side sent no files that can be read: {error}") from error
