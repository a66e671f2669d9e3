"""The command ``keepstone``, a thin layer that calls only Home, Agent and Session.

One module per group of commands. ``command`` registers functions as commands, ``options`` has the shared
options, ``screen`` the terminal output, and ``exit_status`` the exit statuses.
"""

from __future__ import annotations


def main() -> None:
    """Run the command with the arguments of this process and exit with its status."""
    from keepstone.cli.app import app

    app(prog_name="keepstone")
