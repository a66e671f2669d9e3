"""The errors as the tree at the head of their module draws them."""

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import keepstone
from keepstone import KeepstoneError, errors

OURS = errors.KeepstoneError
PACKAGE = Path(keepstone.__file__).parent


def test_the_tree_draws_every_error_with_what_else_it_is() -> None:
    drawn = re.findall(r"[├└]── (\w+(?:\(\w+\))?)", errors.__doc__ or "")
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    own = [kind for kind in kinds if kind is not errors.KeepstoneError]
    assert sorted(drawn) == sorted(
        "".join([kind.__name__, *(f"({base.__name__})" for base in kind.__bases__ if base is not OURS)])
        for kind in own
    )
    assert all(issubclass(kind, OURS) for kind in own)


INTERNAL = {
    "OvertakenError": "a rewrite that another one overtook: it starts again",
    "ProblemError": "an answer of the server",
    "TokensUnusableError": "an answer of the server",
    "StalePageError": "a page in the browser that shows an entry as it was",
    "DeclinedError": "a question that the command's user answered with no",
    "VanishedError": "a session that was removed: the write starts again",
    "ExpiredError": "keys of a reader whose index was rebuilt: the recall starts again",
    "DamagedError": "an index that is rebuilt",
    "UnavailableError": "an index that cannot answer: one in memory does",
    "ChangedError": "a segment that changed while it was read: it is read again",
    "DamagedGrantsError": "grants that cannot be read: they grant nothing",
    "MovedError": "a folder that was moved while it was opened, a StoreError for callers",
}
"""Errors that no public call raises, each with what it says to whom."""

OF_FRAMEWORKS = {
    "AlreadyExistsError",
    "MCPError",
    "ToolError",
    "InvalidNamespaceError",
    "EmbeddingDimensionMismatchError",
}
"""Errors that an adapter raises because the interface of its framework says so."""


@cache
def nodes() -> list[tuple[ast.AST, Path]]:
    """The classes and the raised errors of the package, each with its file."""
    return [
        (node, path)
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef | ast.Raise)
    ]


def error_classes() -> Iterator[tuple[str, Path]]:
    """All classes of errors that the package defines, private ones aside."""
    for node, path in nodes():
        if isinstance(node, ast.ClassDef) and node.name.endswith("Error") and node.name[0] != "_":
            yield node.name, path


def test_every_public_error_is_in_errors_and_exported() -> None:
    defined = dict(error_classes())
    public = {name for name, path in defined.items() if path.name == "errors.py"}
    assert public == {name for name in keepstone.__all__ if name.endswith("Error")}
    assert sorted(defined.keys() - public) == sorted(INTERNAL)


def test_every_name_of_an_error_that_is_raised_is_defined_or_builtin() -> None:
    raised = {
        call.func.id
        for node, _ in nodes()
        if isinstance(node, ast.Raise) and isinstance(call := node.exc, ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id.endswith("Error") and call.func.id[0] != "_"
    }
    known = dict(error_classes()).keys() | vars(builtins).keys() | OF_FRAMEWORKS
    assert raised - known == set()


def test_a_title_of_a_missing_session_is_a_keepstone_error(target: str) -> None:
    with (
        keepstone.open(target, embedder="none") as home,
        pytest.raises(KeepstoneError, match="no session 's'"),
    ):
        home.agent("a").session("s").set_title("Tea")
