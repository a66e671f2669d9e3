"""Slash commands of the chat, in a terminal and on a page."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BEGINNING = re.compile(r"/[a-z]*")
_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """One command and its help."""

    name: str
    argument: str
    """The argument in the help's notation; empty if the command takes none."""
    help: str
    waits: bool = False
    """Whether the command must wait for the current answer, as it changes the conversation."""


COMMANDS = {
    command.name: command
    for command in (
        Command("memory", "", "all notes: filter, edit, delete, undo, open in your editor"),
        Command("sessions", "", "all sessions: open, new, clear, delete", waits=True),
        Command("new", "", "start a new session", waits=True),
        Command("recall", "QUESTION", "search memory, with explanations"),
        Command("forget", "QUESTION", "search memory, and purge what you choose", waits=True),
        Command("agent", "[NAME]", "talk with another agent, which has its own memory", waits=True),
        Command("context", "[QUESTION]", "the system prompt, as sent or for a question"),
        Command("retry", "", "ask the model again to answer your last message", waits=True),
        Command("theme", "", "dark or light"),
        Command("help", "", "this page"),
        Command("quit", "", "leave; everything is saved"),
    )
}
"""Every command by its name, in the order of the help."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A line that is a command."""

    name: str
    argument: str


def command_of(text: str) -> Typed | None:
    """Parse a line as a command; None for an ordinary message.

    A command is a slash and lower-case letters, alone or before a space: ``/usr/bin`` is a message.

    Examples:
        >>> command_of("/recall which database?")
        Typed(name='recall', argument='which database?')
    """
    found = _COMMAND.fullmatch(text.strip()) if text.startswith("/") else None
    return Typed(found[1], (found[2] or "").strip()) if found else None


def completions(text: str) -> list[Command]:
    """Return the commands whose names begin with the text; none for a text that is not such a prefix.

    Examples:
        >>> [command.name for command in completions("/re")]
        ['recall', 'retry']
    """
    if not _BEGINNING.fullmatch(text):
        return []
    return [command for name, command in COMMANDS.items() if f"/{name}".startswith(text)]
