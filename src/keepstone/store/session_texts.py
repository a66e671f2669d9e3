"""The texts in a summary of a session: a title taken from a message, and a preview."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from keepstone.log.line import payload_of, text_of
from keepstone.model import Record
from keepstone.text.display import clipped

FIRST = 8
"""Number of first entries that are searched for the first message of a user."""


_TITLE, _PREVIEW = 80, 160
"""Maximum number of characters of a title taken from a message, and of a preview."""


_USERS = frozenset({"user", "human"})


_CHATS = frozenset({"page", "terminal"})
"""The values of ``via`` for messages that a person writes in a chat of keepstone."""


class SessionTexts(NamedTuple):
    """The texts of a summary."""

    title: str = ""
    """The start of the first message of a user; empty if there is none."""
    preview: str = ""
    """The start of the newest entry's text."""
    is_chat: bool = False
    """Whether a person typed the first message of a user in a chat of keepstone."""


def texts_of(first: Iterable[Record], newest: str) -> SessionTexts:
    """Return the texts of a session's summary from its first entries and the text of its newest entry."""
    preview = _start(newest, _PREVIEW)
    for record in first:
        if payload_of(record).get("role") in _USERS:
            origin = record.get("origin")
            is_chat = isinstance(origin, dict) and origin.get("by") == "user" and origin.get("via") in _CHATS
            return SessionTexts(_start(_words(record), _TITLE), preview, is_chat)
    return SessionTexts(preview=preview)


def _words(record: Record) -> str:
    """Return a message without its speaker."""
    content = payload_of(record).get("content")
    return content if isinstance(content, str) else text_of(record)


def _start(text: str, length: int) -> str:
    """Return the start of a text on one line, cut between words if possible."""
    words = " ".join(text.split())
    end = words.rfind(" ", length // 2, length)
    return clipped(words, length if len(words) <= length or end < 0 else end + 1)
