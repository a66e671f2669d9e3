"""Public is a list, and this holds it."""

import builtins
import inspect
import json
import re
import subprocess
import sys
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from types import ModuleType

import pytest
from rich.console import Console
from rich.pretty import Pretty

import keepstone
from keepstone import errors

ROOT = Path(__file__).parent.parent
BUILTINS = {
    "AccessDeniedError": PermissionError,
    "AgentNotFoundError": LookupError,
    "AlreadySupersededError": ValueError,
    "AmbiguousIdError": ValueError,
    "CorruptLogError": Exception,
    "EmbedderUnavailableError": RuntimeError,
    "EmbeddingDimMismatchError": ValueError,
    "EntryExistsError": ValueError,
    "EntryNotFoundError": LookupError,
    "HomeNotFoundError": LookupError,
    "InvalidAgentIdError": ValueError,
    "InvalidEmbeddingError": ValueError,
    "InvalidSessionIdError": ValueError,
    "IsAFolderError": IsADirectoryError,
    "LockTimeoutError": TimeoutError,
    "MemoryFileNotFoundError": FileNotFoundError,
    "ModelError": RuntimeError,
    "NotGrantedError": keepstone.AccessDeniedError,
    "NotTextError": ValueError,
    "NoteNotFoundError": LookupError,
    "PathEscapeError": PermissionError,
    "PurgePendingError": TimeoutError,
    "KeepstoneError": Exception,
    "SecretError": ValueError,
    "SessionNotFoundError": LookupError,
    "SourceError": ValueError,
    "SpaceMismatchError": ValueError,
    "StoreError": Exception,
    "SuggestionOutdatedError": ValueError,
}
"""The further base of each error, so that callers who know nothing of keepstone can catch it."""


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
def test_every_error_is_in_the_picture_of_the_tree(name: str) -> None:
    assert errors.__doc__ is not None
    kind = BUILTINS[name].__name__
    shown = f"{name}({kind})" if kind != "Exception" else name
    assert shown in errors.__doc__
    assert not hasattr(builtins, name)


def test_importing_keepstone_loads_nothing_heavy() -> None:
    program = "import json, sys, keepstone; print(json.dumps([*sys.modules]))"
    loaded = set(json.loads(subprocess.check_output([sys.executable, "-c", program], text=True)))
    assert loaded & {"apsw", "typer", "rich", "numpy", "markdown_it", "platformdirs", "sqlite3"} == set()


def test_version_is_that_of_the_distribution() -> None:
    assert keepstone.__version__ == version("keepstone")


def test_reference_names_every_public_name_and_no_other() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    named = re.findall(r"^::: keepstone\.(\w+)$", page, re.MULTILINE)
    modules = {"errors", "testing"}
    assert sorted({*named, *error_names()} - modules) == keepstone.__all__
    assert len(named) == len(set(named))


def test_values_show_what_a_person_wants_to_see(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("coder")
        session = agent.session("main")
        entry = session.add("decision", {"decision": "Use OAuth " * 20}, id="d", ts="2026-01-11T14:31:00Z")
        shown = "<Entry d decision in coder/main, 2026-01-11 14:31 UTC: 'decision: Use OAuth "
        assert repr(entry).startswith(shown)
        assert len(repr(entry)) < 160
        assert [repr(home), repr(agent)] == [f"<Home '{tmp_path}'>", "<Agent 'coder'>"]
        assert repr(session) == "<Session 'main' of agent 'coder'>"
        hits = agent.recall("oauth")
        assert repr(hits).startswith("<Hits 1 hit by words in ")
        assert repr(hits[0]).startswith(f"<Hit {hits[0].score:.2f} <Entry d")
        assert "UTC" in repr(agent.sessions()[0])
        assert repr(agent.history("d")[0]).startswith("<Version d decision")


def test_rich_shows_entries_and_hits_by_their_fields(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("coder").session("main").add("note", text="Use pnpm", id="n")
        hits = home.agent("coder").recall("pnpm")
    screen = Console(file=StringIO(), width=200)
    screen.print(Pretty(hits[0].entry))
    screen.print(Pretty(hits))
    text = screen.file.getvalue()  # type: ignore[attr-defined]
    assert "id='n', type='note', session='main'" in text
    assert "text='Use pnpm'" in text
