"""The command ``keepstone``, a thin layer that calls only Home, Agent and Session.

One module per group of commands. ``command`` registers functions as commands, ``options`` has the shared
options, ``screen`` the terminal output, and ``exit_status`` the exit statuses.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command with the arguments of this process and exit with its status."""
    from keepstone.cli.command_line import command_line, outline
    from keepstone.cli.command_table import COMMANDS

    words = sys.argv[1:]
    # The root's help needs only the summaries, which are in a table, so no command is imported.
    if words in (["--help"], ["-h"]):
        app = outline()
    elif set(words) in ({"--version"}, {"--version", "--json"}):
        app = command_line(())
    elif words and words[0] in COMMANDS:
        # Load only this command's module: clients wait for some commands, and git calls one for each file.
        module, _ = COMMANDS[words[0]]
        app = command_line((module,))
    else:
        from keepstone.cli.app import app
    app(prog_name="keepstone")
