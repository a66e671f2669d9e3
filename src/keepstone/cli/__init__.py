"""The command ``keepstone``, a thin layer that calls only Home, Agent and Session.

One module per group of commands. ``command`` registers functions as commands, ``options`` has the shared
options, ``screen`` the terminal output, and ``exit_status`` the exit statuses.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command with the arguments of this process and exit with its status."""
    if sys.argv[1:2] in (["mcp"], ["hook"], ["git"]):
        # Clients wait for these, and git calls its driver for each file: the other commands are not loaded.
        from keepstone.cli.command_line import command_line

        app = command_line(["mcp", "hook", "git"])
    else:
        from keepstone.cli.app import app
    app(prog_name="keepstone")
