"""Installed models: their folders and states.

A model is a folder with the files that the catalogue names.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Literal

from keepstone.embed.catalogue import Model, ModelFile
from keepstone.errors import EmbedderUnavailableError

State = Literal["installed", "damaged", "missing"]
"""Whether a model is installed, judged by the sizes of its files."""


def models_folder() -> Path:
    """Return the folder of all models: $KEEPSTONE_MODELS, else ``models`` in the user's data folder."""
    named = os.environ.get("KEEPSTONE_MODELS")
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_data_path  # Only needed if no folder is named.

    return user_data_path("keepstone", appauthor=False) / "models"


def model_folder(model: Model) -> Path:
    """Return the folder of a model, installed or not."""
    return models_folder() / model.name


def state_of(model: Model) -> State:
    """Return whether a model is installed, without reading its files."""
    folder = model_folder(model)
    if not folder.is_dir():
        return "missing"
    whole = all(_size(folder / file.name) == file.size for file in model.files)
    return "installed" if whole else "damaged"


def check_installed(model: Model) -> None:
    """Check that a model is installed, without reading its files.

    Raises:
        EmbedderUnavailableError: It is not; the message has the install command.
    """
    state = state_of(model)
    if state != "installed":
        raise EmbedderUnavailableError(
            f"embedder {model.name!r} is {'not installed' if state == 'missing' else 'damaged'}: run "
            f"keepstone model install {model.name} ({model_folder(model)})"
        )


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def check_file(path: Path, file: ModelFile) -> None:
    """Verify the hash of a model's file.

    Raises:
        EmbedderUnavailableError: The file is missing or its hash is wrong.
    """
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise EmbedderUnavailableError(f"cannot read the model's file {path}: {error.strerror}") from error
    if found != file.sha256:
        raise EmbedderUnavailableError(
            f"{path} has a wrong hash: its sha256 is {found}, not {file.sha256}; install the model again"
        )
