#!/usr/bin/env python3
"""Write docs/cli.md and src/keepstone/cli/command_table.py from the help of every command.

python scripts/cli_reference.py            # writes both
python scripts/cli_reference.py --check    # says whether they are up to date, with status 1 if not
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from keepstone.cli.app import MODULES, app
from keepstone.cli.command_line import command_line

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
OUTLINE = ROOT / "src" / "keepstone" / "cli" / "command_table.py"
OUTLINE_INTRODUCTION = '''\
"""The module and summary of each command, so that help and a single command load no others.

Written by ``python scripts/cli_reference.py``; a test says when it is out of date.
"""

COMMANDS = {
'''
SETTINGS: dict[str, Any] = {"terminal_width": 80, "help_option_names": ["--help", "-h"]}
INTRODUCTION = """\
# The command

The help of every command, as `--help` shows it. This page is made by
`python scripts/cli_reference.py`; a test says when it is out of date.
What `--json` prints is described in [its contract](json.md).
"""


def commands() -> Iterator[tuple[str, Any, typer.Context]]:
    """Yield each command with its full name and context, a group before its commands."""
    yield from _below(typer.main.get_command(app), "keepstone", None)


def _below(command: Any, name: str, parent: typer.Context | None) -> Iterator[tuple[str, Any, typer.Context]]:
    context = typer.Context(command, info_name=name.rpartition(" ")[2], parent=parent, **SETTINGS)
    yield name, command, context
    for inner in getattr(command, "commands", {}).values():
        yield from _below(inner, f"{name} {inner.name}", context)


def reference() -> str:
    """Return the generated text of the page."""
    return INTRODUCTION + "".join(_section(*found) for found in commands())


def outline() -> str:
    """Return the generated source of the module with the commands' summaries."""
    made = OUTLINE_INTRODUCTION
    for module in MODULES:
        group: Any = typer.main.get_command(command_line((module,)))
        for name, command in group.commands.items():
            summary = json.dumps((command.help or "").partition("\n\n")[0].replace("\n", " "))
            made += f'    "{name}": (\n        "{module}",\n        {summary},\n    ),\n'
    return made + "}\n"


def _section(name: str, command: Any, context: typer.Context) -> str:
    command.rich_markup_mode = None
    lines = (line.rstrip() for line in command.get_help(context).strip().splitlines())
    return f"\n## {name}\n\n```text\n" + "\n".join(lines) + "\n```\n"


def main(arguments: list[str]) -> int:
    """Write both files, or check them; return the exit status."""
    made = {PAGE: reference(), OUTLINE: outline()}
    if arguments == ["--check"]:
        return int(any(path.read_text(encoding="utf-8") != text for path, text in made.items()))
    for path, text in made.items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
