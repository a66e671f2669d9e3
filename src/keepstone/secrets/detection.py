"""Secrets in texts and log lines, found by the table of kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from keepstone.model import Record
from keepstone.secrets.kinds import KINDS, NAME, PASSWORD, Kind, is_real


@dataclass(frozen=True, slots=True)
class Secret:
    """The kind and place of a suspected secret, never its value."""

    kind: str
    where: str
    """The path of keys to the secret, such as ``data.headers[0]``."""


_ENDS_WITH_NAME = re.compile(NAME + r"\Z", re.ASCII)
_WHOLE_VALUE = re.compile(r"[^\s\"'`]{8,4000}", re.ASCII)
_MARKS = tuple(dict.fromkeys(mark for kind in KINDS for mark in kind.marks))
_SHORTEST = 12
"""Minimum characters of a secret, including the name before it."""
UNTOUCHED = frozenset({"ts", "embedding", "batch"})
"""Keys of a log line that have no text from the caller."""


def kinds_in(text: str) -> list[str]:
    """Return the kinds of suspected secrets in a text, each once, in table order.

    Examples:
        >>> kinds_in("push with ghp_" + 9 * "a1B2")
        ['GitHub token']
    """
    return _scan(text)[1]


def _scan(text: str) -> tuple[str, list[str]]:
    """Return a text with its secrets masked, and their kinds."""
    kinds: dict[str, None] = {}
    for kind in _candidates(text):

        def without(found: re.Match[str], kind: Kind = kind) -> str:
            where = "secret" if "secret" in kind.pattern.groupindex else 0
            name = found["name"] if "name" in kind.pattern.groupindex else PASSWORD
            if kind.is_free and not is_real(found[where], name):
                return found[0]
            # The dictionary is an ordered set.
            kinds[kind.name] = None
            begin, end = (place - found.start() for place in found.span(where))
            return found[0][:begin] + placeholder(kind.name) + found[0][end:]

        # Later kinds search the masked text, so that a secret counts as one kind only.
        text = kind.pattern.sub(without, text)
    return text, list(kinds)


def _candidates(text: str) -> list[Kind]:
    """Return the kinds whose marks are in a text, in table order."""
    if len(text) < _SHORTEST:
        return []
    present = {mark for mark in _MARKS if mark in text}
    return [kind for kind in KINDS if not present.isdisjoint(kind.marks)] if present else []


def masked(text: str) -> str:
    """Return a text with placeholders for suspected secrets.

    Examples:
        >>> masked("push with ghp_" + 9 * "a1B2" + ", then rotate it")
        'push with [secret: GitHub token], then rotate it'
    """
    return _scan(text)[0]


def placeholder(name: str) -> str:
    """Return the placeholder for a secret of a kind."""
    return f"[secret: {name}]"


def secrets_in(record: Record) -> Iterator[Secret]:
    """Yield suspected secrets in any text, key or id of a log line, at any depth."""
    for key, value in record.items():
        if key not in UNTOUCHED:
            yield from _secrets_in_value({key: value}, "")


def _secrets_in_value(value: Any, where: str, key: str = "") -> Iterator[Secret]:
    if isinstance(value, str):
        kinds = kinds_in(value) or ([PASSWORD] if is_password(key, value) else [])
        yield from (Secret(kind, where) for kind in kinds)
    elif isinstance(value, dict):
        for name, item in value.items():
            path = f"{where}.{masked(name)}" if where else masked(name)
            yield from (Secret(kind, path) for kind in kinds_in(name))
            yield from _secrets_in_value(item, path, name)
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _secrets_in_value(item, f"{where}[{place}]", key)


def is_password(key: str, value: str) -> bool:
    """Return whether a value counts as a password because of its key."""
    # The pattern for headers begins with the header's name, which is the key here.
    if key.casefold().endswith("authorization"):
        return bool(kinds_in(f"{key}: {value}"))
    named = _ENDS_WITH_NAME.search(key)
    return named is not None and bool(_WHOLE_VALUE.fullmatch(value)) and is_real(value, named["name"])
