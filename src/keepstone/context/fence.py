"""Entries between two tags with a name that no memory holds, so that none can close its fence."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from itertools import count

from keepstone.context.mentions import neutralised
from keepstone.model import Entry

FRAME = "<memory-9>\n</memory-9>\n"
"""About what a fence adds to its lines."""
_IGNORED = frozenset({"Cc", "Cf", "Mn", "Zs", "Zl", "Zp"})
"""Characters that show nothing: a reader may take a tag with one in it for the tag."""
_ASCII_IGNORED = dict.fromkeys([*range(0x21), 0x7F])
_SLASHES = str.maketrans("\u2044\u2215", "//")


def line_of(entry: Entry, text: str, *, with_id: bool = False) -> str:
    """Return the line that shows an entry by ``text``: with its date, session and type before it."""
    lines = "\n  ".join(text.splitlines())
    names = [entry.session, entry.type, *([entry.id] if with_id else [])]
    head = ", ".join([f"{entry.ts:%Y-%m-%d}", *(" ".join(name.split()) for name in names)])
    return neutralised(f"- [{head}] {lines}\n")


def fenced(pieces: Sequence[str]) -> str:
    """Return pieces of text between the tags of a fence, nothing if there are none.

    The name is the same for the same pieces, and nearly always ``memory``.
    """
    if not pieces:
        return ""
    name = _name_for("".join(pieces))
    return f"<{name}>\n{''.join(pieces)}</{name}>\n"


def _name_for(text: str) -> str:
    shown = _shown(text)
    return next(name for name in _names() if f"/{name}" not in shown)


def _shown(text: str) -> str:
    """Return what a reader may see in a text: one letter for its variants, nothing that shows nothing."""
    # A reader may take </Memory > for the end too, or one with full-width letters, accents or joiners.
    if text.isascii():
        return text.casefold().translate(_ASCII_IGNORED)
    plain = unicodedata.normalize("NFKD", text).casefold().translate(_SLASHES)
    return "".join(letter for letter in plain if unicodedata.category(letter) not in _IGNORED)


def _names() -> Iterator[str]:
    yield "memory"
    yield from (f"memory-{number}" for number in count(2))
