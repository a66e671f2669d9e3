"""Pages of lists: limited by items and bytes, with a cursor for the next page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from fastapi import Response

from keepstone.operations.documents import Document
from keepstone.server.cursors import decode, encode

T = TypeVar("T")

PAGE_BYTES = 4 * 1024 * 1024
"""Maximum bytes of a page. A page with a single item may be larger."""
ANSWER_BYTES = 32 * 1024 * 1024
"""Maximum bytes of a response that is not paged."""


def fitting(documents: Iterable[Document], most: int = PAGE_BYTES) -> list[str]:
    """Return the first documents as JSON: as many as fit into ``most`` bytes, but at least one."""
    found: list[str] = []
    size = 0
    for document in documents:
        # json.dumps escapes all non-ASCII characters, so the characters counted here equal the bytes sent.
        text = json.dumps(document)
        size += len(text)
        if found and size > most:
            break
        found.append(text)
    return found


def all_fitting(documents: Sequence[Document], noun: str, remedy: str) -> list[str]:
    """Return all documents as JSON.

    Raises:
        ValueError: They do not fit into an answer.
    """
    found = fitting(documents, ANSWER_BYTES)
    if len(found) < len(documents):
        raise ValueError(
            f"the first {len(found)} of {len(documents)} {noun} take {ANSWER_BYTES // 2**20} MiB: "
            f"request fewer with {remedy}"
        )
    return found


def listed(key: str, items: Sequence[str], **others: Any) -> Response:
    """Return a JSON object as a response: the other keys, then a list of items that are JSON texts."""
    # The items are already JSON, because their size was measured; parsing and dumping them again would double
    # the work.
    begin = json.dumps(others)[:-1] + (", " if others else "")
    return Response(f'{begin}"{key}": [{", ".join(items)}]}}', media_type="application/json")


def numbered_page(
    key: str, items: Sequence[T], document: Callable[[T], Document], limit: int, cursor: str | None
) -> Response:
    """Return a page of a list that grows only at its end."""
    begin = 0 if cursor is None else max(0, decode(key, cursor, (int,))[0])
    page = fitting(map(document, items[begin : begin + limit]))
    end = begin + len(page)
    return listed(key, page, next=encode(key, end) if end < len(items) else None)
