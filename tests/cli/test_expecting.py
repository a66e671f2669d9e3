"""``keepstone expect`` and ``test`` as people read them; ``tests/test_memory_tests.py`` has the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import keepstone

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture
def filled(cli: Command) -> Command:
    with keepstone.open(cli.home, embedder="none") as home:
        home.agent("default").add("We use pnpm as our package manager", id="pnpm")
    return cli


def test_a_test_is_added_to_the_file_of_the_home(filled: Command) -> None:
    told = filled("expect", "which package manager?", "pnpm").stdout
    assert told == f"added a test of 'which package manager?' to {filled.home / 'tests.ndjson'}\n"


def test_tests_are_kept_in_a_named_file(filled: Command, tmp_path: Path) -> None:
    place = ("--file", str(tmp_path / "mine.ndjson"))
    filled.json("expect", "which package manager?", "pnpm", *place)
    assert filled.json("test", *place)["passed"] == 1
    assert filled.json("test")["tests"] == []


def test_failures_are_listed_before_the_count(filled: Command) -> None:
    filled.json("expect", "which package manager?", "pnpm")
    filled.json("expect", "which package manager?", "missing")
    result = filled("test")
    first, second, last = result.stdout.splitlines()
    assert (result.exit_code, first) == (1, "FAILED which package manager?")
    assert second.startswith("    no entry has the id 'missing'")
    assert last == "2 tests, 1 failed"


def test_a_home_without_tests_says_so(filled: Command) -> None:
    assert filled("test").stdout == "no tests\n"
