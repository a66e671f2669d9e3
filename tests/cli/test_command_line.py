"""The frame in which every command runs: help, errors, and the place of ``--json``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from keepstone.cli.app import app
from keepstone.cli.command_line import outline

if TYPE_CHECKING:
    from .conftest import Command


def test_the_help_of_the_outline_is_that_of_all_commands() -> None:
    full, short = (CliRunner().invoke(made, ["--help"], prog_name="keepstone") for made in (app, outline()))
    assert (short.exit_code, short.output) == (0, full.output)


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_is_given_for_the_whole_and_for_each_group(cli: Command, option: str) -> None:
    for group in ((), ("sessions",), ("files",), ("agents",)):
        result = cli(*group, option)
        assert (result.exit_code, "Example" in result.stdout) == (0, True)


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


def test_a_question_keeps_its_mark_before_the_way_to_the_help(cli: Command) -> None:
    told = cli("recal", "x").stderr
    assert told == "error: No such command 'recal'. Did you mean 'recall'? See: keepstone --help\n"
