"""Commands in messages: separated from the prose, and completed so that they work when pasted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Literal

# The commands are listed again here, as ``text`` does not depend on the command line.
_WITH_PLACE = (
    "add compact delete doctor history index purge recall reinstate restore serve supersede sync update watch"
)
_GROUPS = "agents entries files git sessions token"
_COMMAND = re.compile(
    rf"\bkeepstone (?:(?:{'|'.join(_WITH_PLACE.split())})|(?:{'|'.join(_GROUPS.split())}) [a-z-]+)\b"
)

_OTHERS = "backup export import mcp migrate model notes postgres"
# A command ends before words that continue the sentence; quotes may contain these words.
_ANY = re.compile(
    rf"(?:\bkeepstone (?:{'|'.join(f'{_WITH_PLACE} {_GROUPS} {_OTHERS}'.split())})\b|\bpip install |\bchmod )"
    r"(?:'[^']*'|(?!, |; | and | or | then | \()[^')\n])*"
)
_LOOSE = " ,;:()"
"""Punctuation around a command that is not part of the prose."""


def split_commands(text: str) -> Iterator[tuple[Literal["prose", "command"], str]]:
    """Yield the prose and the commands of a message in order.

    Examples:
        >>> list(split_commands("mend it, or take it out: keepstone doctor --fix"))
        [('prose', 'mend it, or take it out:'), ('command', 'keepstone doctor --fix')]
    """
    end = 0
    for found in _ANY.finditer(text):
        if said := _prose(text[end : found.start()], is_first=not end):
            yield "prose", said
        yield "command", found[0].strip()
        end = found.end()
    if said := _prose(text[end:], is_first=not end):
        yield "prose", said


def _prose(text: str, *, is_first: bool) -> str:
    said = text.strip() if is_first else text.lstrip(_LOOSE).rstrip(" ")
    return said.removesuffix(")") if said.count(")") > said.count("(") and not is_first else said


def placed(text: str, options: Iterable[str]) -> str:
    """Add options, such as ``--home DIR``, to the commands in a message.

    Examples:
        >>> placed("take it out: keepstone doctor --fix", ["--home", "/srv/my memory"])
        "take it out: keepstone doctor --home '/srv/my memory' --fix"
    """
    words = shlex.join(options)
    return _COMMAND.sub(lambda found: f"{found[0]} {words}", text) if words else text
