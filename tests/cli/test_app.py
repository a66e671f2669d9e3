"""The command as a whole: help, examples, reference page, version, layouts."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.scripts import SCRIPTS, script

if TYPE_CHECKING:
    from .conftest import Command

reference = script("cli_reference")


def every_command() -> list[tuple[str, Any]]:
    return [(name, command) for name, command, _ in reference.commands()]


@pytest.mark.parametrize(("name", "command"), every_command())
def test_every_command_has_help_and_an_example(name: str, command: Any) -> None:
    assert command.help
    assert command.epilog.startswith("Example: ")
    assert "keepstone" in command.epilog, name


@pytest.mark.parametrize(("name", "command"), every_command())
def test_every_option_says_what_it_is_for(name: str, command: Any) -> None:
    assert [option.name for option in command.params if not option.help] == [], name


@pytest.mark.parametrize(("name", "command"), every_command())
def test_every_example_is_understood_by_its_command(name: str, command: Any) -> None:
    words = shlex.split(command.epilog.removeprefix("Example: ").partition(" > ")[0].rpartition(" | ")[2])
    path = name.split()
    if getattr(command, "commands", None) is None:
        assert words[: len(path)] == path
        command.make_context(name, words[len(path) :])


def test_the_reference_page_is_up_to_date() -> None:
    assert reference.PAGE.read_text("utf-8") == reference.reference(), "run python scripts/cli_reference.py"


def test_every_command_has_its_row_in_the_json_contract() -> None:
    page = (SCRIPTS.parent / "docs" / "json.md").read_text("utf-8")
    leaves = [name for name, command in every_command() if getattr(command, "commands", None) is None]
    assert [name for name in leaves if f"`{name.removeprefix('keepstone ')}`" not in page] == []


def test_home_option_comes_before_the_environment(cli: Command, tmp_path: Path) -> None:
    cli.json("add", "elsewhere", "--home", str(tmp_path / "other"))
    assert not cli.home.exists()
    assert list((tmp_path / "other").rglob("main.ndjson")) != []


@pytest.mark.parametrize(
    ("layout", "log"), [("bmad", "sessions/main.jsonl"), ("cache", "agent_sessions/default/main.ndjson")]
)
def test_a_layout_decides_where_the_log_lies(cli: Command, layout: str, log: str) -> None:
    cli.json("add", "text", "--layout", layout)
    assert (cli.home / log).is_file()


def test_a_language_that_was_named_once_is_remembered(cli: Command) -> None:
    cli.json("add", "Unsere Häuser am See")
    assert cli.json("recall", "Haus")["hits"] == []
    assert len(cli.json("recall", "Haus", "--language", "de")["hits"]) == 1
    assert len(cli.json("recall", "Haus")["hits"]) == 1


def test_a_language_without_a_stemmer_is_bad_input(cli: Command) -> None:
    assert cli.error("add", "text", "--language", "xx") == (2, "invalid_argument")
    assert not cli.home.exists()


def test_an_unknown_layout_is_bad_input(cli: Command) -> None:
    assert cli.error("add", "text", "--layout", "nonsense") == (2, "invalid_argument")


def test_a_home_that_is_a_file_is_reported_without_a_traceback(cli: Command) -> None:
    cli.home.write_text("not a folder", "utf-8")
    result = cli("add", "text")
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True)
    assert cli.home.read_text("utf-8") == "not a folder"
