"""The origin of a chat message: a person, a model, a tool or the program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from keepstone.model import Record
from keepstone.text.messages.turns import is_item, unwrapped

_SPEAKERS: Mapping[str, str] = {
    **dict.fromkeys(("user", "human", "HumanMessageChunk"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "AIMessageChunk"), "model"),
    **dict.fromkeys(("tool", "function", "ToolMessageChunk"), "tool"),
}
"""Origins by message role, or by type for LangChain's messages; the origin of all others is the program."""
_RESULTS = ("tool_result", "tool-result", "_call_output", "function_result")
"""Suffixes of the types of blocks and items that hold a tool's result."""
_RETURNED = ("output", "outputs", "results", "result", "errorText")
"""Keys of a call that hold its result, if the provider ran the tool itself or the call is done."""
_UNTYPED_RESULTS = frozenset({"functionResponse", "function_response", "toolResult"})
"""Keys that hold a tool's result in parts without a type, such as Gemini's and Bedrock's."""


def said_by(message: Record, kind: object = None) -> str:
    """Return the origin of a message: the least trusted of its role and its parts.

    The origin of a message with a tool's result is the tool. ``kind`` is the type of a message without the
    key ``type``.

    Examples:
        >>> said_by({"role": "user", "content": "Hi"}), said_by({"role": "system", "content": "Be brief"})
        ('user', 'program')
        >>> said_by({"role": "user", "content": [{"type": "tool_result", "content": "42"}]})
        'tool'
    """
    message = unwrapped(message)
    kind = message.get("type", kind)
    role = message.get("role", kind)
    if any(map(_is_result, _blocks(message, kind))):
        return "tool"
    if is_item(message, kind):
        return "model"
    return _SPEAKERS.get(role, "program") if isinstance(role, str) else "program"


def _blocks(message: Record, kind: object) -> Iterator[Mapping[str, Any]]:
    yield {**message, "type": kind}
    for key in ("content", "contents", "parts"):
        found = message.get(key)
        for block in found if isinstance(found, list) else (found,):
            if isinstance(block, Mapping):
                yield block


def _is_result(block: Mapping[str, Any]) -> bool:
    kind = block.get("type")
    if not isinstance(kind, str):
        return not _UNTYPED_RESULTS.isdisjoint(block)
    is_call = kind.startswith("tool-") or kind.endswith("_call") or kind == "dynamic-tool"
    return kind.endswith(_RESULTS) or (is_call and any(block.get(key) for key in _RETURNED))
