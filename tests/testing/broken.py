"""Stores that do all but one thing right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.file_store import FileStore
from keepstone.testing import Check, Factory

Fault = Callable[..., Any]
"""The wrong replacement of a method; it is given the sound store first."""


class Broken:
    """Passes every call on, but for one method, of a store, of one of its parts, or of its readers.

    A method of a part is named with it: ``maintenance.backup``.
    """

    def __init__(self, sound: Any, method: str, fault: Fault) -> None:
        self._sound, self._method, self._fault = sound, method, fault

    def __getattr__(self, name: str) -> Any:
        part, _, method = self._method.partition(".")
        if name == "reader" and part != name:
            return self._reader
        if name != part:
            return getattr(self._sound, name)
        if method:
            return Broken(getattr(self._sound, name), method, self._fault)
        return partial(self._fault, self._sound)

    @contextmanager
    def _reader(self, *of: Any) -> Iterator[Any]:
        with self._sound.reader(*of) as reader:
            yield Broken(reader, self._method, self._fault)


def fails(check: Check, method: str, fault: Fault, folder: Path) -> str:
    """Return why a check fails for a store with a fault in one method."""
    numbers = count()

    def opened() -> Any:
        store = FileStore(folder / str(next(numbers)), LAYOUTS["default"])
        return closing(Broken(store, method, fault))

    factory: Factory = opened
    with pytest.raises(AssertionError) as failed:
        check(factory)
    return str(failed.value)
