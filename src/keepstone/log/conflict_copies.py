"""Names that sync services give to the second of two files that were changed at the same time."""

from __future__ import annotations

import re

_COPY = re.compile(
    r"(?P<name>.+?)(?: \([^()]*conflict(?:ed|ing) copy[^()]*\)|\.sync-conflict-\d{8}-\d{6}(?:-\w+)?)",
    re.IGNORECASE,
)
"""Names of copies made by Dropbox, Nextcloud and ownCloud, and those made by Syncthing."""


def original_of(name: str) -> str | None:
    """Return the original's name for the name of a conflicting copy; None for any other name.

    Examples:
        >>> original_of("main (Ada's conflicted copy 2026-01-11)"), original_of("main")
        ('main', None)
    """
    found = _COPY.fullmatch(name)
    return None if found is None else found["name"]
