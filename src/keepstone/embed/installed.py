"""Installed models: where they lie, and whether they are whole.

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
"""Whether a model is there, as far as the sizes of its files tell."""


def models_folder() -> Path:
    """Return where models lie: $KEEPSTONE_MODELS, else ``models`` in the user's data folder."""
    named = os.environ.get("KEEPSTONE_MODELS")
    if named:
        return Path(named).expanduser().absolute()
    from platformdirs import user_data_path  # Only needed where no folder is named.

    return user_data_path("keepstone", appauthor=False) / "models"


def model_folder(model: Model) -> Path:
    """Return where a model lies once it is installed."""
    return models_folder() / model.name


def state_of(model: Model) -> State:
    """Return whether a model is installed; nothing of its files is read for this."""
    folder = model_folder(model)
    if not folder.is_dir():
        return "missing"
    whole = all(_size(folder / file.name) == file.size for file in model.files)
    return "installed" if whole else "damaged"


def _size(path: Path) -> int | None:
    return path.stat().st_size if path.is_file() else None


def check_file(path: Path, file: ModelFile) -> None:
    """Read a model's file through and compare it with what the catalogue says.

    Raises:
        EmbedderUnavailableError: It is missing, cut short or tampered with.
    """
    try:
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise EmbedderUnavailableError(f"the model's file {path} cannot be read: {error.strerror}") from error
    if found != file.sha256:
        raise EmbedderUnavailableError(
            f"{path} is not the model's file: its sha256 is {found}, not {file.sha256}; install it anew"
        )
