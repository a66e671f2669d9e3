"""The versions that a bug report needs: ``keepstone --version --json``."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any


def library_version() -> str | None:
    """Return the installed version of keepstone, None if it runs from its source without installation."""
    try:
        return version("keepstone")
    except PackageNotFoundError:
        return None


def versions() -> dict[str, Any]:
    """Return the versions of the library, its formats and its dependencies.

    ``models`` has the installed models with the version of their package. ``index`` is the version of a
    derived format: an index of another version is built beside the present one.
    """
    from keepstone.embed.catalogue import MODELS
    from keepstone.embed.installed import state_of
    from keepstone.filesystem.layout import FORMAT
    from keepstone.index.database import SCHEMA, sqlite_version

    installed = [model for model in MODELS.values() if state_of(model) == "installed"]
    return {
        "library": library_version(),
        "format": FORMAT,
        "index": SCHEMA,
        "sqlite": sqlite_version(),
        "python": platform.python_version(),
        "models": {model.name: model.package.partition("==")[2] for model in installed},
    }
