"""Where a store of a framework's tests keeps its memory: in a folder, or as an agent of a database."""

from __future__ import annotations

import os
import tempfile
from itertools import count
from pathlib import Path
from typing import TypedDict

import keepstone

_numbers = count()


class Place(TypedDict, total=False):
    """Arguments of an adapter."""

    home: str
    agent: str


def place(path: str | Path | None = None) -> Place:
    """Return a place of its own, or for a path the same one each time."""
    dsn = os.environ.get("KEEPSTONE_SUITE_DSN")
    if dsn:
        return {"home": dsn, "agent": keepstone.slug(str(path) if path else f"suite-{next(_numbers)}")}
    return {"home": str(path or tempfile.mkdtemp(dir=os.environ["KEEPSTONE_SUITE_HOMES"]))}
