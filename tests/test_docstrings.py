"""The examples in docstrings run as they are written, each in an empty folder.

An example sees its module's names and those of ``names_for``. ``…`` in an expected output stands for any
text, such as the id of a new entry.
"""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import keepstone

MODULES = [module.name for module in pkgutil.walk_packages(keepstone.__path__, "keepstone.")]
STARTS_THE_COMMAND = "keepstone.__main__"
ADAPTERS = "keepstone.integrations."
IMPORTED = {"keepstone": keepstone, "Notes": keepstone.Notes, "Path": Path}
SYSTEM = {"os": os, "UTC": UTC, "datetime": datetime, "timedelta": timedelta}


def imported(name: str) -> ModuleType | None:
    """A module; None for an adapter whose framework this environment does not have."""
    try:
        return importlib.import_module(name)
    except ImportError:
        if name.startswith(ADAPTERS):
            return None
        raise


def examples() -> list[doctest.DocTest]:
    names = ["keepstone", *(name for name in MODULES if name != STARTS_THE_COMMAND)]
    found = [doctest.DocTestFinder().find(module) for module in map(imported, names) if module]
    return [test for tests in found for test in tests if test.examples]


@contextmanager
def names_for(example: doctest.DocTest) -> Iterator[dict[str, Any]]:
    """What a reader has by then: the usual imports and, if named, a home with a decision and a finding."""
    names = IMPORTED | SYSTEM | example.globs
    if not re.search(
        r"\b(home|agent|session|decision|finding)\b", "".join(e.source for e in example.examples)
    ):
        yield names
        return
    with keepstone.open("memory") as home:
        agent = home.agent("coder")
        session = agent.session("main")
        decision = session.add("decision", {"decision": "Use OAuth to sign in", "by": "Maya"}, tags=["auth"])
        finding = session.add("finding", {"issue": "Sign-in has no second factor"})
        yield names | {
            "home": home,
            "agent": agent,
            "session": session,
            "decision": decision,
            "finding": finding,
        }


@pytest.mark.parametrize("example", examples(), ids=lambda example: example.name)
def test_docstring_example_prints_what_it_says(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "")
    monkeypatch.setattr(doctest, "ELLIPSIS_MARKER", r"\u2026")  # as doctest compares it: in ASCII
    report: list[str] = []
    with names_for(example) as example.globs:
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=report.append, clear_globs=False)
    if report:
        pytest.fail("".join(report), pytrace=False)
