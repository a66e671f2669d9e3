"""The indexed text of messages whose parts are in a framework's own format."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from keepstone.model import Record
from keepstone.text.messages.indexed import message_text

STATE: Mapping[str, Any] = MappingProxyType({"text": "", "expires": "1970-01-01T00:00:00Z"})
"""Keys of entries that hold a framework's state; they hide the entries from searches and contexts."""


def said(text: object) -> Record:
    """Return a block for a text."""
    return {"type": "text", "text": str(text or "")}


def called(name: object, arguments: Any) -> Record:
    """Return a block for a tool call; its text is the tool's name and the values of the arguments."""
    return {"type": "tool_use", "name": str(name), "input": arguments}


def returned(value: Any) -> Record:
    """Return a block for a tool's result."""
    return {"type": "tool_result", "content": dict(value) if isinstance(value, Mapping) else value}


def text_of_blocks(blocks: Iterable[Record], speaker: str | None = None) -> str:
    r"""Return the text of blocks, with the speaker, if given, before it.

    Examples:
        >>> text_of_blocks([said("On it"), called("weather", {"city": "Bern"})], "assistant")
        'assistant: On it\nweather: Bern'
    """
    text = message_text({"role": "user", "content": list(blocks)}, None) or ""
    return f"{speaker}: {text}" if speaker else text
