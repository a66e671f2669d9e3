"""A file system that folds case, as those of macOS and Windows do, on one that does not."""

import os
from collections.abc import Callable
from typing import Any

import pytest

_listdir, _open, _close = os.listdir, os.open, os.close


def fold_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let names that differ only by case lead to what was made under any of them, from now on."""
    for name in ("open", "mkdir", "stat", "lstat", "unlink"):
        monkeypatch.setattr(os, name, _folding(getattr(os, name)))


def _folding(call: Callable[..., Any]) -> Callable[..., Any]:
    def folded(path: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(path, int):
            path = _listed(os.fspath(path), options.get("dir_fd"))
        return call(path, *arguments, **options)

    return folded


def _listed(path: str, handle: int | None) -> str:
    """Return a path with each name as its folder lists it; names that are missing stay as they are."""
    at = "/" if path.startswith("/") else ""
    for name in path.split("/"):
        if name:
            at += _name_in(at, name, handle) + "/"
    return at.rstrip("/") or "/"


def _name_in(folder: str, name: str, handle: int | None) -> str:
    try:
        own = _open(folder or ".", os.O_RDONLY, dir_fd=handle)
    except OSError:
        return name
    try:
        names = _listdir(own)
    except NotADirectoryError:
        return name
    finally:
        _close(own)
    twins = [other for other in names if other.casefold() == name.casefold()]
    return name if name in names or not twins else twins[0]
