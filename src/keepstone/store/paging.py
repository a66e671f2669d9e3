"""Pages of a store's lists, and the cursors from one page to the next."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from keepstone.model import COLUMNS, Entry, html_table

T = TypeVar("T")


class Page(list[T]):
    """A part of a list.

    Attributes:
        next: The cursor of the next page, or None if this is the last page.
    """

    def __init__(self, items: Iterable[T] = (), next: str | None = None) -> None:  # noqa: A002
        super().__init__(items)
        self.next = next

    def _repr_html_(self) -> str:
        entries = [item for item in self if isinstance(item, Entry)]
        columns = COLUMNS if entries else ("item",)
        rows = [item.cells() if isinstance(item, Entry) else (repr(item),) for item in self]
        more = "" if self.next is None else ", more follow"
        return html_table(f"page of {len(self):,}{more}", columns, rows)


def first_page(items: Iterable[T], limit: int | None, place: Callable[[T], list[Any]]) -> Page[T]:
    """Return a page of the first items, with the last item's place as cursor if there are more.

    At most ``limit + 1`` items are read.
    """
    if limit is None:
        return Page(items)
    found = list(islice(items, limit + 1))
    if len(found) <= limit or not limit:
        return Page(found[:limit])
    return Page(found[:limit], encode(*place(found[limit - 1])))


def pages(fetch: Callable[[str | None], Page[T]]) -> Iterator[T]:
    """Yield the items of all pages; ``fetch`` takes a cursor, or None for the first page."""
    cursor = None
    while True:
        page = fetch(cursor)
        yield from page
        if page.next is None:
            return
        cursor = page.next


def encode(*place: Any) -> str:
    """Return a place in a list as a cursor.

    Examples:
        >>> decode(encode("main", 7), str, int)
        ['main', 7]
    """
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def decode(cursor: str, *kinds: type) -> list[Any]:
    """Return the place in a cursor; raise ValueError if the cursor belongs to another kind of list."""
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor.encode()))
    except (ValueError, RecursionError):
        place = None
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds):
        raise ValueError(f"{cursor!r:.80} is not a cursor of this list; use the one that a page of it gave")
    return place
