"""The help page of the slash commands."""

from __future__ import annotations

from keepstone.chat.slash import COMMANDS, Command, Typed, command_of

__all__ = ["COMMANDS", "Command", "Typed", "command_of", "help_text"]


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
Up, Down             earlier messages
Tab                  complete a command
Esc, Ctrl+C          stop the answer; Esc also closes a page
PageUp, PageDown     scroll
Ctrl+Q               leave; so does Ctrl+C twice"""
