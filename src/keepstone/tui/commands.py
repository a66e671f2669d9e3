"""What may be typed after a slash."""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMAND = re.compile(r"/([a-z]+)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    """One command as the help shows it."""

    name: str
    argument: str
    """What follows the name, in the help's notation; empty if nothing may."""
    help: str
    waits: bool = False
    """Whether it has to wait until an answer has come to its end, as it changes the conversation."""


COMMANDS = {
    command.name: command
    for command in (
        Command("memory", "", "all notes: filter, delete, undo, open in your editor"),
        Command("sessions", "", "all sessions: open, new, clear, delete", waits=True),
        Command("new", "", "begin a new session", waits=True),
        Command("recall", "QUESTION", "what memory finds, and why"),
        Command("forget", "QUESTION", "choose what memory finds, and remove every byte of it", waits=True),
        Command("agent", "[NAME]", "talk with another agent, which has a memory of its own", waits=True),
        Command("context", "[QUESTION]", "the system prompt, as sent or for a question"),
        Command("retry", "", "ask the model again for an answer to your last message", waits=True),
        Command("theme", "", "dark or light"),
        Command("help", "", "this page"),
        Command("quit", "", "leave; everything is kept"),
    )
}
"""Every command by its name, in the order of the help."""


@dataclass(frozen=True, slots=True)
class Typed:
    """A line that is a command."""

    name: str
    argument: str


def command_of(text: str) -> Typed | None:
    """Return the command that a line is, None for an ordinary message.

    A command is a slash and lower-case letters, alone or before a space: ``/usr/bin`` is a message.

    Example:
        >>> command_of("/recall which database?")
        Typed(name='recall', argument='which database?')
    """
    found = _COMMAND.fullmatch(text.strip()) if text.startswith("/") else None
    return Typed(found[1], (found[2] or "").strip()) if found else None


def help_text() -> str:
    """Return the page that ``/help`` shows."""
    shown = [(f"/{command.name} {command.argument}".rstrip(), command.help) for command in COMMANDS.values()]
    lines = [f"{name:<20} {words}" for name, words in shown]
    return "\n".join((_HELP, *lines, "", _KEYS))


_HELP = """\
Write a message and press Enter. It is stored before it is answered, and the answer knows what was said \
in earlier sessions.

A message that begins with # is a note: you are asked whether it is for this project (AGENTS.md) or for you \
in all projects. Every request to the model holds both files.
"""
_KEYS = """\
Enter                send
Ctrl+J               a new line in the message
Esc, Ctrl+C          stop the answer that is coming; Esc closes a page
PageUp, PageDown     scroll
Ctrl+Q               leave"""
