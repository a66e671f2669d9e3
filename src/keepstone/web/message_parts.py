"""Structured content as parts: texts, tool calls with their arguments, results, and files as chips."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator
from itertools import count
from typing import Any

from keepstone.model import Entry
from keepstone.text.display import clipped, size
from keepstone.text.messages.parts import Part, is_known_block, parts_of
from keepstone.text.messages.turns import is_item, spoken
from keepstone.web.phrases import shown

_LONGEST = 4_000
_MEDIA = ("media_type", "mediaType", "mime_type", "mimeType", "mimetype")
_NAMES = ("filename", "title", "name")
_HELD = frozenset({"content", "parts", "tool_calls"})
"""Keys of a message whose values its parts show."""
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)[^,]*;base64,(.*)", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=-]{256,}")
"""A run of base64 that is longer than names, paths and digests."""
_STANDARD = str.maketrans("-_", "+/")
_DEEPEST = 8
"""Maximum depth of results inside results, and of values inside a file's block."""
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Media types that are shown as images: only bitmaps, which cannot contain scripts."""


def part_views(entry: Entry) -> list[dict[str, Any]]:
    """Return the parts of a structured message; an empty list for any other entry.

    Each image has a number, with which ``image_of`` returns it.
    """
    views, numbers = [], count()
    for view in _views(spoken(entry.data, _kind_of(entry)) or (), 0):
        image = view.pop("image", None)
        views.append(view | {"image": next(numbers)} if image else view)
    return views


def image_of(entry: Entry, number: int) -> tuple[str, bytes] | None:
    """Return the media type and bytes of an entry's image by its number; None if there is no such image."""
    images = [
        view["image"] for view in _views(spoken(entry.data, _kind_of(entry)) or (), 0) if view.get("image")
    ]
    # The number comes from an address, which may be old or typed.
    if number >= len(images):
        return None
    media, data = images[number]
    try:
        # Some data uses the URL-safe alphabet, whose - and _ b64decode would skip, or has no padding.
        return media, base64.b64decode(data.translate(_STANDARD) + "=" * (-len(data) % 4))
    except binascii.Error:
        return None


def is_held(entry: Entry, key: str) -> bool:
    """Return whether the parts of an entry show the value of a key of its payload."""
    kind = _kind_of(entry)
    return spoken(entry.data, kind) is not None and (
        key in _HELD or is_item(entry.data, entry.data.get("type", kind))
    )


def _kind_of(entry: Entry) -> object:
    """Return the entry's type if its payload is flat, and thus has no ``type`` of its own; else None."""
    return None if isinstance(entry.line.get("data"), dict) else entry.type


def _views(parts: Any, depth: int) -> Iterator[dict[str, Any]]:
    for part in parts if depth < _DEEPEST else ():
        if part.kind in ("text", "reasoning"):
            yield from _text(part)
        elif part.kind == "call":
            values = part.value if isinstance(part.value, dict) else {"": part.value}
            arguments = [{"key": shown(key), "value": _value(value)} for key, value in values.items()]
            yield {"kind": "call", "name": shown(part.name), "arguments": arguments}
        elif part.kind == "result":
            yield from _result(part, depth)
        elif part.kind in ("file", "other"):
            yield _file(part.block)


def _text(part: Part) -> Iterator[dict[str, Any]]:
    file = part.text.strip()
    # Some programs put a file into a text part, as a data URL alone. Show this as a chip, like any other
    # file.
    text = "" if _DATA_URL.fullmatch(file) else shown(clipped(part.text, _LONGEST))
    yield {"kind": part.kind, "text": text} if text else _file(file)


def _result(part: Part, depth: int) -> Iterator[dict[str, Any]]:
    blocks = part.value if isinstance(part.value, list) else [part.value]
    is_message = bool(blocks) and not isinstance(part.value, str) and all(map(is_known_block, blocks))
    said = [*_views(parts_of(blocks), depth + 1)] if is_message else []
    files = [view for view in said if view["kind"] == "file"]
    text = "\n".join(view["text"] for view in said if "text" in view and view not in files)
    name = f"{part.name}: {'failed' if part.failed else 'result'}" if part.name else "result"
    yield {"kind": "result", "name": shown(name), "text": text if is_message else _value(part.value)}
    yield from files


def _value(value: Any) -> str:
    """Return a value as text: strings unchanged, other values as JSON; base64 is left out."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shown(clipped(_BASE64.sub("…", text), _LONGEST))


def _file(block: Any) -> dict[str, Any]:
    """Return a file as a chip with its name or media type and its size, such as "image/png, 49 KiB"."""
    found = dict(_strings(block, 0))
    media = next((found[key] for key in _MEDIA if key in found), "")
    name = next((found[key] for key in _NAMES if key in found), "")
    # Providers have different keys for the data, but it is always the longest text of a block.
    data = max(found.values(), key=len, default="")
    if (inline := _DATA_URL.fullmatch(data)) is not None:
        media, data = inline[1], inline[2]
    is_inline = bool(inline) or _BASE64.fullmatch(data) is not None
    address = next((text for text in found.values() if text.startswith(("http:", "https:"))), "")
    kind = media or ("" if name else str(found.get("type", "file")).removesuffix("_url"))
    # Four characters of base64 hold three bytes, so the size is known without decoding.
    parts = (name, kind, size(3 * len(data.rstrip("=")) // 4) if is_inline else address)
    text = clipped(", ".join(filter(None, parts)), 200) or "a part of another kind"
    image = {"image": (media, data)} if is_inline and media in _IMAGES else {}
    return {"kind": "file", "text": shown(text), **image}


def _strings(block: Any, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(block, str):
        yield "text", block
    for key, value in block.items() if isinstance(block, dict) and depth < _DEEPEST else ():
        if isinstance(value, str):
            yield key, value
        else:
            yield from _strings(value, depth + 1)
