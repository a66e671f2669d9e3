"""The slash commands and the help page."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """One command and its help."""

    name: str
    argument: str
    """The argument in the help's notation; empty if it takes none."""
    help: str
    waits: bool = False
    """Whether it must wait for the current answer, as it changes the conversation."""


COMMANDS = {
    command.name: command
    for command in (
        Command("memory", "", "all notes: filter, delete, undo, open in your editor"),
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

    Example:
        >>> command_of("/recall which database?")
        Typed(name='recall', argument='which database?')
    """
    found = _COMMAND.fullmatch(text.strip()) if text.startswith("/") else None
    return Typed(found[1], (found[2] or "").strip()) if found else None


def help_text() -> str:
    """Return the text of the help page."""
    shown = [(f"/{command.name} {command.argument}".rstrip(), command.help) for command in COMMANDS.values()]
    lines = [f"{name:<20} {words}" for name, words in shown]
    return "\n".join((_HELP, *lines, "", _KEYS))


_HELP = """\
Write a message and press Enter. It is stored before it is answered, and answers draw on earlier sessions.

A message that starts with # is a note: choose whether it is for this project (AGENTS.md) or for you in all \
projects. Every request to the model includes both files.
"""
_KEYS = """\
Enter                send
Ctrl+J               new line in the message
Esc, Ctrl+C          stop the answer; Esc also closes a page
PageUp, PageDown     scroll
Ctrl+Q               leave"""
