"""The table of commands: help and completion read it in place of the modules."""

from __future__ import annotations

from importlib import import_module

import pytest
import typer
from tests.scripts import script

from keepstone.cli.command_table import COMMANDS

reference = script("cli_reference")


def test_the_summaries_of_the_commands_are_up_to_date() -> None:
    assert reference.OUTLINE.read_text("utf-8") == reference.outline(), "run python scripts/cli_reference.py"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_module_of_each_command_has_it(name: str) -> None:
    module = import_module(f"keepstone.cli.{COMMANDS[name][0]}")
    group = typer.main.get_group(module.app)
    assert name in {group.name, *group.commands}
