"""Cursors: opaque strings that name a position in a paged list."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

T = TypeVar("T")

DEFAULT, MOST = 100, 1000
"""Default and maximum number of items on a page."""


def encode(kind: str, *place: Any) -> str:
    """Return a cursor for a position in a list of this kind."""
    raw = json.dumps([kind, *place], separators=(",", ":")).encode("ascii")
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def decode(kind: str, cursor: str, shape: tuple[type, ...]) -> list[Any]:
    """Return the position that a cursor of this kind encodes.

    Raises:
        ValueError: The string is not a cursor, or is a cursor of another list.
    """
    try:
        found = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (ValueError, RecursionError):
        found = None
    # Compare exact types, as isinstance accepts ``true`` as a number.
    if not isinstance(found, list) or [type(part) for part in found] != [str, *shape] or found[0] != kind:
        raise ValueError(f"{cursor!r:.80} is not a cursor of this list: start without one")
    return found[1:]


def page_of(items: Iterable[T], limit: int) -> tuple[list[T], T | None]:
    """Return the first ``limit`` items, and the last of them if more items follow, else None."""
    # Reading one extra item shows whether there is a next page, without counting the list.
    page = list(islice(items, limit + 1))
    return page[:limit], page[limit - 1] if len(page) > limit else None
