"""The text of a chat message that is indexed and shown, without the keys of its blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keepstone.model import Record
from keepstone.text.bounded import joined
from keepstone.text.messages.parts import Part, is_known_block, parts_of
from keepstone.text.messages.turns import spoken

# Far below Python's limit of recursion, which a forged message could reach.
_DEEPEST = 40
_FRAME = frozenset(
    "type id call_id tool_use_id tool_call_id toolCallId status state signature encrypted_content "
    "cache_control sourceId media_type mediaType mime_type mimeType detail file_id container_id server_label "
    "providerMetadata callProviderMetadata providerOptions caller role".split()
)
"""Keys of blocks whose values are not content, neither said by people nor found by tools."""
_ADDRESSES = ("url", "image_url", "image")
_FILE_NAMES = ("filename", "title", "name", "context", "transcript", *_ADDRESSES)
_FILE_KEYS = ("file", "source", "image_url", "input_audio")
"""Keys of a block whose value is an object that describes its file."""
_DATA_URL = re.compile(r"data:[\w.+/-]*(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]*", re.IGNORECASE)
# Base64 of this length has digits and letters of both cases; long words and hexadecimal numbers do not.
_BINARY = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/_-]{256,}={0,2}")
"""One long run of base64."""


def message_text(payload: Record, kind: object) -> str | None:
    """Return the text of a payload that is a message with content blocks or tool calls; None for any other.

    The result has the texts, the reasoning after ``reasoning: ``, the names and argument values of tool
    calls, the results of tools, and the names of files; never base64.

    Args:
        payload: The message.
        kind: The type in the log line, if the line has the payload's keys at its top level.
    """
    parts = spoken(payload, kind)
    return None if parts is None else joined(line for part in parts for line in _lines_of(part, 0))


def _lines_of(part: Part, depth: int) -> Iterator[str]:
    """Yield the text of a part, line by line."""
    if part.kind in ("text", "reasoning"):
        text = _DATA_URL.sub("", part.text) if "base64," in part.text else part.text
        if text:
            yield f"reasoning: {text}" if part.kind == "reasoning" else text
    elif part.name and part.kind != "result":
        said = ", ".join(_values(part.value, depth))
        yield f"{part.name}: {said}" if said else part.name
    elif part.kind == "result":
        yield from _returned(part.value, depth)
    elif part.kind == "file":
        yield from _file(part.block, depth)
    elif part.kind in ("call", "other"):
        yield from _labelled(part.block, "", depth, frame=_FRAME)


def _file(block: Record, depth: int) -> Iterator[str]:
    """Yield the name of a file and its address on the web, and the text of a plain text file."""
    inner = [found for key in _FILE_KEYS if isinstance(found := block.get(key), dict)]
    for place in (block, *inner):
        for key in _FILE_NAMES:
            name = place.get(key)
            if isinstance(name, str) and (key not in _ADDRESSES or name.startswith(("http:", "https:"))):
                yield name
        if place.get("type") == "text" and isinstance(place.get("data"), str):
            yield place["data"]
        if place.get("type") == "content":
            yield from _returned(place.get("content"), depth + 1)


def _returned(value: Any, depth: int) -> Iterator[str]:
    """Yield the result of a tool: texts of blocks, otherwise the values with their keys."""
    blocks = value if isinstance(value, list) else [value]
    if blocks and all(map(is_known_block, blocks)) and not isinstance(value, str):
        for part in parts_of(blocks) if depth < _DEEPEST else ():
            yield from _lines_of(part, depth + 1)
    else:
        yield from _labelled(value, "", depth, frame=frozenset())


def _values(value: Any, depth: int) -> Iterator[str]:
    """Yield the strings and numbers in a call's arguments, without their keys."""
    if isinstance(value, dict | list):
        for item in (value.values() if isinstance(value, dict) else value) if depth < _DEEPEST else ():
            yield from _values(item, depth + 1)
    elif said := _said(value):
        yield said


def _labelled(value: Any, label: str, depth: int, *, frame: frozenset[str]) -> Iterator[str]:
    """Yield the strings and numbers in a value as ``key: value``, without the keys in ``frame``."""
    if isinstance(value, dict):
        is_base64 = value.get("type") == "base64"
        for key, item in value.items() if depth < _DEEPEST and not is_base64 else ():
            if key not in frame:
                yield from _labelled(item, key, depth + 1, frame=frame)
    elif isinstance(value, list):
        for item in value if depth < _DEEPEST else ():
            yield from _labelled(item, label, depth + 1, frame=frame)
    elif said := _said(value):
        yield f"{label}: {said}" if label else said


def _said(value: Any) -> str:
    """Return a string, or a number as text, without base64; empty for any other value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return str(value)
        except ValueError:  # An integer with more digits than Python converts.
            return ""
    if not isinstance(value, str) or (value.isascii() and _BINARY.fullmatch(value)):
        return ""
    return _DATA_URL.sub("", value) if "base64," in value else value
