"""The messages of OpenAI's Chat Completions, and the items of its Responses API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from keepstone.model import Record
from keepstone.text.messages.converting import (
    Dialect,
    arguments_text,
    has_blocks_of,
    image_url,
    returned_text,
    said,
)
from keepstone.text.messages.pairing import calls_of
from keepstone.text.messages.parts import Part
from keepstone.text.messages.turns import Turn, is_item, tool_calls_of

_ITEM_ROLES = ("developer", "system", "user", "assistant")
_CHAT_ROLES = (*_ITEM_ROLES, "tool", "function")
_CHAT_BLOCKS = {
    "text": "text",
    "image_url": "image_url",
    "input_audio": "input_audio",
    "file": "file",
    "refusal": "refusal",
}
_ITEM_BLOCKS = {
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    # An image or a file has one of several keys, so none of them is required.
    "input_image": "type",
    "input_file": "type",
}
_OTHERS = frozenset(("parts", "tool_call_id"))


def is_of_responses(message: Record) -> bool:
    """Return whether only the Responses API accepts a message."""
    if is_item(message, message.get("type")):
        return True
    # Both APIs accept plain text, so it does not show the API.
    content = message.get("content")
    return bool(content) and _takes_item(message) and not isinstance(content, str)


def _takes_item(message: Record) -> bool:
    if is_item(message, message.get("type")):
        return True
    content = message.get("content")
    is_said = isinstance(content, str) or has_blocks_of(content, _ITEM_BLOCKS)
    return (
        is_said and message.get("role") in _ITEM_ROLES and message.keys().isdisjoint({*_OTHERS, "tool_calls"})
    )


def _given_item(item: Record) -> Record:
    if "role" in item and item.get("type") != "message":
        return item
    # A request must not have keys that are empty in the response.
    return {key: value for key, value in item.items() if value is not None}


def _write_items(turn: Turn, _: Record | None) -> Iterator[Record]:
    content: list[Record] = []
    for part in turn.parts:
        url = image_url(part) if turn.role == "user" else None
        if url is not None:
            content.append({"type": "input_image", "image_url": url, "detail": "auto"})
        elif part.kind in ("text", "file") and said(part):
            content.append({"type": "input_text", "text": said(part)})
    if all(block["type"] == "input_text" for block in content):
        text = "\n".join(block["text"] for block in content)
        yield from [{"role": turn.role, "content": text}] if text else []
    else:
        yield {"role": turn.role, "content": content}
    # Calls and results are separate items after the message.
    for part in turn.parts:
        if part.kind == "call":
            arguments = arguments_text(part.value)
            yield {"type": "function_call", "call_id": part.call, "name": part.name, "arguments": arguments}
        elif part.kind == "result":
            output = returned_text(part.value)
            yield {"type": "function_call_output", "call_id": part.call, "output": output}


def _takes_chat(message: Record) -> bool:
    role, content = message.get("role"), message.get("content")
    if role not in _CHAT_ROLES or "parts" in message:
        return False
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        return False
    is_said = isinstance(content, str) or (content is None and role == "assistant")
    return (is_said or has_blocks_of(content, _CHAT_BLOCKS)) and all(map(_is_call, tool_calls_of(message)))


def _is_call(call: Any) -> bool:
    return isinstance(call, dict) and isinstance(call.get(str(call.get("type"))), dict)


def _given_chat(message: Record) -> Record:
    # The API rejects an empty list of calls.
    if message.get("tool_calls", True):
        return message
    return {key: value for key, value in message.items() if key != "tool_calls"}


def _write_chat(turn: Turn, own: Record | None) -> Iterator[Record]:
    if turn.role == "tool":
        for part in turn.parts:
            yield {"role": "tool", "tool_call_id": part.call, "content": returned_text(part.value)}
        return
    calls = [part.block if _is_call(part.block) else _chat_call(part) for part in calls_of(turn)]
    if own is not None:  # The whole message except some of its calls.
        message = {key: value for key, value in own.items() if key != "tool_calls"}
    else:
        content = _chat_content(turn)
        message = {"role": turn.role, "content": content or None}
    if calls:
        message["tool_calls"] = calls
    if calls or message.get("content"):
        yield message


def _chat_call(part: Part) -> Record:
    function = {"name": part.name, "arguments": arguments_text(part.value)}
    return {"id": part.call, "type": "function", "function": function}


def _chat_content(turn: Turn) -> Any:
    """Return a text, or a list of blocks if there are images."""
    content: list[Record] = []
    for part in turn.parts:
        url = image_url(part) if turn.role == "user" else None
        if url is not None:
            content.append({"type": "image_url", "image_url": {"url": url}})
        elif part.kind in ("text", "file") and said(part):
            content.append({"type": "text", "text": said(part)})
    if all(block["type"] == "text" for block in content):
        return "\n".join(block["text"] for block in content)
    return content


RESPONSES = Dialect(_takes_item, _given_item, _write_items, merges_calls=False)
CHAT = Dialect(_takes_chat, _given_chat, _write_chat)
