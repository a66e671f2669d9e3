"""Tests of memory: questions with what they must find, in ``tests.ndjson``."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import keepstone
from keepstone import Home
from keepstone.cli.app import app
from keepstone.store.memory_tests import read_tests


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        agent = home.agent("default")
        agent.add("We use pnpm as our package manager", id="pnpm")
        agent.add("The office is in Bern", id="office", session="other")
        yield home


Run = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def run(home: Home) -> Run:
    def run(*words: str) -> tuple[int, dict[str, Any]]:
        result = CliRunner().invoke(app, [*words, "--home", str(home.root), "--json"])
        return result.exit_code, json.loads(result.stdout or "{}") | {"error": result.stderr}

    return run


def reason(run: Run) -> str:
    status, document = run("test")
    assert (status, document["failed"]) == (1, 1)
    return str(document["tests"][0]["reason"])


def test_a_home_without_tests_passes(run: Run) -> None:
    assert run("test")[:1] == (0,)
    assert run("test")[1]["tests"] == []


def test_a_test_passes_if_its_entry_or_text_is_found(home: Home, run: Run) -> None:
    run("expect", "which package manager?", "pnpm", "PACKAGE manager", "--never", "office")
    run("expect", "quantum chromodynamics", "--nothing")
    assert run("test")[1]["passed"] == 2
    line = json.loads((home.root / "tests.ndjson").read_text().splitlines()[0])
    assert line == {
        "id": line["id"],
        "agent": "default",
        "ask": "which package manager?",
        "expect": ["pnpm", "PACKAGE manager"],
        "never": ["office"],
    }


def test_a_missed_entry_is_reported_with_ranks_and_reasons(run: Run) -> None:
    run("expect", "which package manager?", "office")
    assert "'office' is not among the first 1 hits: the hits are #1 pnpm" in reason(run)
    assert "found by words #1" in reason(run)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["which package manager?", "none"], "no entry has the id 'none'"),
        (["which package manager?", "--never", "pnpm"], "'pnpm' must not be found, but #1 is pnpm"),
        (["which package manager?", "--nothing"], "nothing should be relevant, but #1 is pnpm"),
    ],
)
def test_a_failure_says_what_is_wrong(run: Run, words: list[str], expected: str) -> None:
    run("expect", *words)
    assert expected in reason(run)


def test_a_superseded_entry_fails_and_names_the_newer_one(home: Home, run: Run) -> None:
    run("expect", "which package manager?", "pnpm")
    newer = home.agent("default").supersede("pnpm", "We use uv as our package manager")
    assert reason(run) == f"'pnpm' is superseded by {newer.id!r}: expect that one"


def test_only_the_tests_of_one_agent_are_run(run: Run) -> None:
    run("expect", "which package manager?", "pnpm")
    run("expect", "which package manager?", "pnpm", "--agent", "other")
    assert [len(run("test", "--agent", name)[1]["tests"]) for name in ("default", "other", "x")] == [1, 1, 0]


@pytest.mark.parametrize(
    "line", ['{"expect": ["a"]}', "{", "[]", '{"ask": "a"}', '{"ask": "a", "expect": 1}']
)
def test_a_damaged_line_ends_with_its_number(home: Home, run: Run, line: str) -> None:
    run("expect", "which package manager?", "pnpm")
    with (home.root / "tests.ndjson").open("a") as file:
        file.write(line + "\n")
    result = CliRunner().invoke(app, ["test", "--home", str(home.root)])
    assert (result.exit_code, "line 2 of tests.ndjson" in result.stderr) == (2, True)


def test_a_test_without_anything_to_check_is_refused(home: Home) -> None:
    for words in (["which?"], ["", "pnpm"], ["which?", "pnpm", "--nothing"], ["a", "b", "--limit", "0"]):
        assert CliRunner().invoke(app, ["expect", *words, "--home", str(home.root)]).exit_code == 2
    assert not (home.root / "tests.ndjson").exists()


def test_a_purge_removes_ids_and_texts_from_tests(home: Home, run: Run) -> None:
    run("expect", "which package manager?", "pnpm")
    run("expect", "which package manager?", "pnpm", "--never", "office")
    run("expect", "where is Maya?", "office")
    home.agent("default").purge("pnpm")
    tests = [json.loads(line) for line in (home.root / "tests.ndjson").read_text().splitlines()]
    assert [(test.get("expect", []), test.get("never", [])) for test in tests] == [
        ([], ["office"]),
        (["office"], []),
    ]
    home.agent("default").purge_matching("maya")
    assert "Maya" not in (home.root / "tests.ndjson").read_text()


def test_a_run_writes_nothing_but_indexes(home: Home, run: Run) -> None:
    run("expect", "which package manager?", "pnpm")

    def contents() -> dict[Path, bytes]:
        files = (path for path in home.root.rglob("*") if path.is_file() and ".index" not in path.parts)
        return {path: path.read_bytes() for path in files}

    before = contents()
    run("test")
    assert contents() == before


def test_a_home_in_a_database_has_its_tests_in_a_named_file(dsn: str, tmp_path: Path) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        home.agent("default").add("We use pnpm", id="pnpm")
    place = ["--home", dsn, "--file", str(tmp_path / "tests.ndjson")]
    assert CliRunner().invoke(app, ["expect", "pnpm", "pnpm", *place]).exit_code == 0
    assert CliRunner().invoke(app, ["test", *place]).exit_code == 0
    assert CliRunner().invoke(app, ["test", "--home", dsn]).exit_code == 2


def test_a_pipe_holds_no_tests(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "tests.ndjson")
    with pytest.raises(ValueError, match="no regular file"):
        read_tests(tmp_path / "tests.ndjson")
