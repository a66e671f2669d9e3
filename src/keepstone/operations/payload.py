"""The values of a payload that are not in the text of its entry."""

from __future__ import annotations

import json
from typing import Any

from keepstone.model import Entry

_SPEAKERS = frozenset({"speaker", "name", "role"})
"""Keys of the speaker, who is clear from the text or from the conversation."""


def unindexed(entry: Entry) -> list[tuple[str, str]]:
    """Return the keys and values of a payload that are not in the entry's text; non-strings as JSON.

    Examples:
        >>> unindexed(session.add("finding", {"issue": "slow start", "seconds": 14}))
        [('seconds', '14')]
    """
    return [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in entry.data.items()
        if not (key in _SPEAKERS and isinstance(value, str)) and not _is_said(value, entry.text)
    ]


def _is_said(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return value.strip() in text
    if isinstance(value, list | dict):
        items = list(value.values()) if isinstance(value, dict) else value
        return bool(items) and all(_is_said(item, text) for item in items)
    return False
