"""The turns of a chat message: roles and their parts. A tool's results are a separate turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keepstone.model import Record
from keepstone.text.messages.parts import Part, is_block, parts_of

Role = Literal["system", "user", "assistant", "tool"]

_ROLES: Mapping[str, Role] = {
    **dict.fromkeys(("system", "developer", "SystemMessageChunk"), "system"),
    **dict.fromkeys(("assistant", "ai", "model", "AIMessageChunk"), "assistant"),
    **dict.fromkeys(("tool", "function", "ToolMessageChunk"), "tool"),
}
"""Roles of turns by message role, or by type for LangChain's messages; all other messages are the user's."""
_LANGCHAIN = ("human", "ai", "system", "tool", "function", "chat", "developer")
_ITEM_KEYS = frozenset(("call_id", "action", "arguments", "code", "input", "output", "queries", "result"))


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """Consecutive parts of one role, from one message or several."""

    role: Role
    parts: tuple[Part, ...]
    source: int | None
    """The index of the turn's message; None if the turn is from several messages."""


def is_item(message: Record, kind: object) -> bool:
    """Return whether a message is an item of OpenAI's Responses API that has no role, such as a tool call."""
    if not isinstance(kind, str) or "role" in message:
        return False
    if kind == "reasoning":
        return "summary" in message or "encrypted_content" in message
    return kind.endswith(("_call", "_call_output")) and not message.keys().isdisjoint(_ITEM_KEYS)


def unwrapped(message: Record) -> Record:
    """Return the message inside an object from LangChain's ``messages_to_dict``, or the message itself."""
    inner = message.get("data")
    if message.get("type") in _LANGCHAIN and isinstance(inner, dict) and "content" in inner:
        return {"type": message["type"], **inner}
    return message


def spoken(payload: Record, kind: object = None) -> list[Part] | None:
    """Return the parts of a message with blocks or tool calls; None for a plain text and any other payload.

    ``kind`` is the type of a payload without the key ``type``.
    """
    message = unwrapped(payload)
    kind = message.get("type", kind)
    if is_item(message, kind):
        return list(parts_of({**message, "type": kind}))
    content = _content(message)
    has_calls = any(isinstance(call, dict) for call in tool_calls_of(message))
    has_blocks = isinstance(content, list) and bool(content) and all(map(is_block, content))
    is_wrapped = message is not payload and isinstance(content, str)
    if has_blocks or is_wrapped or (has_calls and not isinstance(content, dict)):
        return list(_parts(message, kind, content))
    return None


def _content(message: Record) -> Any:
    """Return the blocks or the text of a message."""
    parts = message.get("parts")
    is_blocks = isinstance(parts, list) and bool(parts) and all(isinstance(part, dict) for part in parts)
    return parts if is_blocks and all(map(is_block, parts or ())) else message.get("content")


def _parts(message: Record, kind: object, content: Any) -> Iterator[Part]:
    call = message.get("tool_call_id")
    if isinstance(call, str) and _role_of(message, kind) == "tool":
        failed = message.get("status") == "error"
        yield Part("result", call=call, name=_name(message), value=content, failed=failed, block=message)
        return
    if isinstance(message.get("reasoning_content"), str):
        yield Part("reasoning", message["reasoning_content"])
    seen = set()
    for part in parts_of(content):
        seen.add(part.call)
        yield part
    for key in ("refusal", "audio"):
        found = message.get(key)
        text = found.get("transcript") if isinstance(found, dict) else found
        if isinstance(text, str):
            yield Part("text", text)
    for found in tool_calls_of(message):
        # In LangChain's messages ``tool_calls`` repeats the calls that are in the content blocks.
        yield from (part for part in parts_of(_as_block(found)) if part.call not in seen)


def tool_calls_of(message: Record) -> list[Any]:
    """Return the ``tool_calls`` of a message."""
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def _as_block(call: Any) -> Any:
    """Return a message's tool call as a block; some programs write calls without a type."""
    if not isinstance(call, dict) or isinstance(call.get("type"), str):
        return call
    return {**call, "type": "function" if "function" in call else "tool_call"}


def _name(message: Record) -> str:
    name = message.get("name")
    return name if isinstance(name, str) else ""


def turns_of(payload: Record, source: int = 0) -> list[Turn]:
    """Return a message as turns, with the results of tools after their calls."""
    message = unwrapped(payload)
    kind = message.get("type")
    if is_item(message, kind):
        return list(_split("assistant", parts_of(message), source))
    return list(_split(_role_of(message, kind), _parts(message, kind, _content(message)), source))


def _role_of(message: Record, kind: object) -> Role:
    named = message.get("role", kind)
    return _ROLES.get(named, "user") if isinstance(named, str) else "user"


def _split(role: Role, parts: Iterable[Part], source: int) -> Iterator[Turn]:
    said: list[Part] = []
    results: list[Part] = []
    for part in parts:
        if part.kind == "result":
            results.append(part)
            continue
        # The AI SDK writes each call with its result. Calls of one step stay one turn, their results another.
        if results and part.kind != "call":
            yield from _turns(role, said, results, source)
            said, results = [], []
        if part.kind != "step":
            said.append(part)
    yield from _turns(role, said, results, source)


def _turns(role: Role, said: list[Part], results: list[Part], source: int) -> Iterator[Turn]:
    if said:
        # A tool's turn holds only results; the other parts of a tool's message become a turn of the user.
        yield Turn("user" if role == "tool" else role, tuple(said), source)
    if results:
        yield Turn("tool", tuple(results), source)
