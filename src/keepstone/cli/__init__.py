"""The command ``keepstone``: a thin way in that calls Home, Agent and Session only.

One module a group of commands. ``command`` makes a function a command,
``options`` holds what commands share, ``screen`` what people see,
``documents`` what ``--json`` prints, and ``failures`` the exit statuses.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command with the arguments of this process, and exit with its status."""
    if sys.argv[1:2] in (["mcp"], ["hook"]):
        # Clients wait for these: the other commands are not loaded.
        from keepstone.cli.command_line import command_line

        app = command_line(["mcp", "hook"])
    else:
        from keepstone.cli.app import app
    app(prog_name="keepstone")
