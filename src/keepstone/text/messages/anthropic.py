"""The messages of Anthropic's Messages API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from keepstone.model import Record
from keepstone.text.messages.converting import Dialect, has_blocks_of, image_url, returned_text, said
from keepstone.text.messages.parts import Part
from keepstone.text.messages.turns import Turn

_BLOCKS = {
    "text": "text",
    "thinking": "signature",
    "redacted_thinking": "data",
    "tool_use": "input",
    "tool_result": "tool_use_id",
    "image": "source",
    "document": "source",
    "search_result": "source",
    "server_tool_use": "input",
    "container_upload": "file_id",
    **dict.fromkeys(
        (
            "web_search_tool_result",
            "web_fetch_tool_result",
            "code_execution_tool_result",
            "bash_code_execution_tool_result",
            "text_editor_code_execution_tool_result",
            "tool_search_tool_result",
        ),
        "tool_use_id",
    ),
}
"""The types of blocks, each with its required key."""
_FOREIGN = frozenset(("index", "annotations", "providerMetadata", "providerOptions", "extras"))
"""Keys that frameworks add to blocks, and that the API rejects."""
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,(.*)", re.DOTALL)
_NOT_OF_IDS = re.compile(r"[^A-Za-z0-9_-]")


def _is_own(content: Any) -> bool:
    return has_blocks_of(content, _BLOCKS) and all(block.keys().isdisjoint(_FOREIGN) for block in content)


def _takes(message: Record) -> bool:
    if message.get("role") not in ("user", "assistant"):
        return False
    if any(message.get(key) for key in ("tool_calls", "parts", "tool_call_id")):
        return False
    content = message.get("content")
    return isinstance(content, str) or _is_own(content)


def _given(message: Record) -> Record:
    if message.get("type") != "message":
        return message
    # A response of the API has an id, model and usage, which a request must not have.
    return {"role": message["role"], "content": message["content"]}


def _write(turn: Turn, own: Record | None) -> Iterator[Record]:
    if turn.role == "system":
        return  # System text goes into a separate field of the request.
    content = [block for part in turn.parts if (block := _block(part, turn, own))]
    if content:
        yield {"role": "assistant" if turn.role == "assistant" else "user", "content": content}


def _block(part: Part, turn: Turn, own: Record | None) -> Record | None:
    is_plain = own is None and part.kind == "text"  # Other providers' text blocks may have other keys.
    # The API's own blocks are returned unchanged, as signatures and citations belong to them.
    if not is_plain and _is_own([part.block]):
        return dict(part.block)
    if part.kind == "call":
        # The API accepts only an object as input.
        value = part.value if isinstance(part.value, dict) else {"input": part.value} if part.value else {}
        return {"type": "tool_use", "id": _id(part.call), "name": part.name, "input": value}
    if part.kind == "result":
        block: Record = {
            "type": "tool_result",
            "tool_use_id": _id(part.call),
            "content": returned_text(part.value),
        }
        return block | {"is_error": True} if part.failed else block
    url = image_url(part) if turn.role == "user" else None
    if url is not None:
        found = _DATA_URL.fullmatch(url)
        source = (
            {"type": "base64", "media_type": found[1], "data": found[2]}
            if found
            else {"type": "url", "url": url}
        )
        return {"type": "image", "source": source}
    text = said(part) if part.kind in ("text", "file") else ""
    # The API rejects a text of white space.
    return {"type": "text", "text": text} if text.strip() else None


def _id(call: str) -> str:
    """Return the id of a call, with ``_`` for characters that the API rejects."""
    return _NOT_OF_IDS.sub("_", call)


MESSAGES = Dialect(_takes, _given, _write, is_alternating=True)
