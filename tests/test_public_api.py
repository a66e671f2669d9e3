"""Public is a list, and this holds it."""

import builtins
import inspect
import json
import subprocess
import sys
from types import ModuleType

import pytest

import keepstone
from keepstone import errors

BUILTINS = {
    "AccessDeniedError": PermissionError,
    "AgentNotFoundError": LookupError,
    "AmbiguousIdError": ValueError,
    "CorruptLogError": Exception,
    "EmbedderUnavailableError": RuntimeError,
    "EmbeddingDimMismatchError": ValueError,
    "EntryExistsError": ValueError,
    "EntryNotFoundError": LookupError,
    "InvalidAgentIdError": ValueError,
    "InvalidEmbeddingError": ValueError,
    "InvalidSessionIdError": ValueError,
    "IsAFolderError": IsADirectoryError,
    "LockTimeoutError": TimeoutError,
    "MemoryFileNotFoundError": FileNotFoundError,
    "NotTextError": ValueError,
    "PathEscapeError": PermissionError,
    "PurgePendingError": TimeoutError,
    "KeepstoneError": Exception,
    "SecretError": ValueError,
    "SpaceMismatchError": ValueError,
    "StoreError": Exception,
}
"""What each error also is, so that callers who know nothing of keepstone can catch it."""


def error_names() -> list[str]:
    return sorted(name for name, value in vars(errors).items() if inspect.isclass(value))


def test_the_list_of_public_names_is_sorted_and_each_once() -> None:
    assert keepstone.__all__ == sorted(set(keepstone.__all__))


def test_what_the_package_holds_is_what_its_list_says() -> None:
    own = {name: value for name, value in vars(keepstone).items() if not name.startswith("_")}
    held = {name for name, value in own.items() if not isinstance(value, ModuleType)}
    lazy = {name for name in keepstone.__all__ if name not in vars(keepstone)}
    assert held | lazy == set(keepstone.__all__)
    assert all(getattr(keepstone, name) is not None for name in lazy)


@pytest.mark.parametrize("name", keepstone.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    assert inspect.getdoc(getattr(keepstone, name))


def test_every_error_is_a_public_name() -> None:
    assert set(error_names()) <= set(keepstone.__all__)


@pytest.mark.parametrize("name", error_names())
def test_every_error_is_ours_and_a_builtin_one(name: str) -> None:
    error = getattr(errors, name)
    assert issubclass(error, keepstone.KeepstoneError)
    assert issubclass(error, BUILTINS[name])
    assert error.__doc__


@pytest.mark.parametrize("name", error_names())
def test_every_error_stands_in_the_picture_of_the_tree(name: str) -> None:
    assert errors.__doc__ is not None
    kind = BUILTINS[name].__name__
    shown = f"{name}({kind})" if kind != "Exception" else name
    assert shown in errors.__doc__
    assert not hasattr(builtins, name)


def test_importing_keepstone_loads_nothing_heavy() -> None:
    program = "import json, sys, keepstone; print(json.dumps([*sys.modules]))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", program], text=True)))
    assert loaded & {"apsw", "typer", "rich", "numpy", "markdown_it", "platformdirs", "sqlite3"} == set()
