"""Atomic installation and removal of models: a killed process leaves a whole model or none."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from keepstone.embed.catalogue import Model, ModelFile
from keepstone.embed.installed import check_file, model_folder, state_of
from keepstone.embed.sources import Source, Tell
from keepstone.errors import EmbedderUnavailableError, LockTimeoutError
from keepstone.filesystem.atomic import sync_file
from keepstone.filesystem.confine import sync_folder

_TEMPORARY = ".tmp-"
_WAIT = 5.0
"""Seconds to wait for another process that installs or removes a model."""
_CHUNK = 1 << 20


def install(model: Model, source: Source, tell: Tell, fallback: Source | None = None) -> Path:
    """Install a model and return its folder. An intact model is kept, a damaged one is replaced.

    Args:
        model: The model.
        source: The source of its files; see ``keepstone.embed.sources``.
        tell: Called with the bytes done and the total bytes, stage by stage.
        fallback: The source to use if the first one fails.

    Raises:
        EmbedderUnavailableError: A file is unavailable, or its hash is wrong; with a fallback the message
            has the reasons of both sources.
        LockTimeoutError: Another process is installing or removing a model.
        OSError, StoreError: The disk is full or failed. After any error nothing is installed.
    """
    folder = model_folder(model)
    with _locked(folder.parent):
        # Check under the lock, as another process may have just installed the model.
        if not _is_intact(model):
            # The temporary folder is next to the model's, as a rename cannot cross file systems.
            with TemporaryDirectory(prefix=_TEMPORARY, dir=folder.parent) as temporary:
                made = _fetch_from_either(model, (source, fallback), Path(temporary), tell)
                # A process that is killed between these steps leaves no model rather than part of one.
                _clear(folder)
                made.rename(folder)
                sync_folder(folder.parent)
    return folder


def remove(model: Model) -> bool:
    """Remove an installed or damaged model, and return whether there was one.

    Raises:
        LockTimeoutError: Another process is installing or removing a model.
    """
    folder = model_folder(model)
    if not folder.exists():
        return False
    with _locked(folder.parent):
        # Check again under the lock, as another process may have removed the model.
        was_there = folder.exists()
        _clear(folder)
    return was_there


def _is_intact(model: Model) -> bool:
    if state_of(model) != "installed":
        return False
    try:
        for file in model.files:
            check_file(model_folder(model) / file.name, file)
    except EmbedderUnavailableError:
        return False
    return True


def _fetch_from_either(
    model: Model, sources: tuple[Source, Source | None], temporary: Path, tell: Tell
) -> Path:
    source, fallback = sources
    if fallback is None:
        return _fetch(model, source, temporary, tell)
    # Each source has a folder, so that files of the failed source are not taken for the fallback's.
    folders = [temporary / "first", temporary / "second"]
    for folder in folders:
        folder.mkdir()
    try:
        return _fetch(model, source, folders[0], tell)
    except EmbedderUnavailableError as first:
        try:
            return _fetch(model, fallback, folders[1], tell)
        # A wrong $HF_ENDPOINT raises ValueError, which must not hide the first source's error.
        except (EmbedderUnavailableError, ValueError) as second:
            raise EmbedderUnavailableError(f"{first}. The other source failed, too: {second}") from second


def _fetch(model: Model, source: Source, temporary: Path, tell: Tell) -> Path:
    made = temporary / model.name
    made.mkdir()
    done = 0
    with source(model, temporary, tell) as open_file:
        for file in model.files:
            with open_file(file) as stream:
                _copy(stream, made / file.name, file, partial(_tell_sum, tell, model.size, done))
            done += file.size
    sync_folder(made)
    return made


def _tell_sum(tell: Tell, total: int, before: int, now: int) -> None:
    tell(before + now, total)


def _copy(stream: IO[bytes], target: Path, file: ModelFile, tell: Callable[[int], None]) -> None:
    """Copy a stream to a file, sync it, and verify its size and hash."""
    digest, done = hashlib.sha256(), 0
    with target.open("xb") as made:
        # A source with more bytes than expected is read one block further only, so that it cannot fill the
        # disk.
        while done <= file.size and (chunk := stream.read(_CHUNK)):
            made.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            tell(min(done, file.size))
        made.flush()
        sync_file(made.fileno())
    if done < file.size:
        raise EmbedderUnavailableError(
            f"{file.name} ended after {done} of {file.size} bytes; nothing was installed: try again"
        )
    if done > file.size or digest.hexdigest() != file.sha256:
        raise EmbedderUnavailableError(
            f"{file.name} has a wrong hash: its sha256 is not {file.sha256}; "
            "nothing was installed: choose another source with --from"
        )


def _clear(folder: Path) -> None:
    """Remove a model atomically: rename it first, so that a kill leaves no partial model."""
    if folder.exists():
        with TemporaryDirectory(prefix=_TEMPORARY, dir=folder.parent) as temporary:
            folder.rename(Path(temporary) / folder.name)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of all models, and remove temporary folders of killed processes."""
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=_WAIT):
            for left in folder.glob(f"{_TEMPORARY}*"):
                shutil.rmtree(left)
            yield
    except Timeout as error:
        raise LockTimeoutError(
            f"another process is installing or removing a model in {folder}: try again later"
        ) from error
