"""The root command with all groups of commands."""

from __future__ import annotations

from keepstone.cli.command_line import command_line

MODULES = (
    "demo",
    "chat",
    "agent_entries",
    "entries",
    "vouching",
    "expecting",
    "facts",
    "recall",
    "conflicts",
    "suggestions",
    "context",
    "sessions",
    "files",
    "notes",
    "agents",
    "sharing",
    "models",
    "maintenance",
    "databases",
    "serve",
    "mcp",
    "hook",
    "tokens",
    "watch",
    "moving",
    "git",
    "diff",
    "changes",
)
"""The modules of commands, in the order of the help."""

app = command_line(MODULES)
