"""Conversion of messages for a provider: accepted messages stay as they were given, others are rewritten."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from keepstone.model import Record
from keepstone.text.messages.pairing import paired
from keepstone.text.messages.parts import Part, is_known_block, parts_of
from keepstone.text.messages.turns import Turn, turns_of


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form in which a provider accepts messages."""

    takes: Callable[[Record], bool]
    """Returns whether a message already has the form."""
    given: Callable[[Record], Record]
    """Returns a message of this form without keys that only a provider's responses have."""
    write: Callable[[Turn, Record | None], Iterator[Record]]
    """Yields a turn as messages. The second argument is the turn's message if it has the form, else None."""
    merges_calls: bool = True
    """Whether consecutive calls must be in one message."""
    is_alternating: bool = False
    """Whether a user's message must come first, and the roles must alternate."""


def converted(messages: Sequence[Record], dialect: Dialect) -> list[Record]:
    """Return messages in the form of a provider, with each tool call and its result together."""
    turns = [turn for place, message in enumerate(messages) for turn in turns_of(message, place)]
    # Turns compare by identity: a turn that ``paired`` shortened or merged is not an original one.
    lengths, original = Counter(turn.source for turn in turns), set(turns)
    if dialect.is_alternating:
        first = next((place for place, turn in enumerate(turns) if turn.role == "user"), len(turns))
        del turns[:first]
    found: list[tuple[Record, bool]] = []
    for place, group in groupby(paired(turns, merge=dialect.merges_calls), lambda turn: turn.source):
        said = list(group)
        own = None if place is None or not dialect.takes(messages[place]) else messages[place]
        # A message is returned as it was given only if all its turns are unchanged.
        if own is not None and len(said) == lengths[place] and original.issuperset(said):
            found.append((dialect.given(own), True))
        else:
            found += ((written, False) for turn in said for written in dialect.write(turn, own))
    return [message for message, _ in (_joined(found) if dialect.is_alternating else found)]


def _joined(found: Sequence[tuple[Record, bool]]) -> list[tuple[Record, bool]]:
    """Join consecutive messages of one role, unless both are as they were given."""
    joined: list[tuple[Record, bool]] = []
    for message, is_given in found:
        if joined and joined[-1][0]["role"] == message["role"] and not (is_given and joined[-1][1]):
            content = [*_blocks(joined[-1][0]["content"]), *_blocks(message["content"])]
            joined[-1] = ({"role": message["role"], "content": content}, False)
        else:
            joined.append((message, is_given))
    return joined


def _blocks(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def has_blocks_of(content: Any, keys: dict[str, str]) -> bool:
    """Return whether a content is a list of blocks of these types, each with its required key."""
    # No block has the key NUL, so a block of an unknown type is rejected.
    return isinstance(content, list) and all(
        isinstance(block, dict) and keys.get(str(block.get("type")), "\0") in block for block in content
    )


def returned_text(value: Any) -> str:
    """Return the result of a tool as one text."""
    if isinstance(value, str):
        return value
    blocks = value if isinstance(value, list) else [value]
    if all(map(is_known_block, blocks)):
        return "\n".join(said(part) for part in parts_of(blocks))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def said(part: Part) -> str:
    """Return the text of a part; for a file, a label with its name, as the provider does not get the file."""
    if part.kind != "file":
        return part.text
    block = part.block
    places = [block, *(block[key] for key in ("file", "source") if isinstance(block.get(key), dict))]
    names = (place[key] for key in ("filename", "title", "name", "url") for place in places if key in place)
    name = next((name for name in names if isinstance(name, str) and not name.startswith("data:")), "")
    return f"[file: {name}]" if name else f"[{block['type']}]"


def arguments_text(value: Any) -> str:
    """Return a call's arguments as the JSON text that OpenAI requires; a string is returned unchanged."""
    return value if isinstance(value, str) else json.dumps({} if value is None else value, ensure_ascii=False)


def image_url(part: Part) -> str | None:
    """Return the URL of an image, a ``data:`` URL if the block holds the image; None for any other part."""
    block = part.block
    if part.kind != "file" or not isinstance(block, dict):
        return None
    source = block["source"] if isinstance(block.get("source"), dict) else block
    kind = next((str(source[key]) for key in _MEDIA_TYPES if key in source), "image/png")
    if "image" not in str(block.get("type")) and not (_has_media_type(source) and kind.startswith("image/")):
        return None
    found = source.get("image_url", source.get("url", source.get("image")))
    url = found.get("url") if isinstance(found, dict) else found
    data = source.get("data", source.get("base64", url))
    if isinstance(url, str) and url.startswith(("http:", "https:", "data:")):
        return url
    return f"data:{kind};base64,{data}" if isinstance(data, str) else None


_MEDIA_TYPES = ("media_type", "mediaType", "mime_type", "mimeType")


def _has_media_type(source: Record) -> bool:
    return any(key in source for key in _MEDIA_TYPES)
