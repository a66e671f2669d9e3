"""Sync with a home on another machine: ssh runs keepstone there, and each side streams its files.

The files of the two devices form a temporary shared folder, which is merged like any other.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO

from keepstone.errors import StoreError
from keepstone.filesystem.layout import Layout
from keepstone.home import Home
from keepstone.operations.syncing import Synced, exchange, one_sync
from keepstone.operations.syncing.stream import MOST, pack, unpack
from keepstone.text.display import one_line, size

_REMOTE = re.compile(r"(?P<host>[^/:\s-][^/:\s]*):(?P<path>[^\0]+)")
_CHUNK = 1 << 16
_PACKED_MORE = 64_000_000
"""Maximum bytes of an answer beyond those of its files: the manifest, headers, poor compression."""


def is_remote(target: str) -> bool:
    """Return whether a target names a home on another machine: ``host:path``, ``user@host:path``."""
    return _REMOTE.fullmatch(target) is not None


def sync_over_ssh(
    home: Home,
    layout: Layout,
    target: str,
    *,
    ssh: str = "ssh",
    command: str = "keepstone",
    options: tuple[str, ...] = (),
    most: int = MOST,
) -> Synced:
    """Exchange entries and purges with the home at ``target``, such as ``ada@host:agents``.

    Args:
        home: The home here.
        layout: Its layout.
        target: ``HOST:PATH``; a path without a leading ``/`` is relative to the user's home folder.
        ssh: The program that connects to the other machine, with its options: ``"ssh -p 2222"``.
        command: The keepstone command on the other machine.
        options: Further options for keepstone on the other machine.
        most: Maximum total size of the other home's files, in bytes.

    Raises:
        ValueError: ``target`` is not HOST:PATH, or the answer is not a stream that keepstone sends.
        StoreError: The other machine was not reached, or keepstone failed there. Nothing was merged here.
    """
    found = _REMOTE.fullmatch(target)
    if found is None:
        raise ValueError(f"{target!r:.80} is not HOST:PATH, such as ada@host:agents")
    path = found["path"].removeprefix("~/")
    remote_command = shlex.join([*shlex.split(command), "sync", "-", "--home", path, *options])
    with one_sync(home), TemporaryDirectory() as temporary, TemporaryFile() as answer:
        place = Path(temporary)
        # This exchange publishes this home's files; the second one, below, merges the other home's files.
        sent = exchange(home, layout, place)
        _send(place, sent.device, [*shlex.split(ssh), found["host"], remote_command], answer, most)
        answer.seek(0)
        unpack(answer, place, most)
        return exchange(home, layout, place)


def answer_over_ssh(
    home: Home, layout: Layout, given: IO[bytes], answer: IO[bytes], *, most: int = MOST
) -> Synced:
    """Merge another home's files from a stream, and write this home's files to ``answer``.

    Raises:
        ValueError: The stream was not sent by ``sync_over_ssh``, or its files have more than ``most`` bytes.
    """
    with one_sync(home), TemporaryDirectory() as temporary:
        place = Path(temporary)
        unpack(given, place, most)
        result = exchange(home, layout, place)
        pack(place, result.device, answer)
        return result


def _send(place: Path, device: str, words: list[str], answer: IO[bytes], most: int) -> None:
    """Send a device's files to a program, and write the program's output to ``answer``."""
    try:
        process = subprocess.Popen(  # noqa: S603
            # No shell runs here. ssh runs a shell on the other machine, for which the words are quoted.
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    except OSError as error:
        raise StoreError(f"{words[0]} cannot be run ({error.strerror}): install it, or give --ssh") from error
    said = deque[bytes](maxlen=2)
    # Read both outputs while sending: a full pipe would block the other side, which would block this one.
    with process, ThreadPoolExecutor(2) as readers:
        is_whole = readers.submit(_copy, process, answer, most)
        errors = readers.submit(_read_last, process, said)
        # The program may end before it has read everything; its status and error output then say why.
        with suppress(BrokenPipeError), process.stdin or BytesIO() as given:
            pack(place, device, given)
        errors.result()
    if not is_whole.result():
        raise StoreError(f"{words[-2]} sent more than {size(most)}: give --max MB if that is right")
    if process.returncode:
        # The reason is at the end of the error output; the beginning may be a banner of the host.
        text = b"".join(said).decode("utf-8", "replace").strip()
        raise StoreError(f"{words[-2]} could not sync: {one_line(text[-500:]) or process.returncode}")


def _copy(process: subprocess.Popen[bytes], answer: IO[bytes], most: int) -> bool:
    """Write a program's output to a file; kill the program and return False if the output is too long."""
    left = most + _PACKED_MORE
    with (
        process.stdout or BytesIO() as pipe
    ):  # Closed at the end, so that child processes of the program end, too.
        for chunk in _chunks(pipe):
            left -= len(chunk)
            if left < 0:
                process.kill()
                return False
            answer.write(chunk)
    return True


def _read_last(process: subprocess.Popen[bytes], said: deque[bytes]) -> None:
    """Keep the end of a program's error output."""
    for chunk in _chunks(process.stderr):
        said.append(chunk)


def _chunks(pipe: IO[bytes] | None) -> Iterator[bytes]:
    while pipe is not None and (chunk := os.read(pipe.fileno(), _CHUNK)):
        yield chunk
