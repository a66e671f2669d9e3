"""The texts in a summary of a session: a title taken from a message, and a preview."""

from __future__ import annotations

from collections.abc import Iterable

from keepstone.log.line import payload_of, text_of
from keepstone.model import Record
from keepstone.text.display import clipped

FIRST = 8
"""Entries among which the first message of a user is looked for."""


_TITLE, _PREVIEW = 80, 160
"""Characters of a title taken from a message, and of a preview."""


_USERS = frozenset({"user", "human"})


def texts_of(first: Iterable[Record], newest: str) -> tuple[str, str]:
    """Return the start of the first user's message among some entries, and of the newest entry's text."""
    said = (_words(record) for record in first if payload_of(record).get("role") in _USERS)
    return _start(next(said, ""), _TITLE), _start(newest, _PREVIEW)


def _words(record: Record) -> str:
    """Return a message without its speaker."""
    content = payload_of(record).get("content")
    return content if isinstance(content, str) else text_of(record)


def _start(text: str, length: int) -> str:
    """Return the start of a text on one line, cut between words where it has some."""
    words = " ".join(text.split())
    end = words.rfind(" ", length // 2, length)
    return clipped(words, length if len(words) <= length or end < 0 else end + 1)
