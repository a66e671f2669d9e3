"""Every requirement has a test or a reason, and every test that names a requirement names one that exists."""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
DOCUMENTS = {
    "log": "0-session-log-adapter",
    "notes": "1-notes",
    "files": "2-agent-files",
    "memory": "3-session-memory",
    "vectors": "4-vector-memory",
}


def requirements() -> list[dict[str, str]]:
    """The tables of the manifest, in its order."""
    with (TESTS / "requirements.toml").open("rb") as manifest:
        tables: list[dict[str, str]] = tomllib.load(manifest)["requirement"]
    return tables


def marks_in(node: ast.AST) -> Iterator[str]:
    """The ids of the requirement marks anywhere below this node."""
    for call in ast.walk(node):
        match call:
            case ast.Call(func=ast.Attribute(attr="requirement"), args=arguments):
                yield from (ast.literal_eval(argument) for argument in arguments)


def marks_on_tests_in(module: ast.Module) -> Iterator[str]:
    """The ids of the requirement marks that decorate functions which pytest collects."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                yield from marks_in(decorator)


@cache
def modules() -> list[ast.Module]:
    """Every Python file under tests/ that has a mark, parsed."""
    texts = {str(path): path.read_text("utf-8") for path in sorted(TESTS.rglob("*.py"))}
    return [ast.parse(text, path) for path, text in texts.items() if ".requirement(" in text]


@cache
def covered() -> set[str]:
    """The ids that the tests carry."""
    return {mark for module in modules() for mark in marks_on_tests_in(module)}


def test_every_requirement_has_a_test_or_a_reason() -> None:
    untested = {entry["id"] for entry in requirements() if not entry.get("later")} - covered()
    assert sorted(untested) == [], "give each a test that carries its id, or the reason why it comes later"


def test_no_tested_requirement_is_said_to_come_later() -> None:
    postponed = {entry["id"] for entry in requirements() if "later" in entry}
    assert sorted(postponed & covered()) == [], "these have a test now: remove their `later`"


def test_every_mark_names_a_requirement_of_the_manifest() -> None:
    unknown = covered() - {entry["id"] for entry in requirements()}
    assert sorted(unknown) == [], "the manifest has no such id"


def test_requirement_marks_are_on_test_functions_only() -> None:
    for module in modules():
        assert sorted(marks_in(module)) == sorted(marks_on_tests_in(module))


def test_no_two_requirements_share_an_id() -> None:
    ids = [entry["id"] for entry in requirements()]
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.parametrize("entry", requirements(), ids=lambda entry: entry["id"])
def test_a_requirement_has_the_documented_keys(entry: dict[str, str]) -> None:
    assert set(entry) - {"later"} == {"id", "document", "text"}
    assert entry["document"] == DOCUMENTS[entry["id"].partition(".")[0]]
    assert entry["text"].endswith(".")
    assert entry.get("later") != ""


def test_a_mark_among_several_decorators_is_found() -> None:
    source = '@pytest.mark.slow\n@pytest.mark.requirement("a.b", "c.d")\ndef test_it() -> None: ...'
    assert list(marks_on_tests_in(ast.parse(source))) == ["a.b", "c.d"]


def test_a_mark_on_a_parameter_of_a_test_is_found() -> None:
    parameter = 'pytest.param(1, marks=pytest.mark.requirement("a.b"))'
    source = f'@pytest.mark.parametrize("x", [{parameter}])\ndef test_it(x): ...'
    assert list(marks_on_tests_in(ast.parse(source))) == ["a.b"]


def test_a_mark_on_a_helper_function_does_not_count() -> None:
    source = '@pytest.mark.requirement("a.b")\ndef helper() -> None: ...'
    assert list(marks_on_tests_in(ast.parse(source))) == []
