"""The command as a whole: help, examples, reference page, version, layouts."""

from __future__ import annotations

import os
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from tests.scripts import SCRIPTS, script
from typer.testing import CliRunner

from keepstone.cli.app import app
from keepstone.cli.command_line import outline
from keepstone.embed.catalogue import MINILM
from keepstone.filesystem.layout import FORMAT
from keepstone.index.database import SCHEMA

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


def test_the_summaries_of_the_commands_are_up_to_date() -> None:
    assert reference.OUTLINE.read_text("utf-8") == reference.outline(), "run python scripts/cli_reference.py"


def test_the_help_of_the_outline_is_that_of_all_commands() -> None:
    full, short = (CliRunner().invoke(made, ["--help"], prog_name="keepstone") for made in (app, outline()))
    assert (short.exit_code, short.output) == (0, full.output)


def test_every_command_has_its_row_in_the_json_contract() -> None:
    page = (SCRIPTS.parent / "docs" / "json.md").read_text("utf-8")
    leaves = [name for name, command in every_command() if getattr(command, "commands", None) is None]
    assert [name for name in leaves if f"`{name.removeprefix('keepstone ')}`" not in page] == []


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_given_for_the_whole_and_for_each_group(cli: Command, option: str) -> None:
    for group in ((), ("sessions",), ("files",), ("agents",)):
        result = cli(*group, option)
        assert (result.exit_code, "Example" in result.stdout) == (0, True)


def test_the_version_is_shown_without_a_home(cli: Command) -> None:
    result = cli("--version")
    assert (result.exit_code, result.stdout.startswith("keepstone ")) == (0, True)
    assert not cli.home.exists()


def test_json_of_the_version_names_library_formats_sqlite_and_models(cli: Command) -> None:
    assert list(cli.json("--version")) == ["library", "format", "index", "sqlite", "python", "models"]
    assert not cli.home.exists()


def test_json_of_the_version_has_what_the_parts_say(cli: Command) -> None:
    found = cli.json("--version")
    assert (found["library"], found["format"]) == (version("keepstone"), FORMAT)
    assert (found["index"], found["sqlite"]) == (SCHEMA, apsw.sqlite_lib_version())


def test_version_names_a_model_only_once_it_is_installed(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_MODELS", str(tmp_path))
    assert cli.json("--version")["models"] == {}
    (tmp_path / "minilm").mkdir()
    for file in MINILM.files:
        (tmp_path / "minilm" / file.name).touch()
        os.truncate(tmp_path / "minilm" / file.name, file.size)  # A hole: it takes no room on the disk.
    assert cli.json("--version")["models"] == {"minilm": "0.1.0"}


def test_json_before_a_command_is_refused(cli: Command) -> None:
    result = cli("--json", "recall", "x")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--json" in result.stderr


@pytest.mark.parametrize(
    "words", [["nonsense"], ["add", "x", "--nonsense"], ["recall"], ["sessions", "nonsense"]]
)
def test_a_wrong_command_line_is_refused_with_the_way_to_the_help(cli: Command, words: list[str]) -> None:
    result = cli(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("error: ")
    assert "--help" in result.stderr


def test_json_behind_a_double_dash_is_a_text(cli: Command) -> None:
    result = cli("recall", "--", "--json", "--too-many")
    assert (result.exit_code, result.stderr.startswith("error: ")) == (2, True)


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


def test_a_question_keeps_its_mark_before_the_way_to_the_help(cli: Command) -> None:
    told = cli("recal", "x").stderr
    assert told == "error: No such command 'recal'. Did you mean 'recall'? See: keepstone --help\n"
