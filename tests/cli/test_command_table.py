"""The table of commands: help and completion read it in place of the modules."""

from __future__ import annotations

from tests.scripts import script

reference = script("cli_reference")


def test_the_summaries_of_the_commands_are_up_to_date() -> None:
    assert reference.OUTLINE.read_text("utf-8") == reference.outline(), "run python scripts/cli_reference.py"
