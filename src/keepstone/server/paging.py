"""Pages of lists: bounded by a number of items and by bytes, with a cursor for the rest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fastapi import Response

from keepstone.operations.documents import Document
from keepstone.server.cursors import decode, encode

T = TypeVar("T")

PAGE_BYTES = 4 * 1024 * 1024
"""Bytes after which a page ends, however few items it has. One item always fits."""
ANSWER_BYTES = 32 * 1024 * 1024
"""Bytes that an answer without pages may have."""


def fitting(documents: Iterable[Document], most: int = PAGE_BYTES) -> list[str]:
    """Return the first documents as JSON: one, and as many more as fit."""
    found: list[str] = []
    size = 0
    for document in documents:
        text = json.dumps(document)
        size += len(text)
        if found and size > most:
            break
        found.append(text)
    return found


def listed(key: str, items: Sequence[str], **others: Any) -> Response:
    """Return an object as a response: a list of items that are JSON already, after the other keys."""
    begin = json.dumps(others)[:-1] + (", " if others else "")
    return Response(f'{begin}"{key}": [{", ".join(items)}]}}', media_type="application/json")


def numbered_page(
    key: str, items: Sequence[T], document: Callable[[T], Document], limit: int, cursor: str | None
) -> Response:
    """Return the page of a list to which nothing is added but at its end."""
    begin = 0 if cursor is None else max(0, decode(key, cursor, (int,))[0])
    page = fitting(map(document, items[begin : begin + limit]))
    end = begin + len(page)
    return listed(key, page, next=encode(key, end) if end < len(items) else None)
