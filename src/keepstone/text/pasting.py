"""Commands of keepstone in messages, completed so that they work when pasted."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_WITH_PLACE = (
    "add compact delete doctor history index purge recall reinstate restore serve supersede update watch"
)
_GROUPS = "agents entries files sessions token"
_COMMAND = re.compile(
    rf"\bkeepstone (?:(?:{'|'.join(_WITH_PLACE.split())})|(?:{'|'.join(_GROUPS.split())}) [a-z-]+)\b"
)


def placed(text: str, options: Iterable[str]) -> str:
    """Return a message whose commands have these options, such as ``--home DIR``.

    Example:
        >>> placed("take it out: keepstone doctor --fix", ["--home", "/srv/my memory"])
        "take it out: keepstone doctor --home '/srv/my memory' --fix"
    """
    words = shlex.join(options)
    return _COMMAND.sub(lambda found: f"{found[0]} {words}", text) if words else text
