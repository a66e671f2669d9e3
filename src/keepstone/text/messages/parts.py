"""The parts of a chat message: content blocks of OpenAI, Anthropic, LangChain and the AI SDK in one form.

The types of the providers' blocks do not overlap, so one table reads them all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from keepstone.model import Record

Kind = Literal["text", "reasoning", "call", "result", "file", "step", "other"]

_DEEPEST = 40
"""Maximum nesting of blocks that are read; deeper blocks are ignored."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of a message."""

    kind: Kind
    text: str = ""
    """The text of a text block, or of the model's reasoning."""
    call: str = ""
    """The id that a tool's call and its result share."""
    name: str = ""
    """The tool's name."""
    value: Any = None
    """A call's arguments, or the tool's result."""
    failed: bool = False
    """Whether a result reports an error."""
    block: Any = None
    """The block as it was given."""


def parts_of(content: Any, depth: int = 0) -> Iterator[Part]:
    """Yield the parts of a message's content: of a text, a block or a list of these."""
    if isinstance(content, str):
        yield Part("text", content, block=content)
    elif isinstance(content, list):
        for block in content if depth < _DEEPEST else ():
            yield from parts_of(block, depth + 1)
    elif isinstance(content, dict):
        # A block without a type, such as a part of Gemini's messages, is read as a text.
        kind = content.get("type")
        yield from _reader_of(content, kind if isinstance(kind, str) else "text")(content)


def _reader_of(block: Record, kind: str) -> Reader:
    if kind in _READERS:
        return _READERS[kind]
    if kind.startswith("tool-"):
        return _tool_of_ui
    # Newer tools follow one pattern: shell_call has an action, apply_patch_call an operation.
    if "call_id" in block and kind.endswith("_call_output"):
        return _result("call_id", "output")
    if "call_id" in block and kind.endswith("_call"):
        return _call("call_id", "type", "action", "operation")
    return _other


def is_block(value: Any) -> bool:
    """Return whether a value is a text or has the form of a content block."""
    if isinstance(value, str):
        return True
    return isinstance(value, dict) and (
        isinstance(value.get("type"), str) or isinstance(value.get("text"), str)
    )


def is_known_block(value: Any) -> bool:
    """Return whether a value is a text or a content block of a type that is read here."""
    if isinstance(value, str):
        return True
    kind = value.get("type") if isinstance(value, dict) else None
    return isinstance(kind, str) and (kind in _READERS or kind.startswith("tool-"))


def arguments_of(value: Any) -> Any:
    """Return the arguments of a call; the JSON text of an object is parsed."""
    if not isinstance(value, str):
        return value
    # A model may write invalid JSON, or nest it so deeply that Python refuses it.
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, dict) else value


def _string(block: Record, *keys: str) -> str:
    """Return the first value of these keys that is a string; empty if there is none."""
    return next((block[key] for key in keys if isinstance(block.get(key), str)), "")


Reader = Callable[[Record], Iterator[Part]]


def _other(block: Record) -> Iterator[Part]:
    yield Part("other", block=block)


def _served(block: Record) -> Iterator[Part]:
    """Read a call of a tool that the provider runs itself: the result is a separate block."""
    yield Part("other", name=_string(block, "name"), value=block.get("input"), block=block)


def _text(kind: Kind, *keys: str) -> Reader:
    def read(block: Record) -> Iterator[Part]:
        yield Part(kind, _string(block, *keys), block=block)

    return read


def _call(id_key: str, name: str, arguments: str, older: str = "") -> Reader:
    def read(block: Record) -> Iterator[Part]:
        value = arguments_of(block.get(arguments, block.get(older)))
        yield Part("call", call=_string(block, id_key), name=_string(block, name), value=value, block=block)

    return read


def _result(id_key: str, value: str, older: str = "") -> Reader:
    def read(block: Record) -> Iterator[Part]:
        found, failed = block.get(value, block.get(older)), block.get("is_error") is True
        if isinstance(found, dict) and "value" in found and isinstance(found.get("type"), str):
            failed, found = found["type"].startswith("error"), found["value"]  # An output of the AI SDK.
        name = _string(block, "toolName", "name")
        yield Part("result", call=_string(block, id_key), name=name, value=found, failed=failed, block=block)

    return read


def _reasoning(block: Record) -> Iterator[Part]:
    found = _string(block, "thinking", "text", "reasoning")
    texts = [part.text for key in ("summary", "content") for part in parts_of(block.get(key) or [])]
    yield Part("reasoning", "\n".join(filter(None, [found, *texts])), block=block)


def _function(block: Record) -> Iterator[Part]:
    """Read a tool call of OpenAI's chat messages."""
    inner = block.get("function", block.get("custom"))
    inner = inner if isinstance(inner, dict) else {}
    value = arguments_of(inner.get("arguments", inner.get("input")))
    yield Part("call", call=_string(block, "id"), name=_string(inner, "name"), value=value, block=block)


def _tool_of_ui(block: Record) -> Iterator[Part]:
    """Read a tool part of an AI SDK UI message, which is a call and, once it is done, its result."""
    kind = str(block["type"])
    name = _string(block, "toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
    call, value = _string(block, "toolCallId"), block.get("input", block.get("rawInput"))
    yield Part("call", call=call, name=name, value=value, block=block)
    if "output" in block:
        yield Part("result", call=call, name=name, value=block["output"], block=block)
    elif "errorText" in block:
        yield Part("result", call=call, name=name, value=block["errorText"], failed=True, block=block)


_READERS: Mapping[str, Reader] = {
    **dict.fromkeys(("text", "input_text", "output_text", "summary_text"), _text("text", "text")),
    "reasoning_text": _text("reasoning", "text"),
    "refusal": _text("text", "refusal"),
    **dict.fromkeys(("thinking", "reasoning"), _reasoning),
    "redacted_thinking": _text("reasoning"),
    "tool_use": _call("id", "name", "input"),
    **dict.fromkeys(("server_tool_use", "mcp_tool_use"), _served),
    "tool_call": _call("id", "name", "args"),
    "tool-call": _call("toolCallId", "toolName", "input", "args"),
    "function_call": _call("call_id", "name", "arguments"),
    "custom_tool_call": _call("call_id", "name", "input"),
    "function": _function,
    "custom": _function,
    "dynamic-tool": _tool_of_ui,
    "tool_result": _result("tool_use_id", "content"),
    "tool-result": _result("toolCallId", "output", "result"),
    "function_call_output": _result("call_id", "output"),
    "custom_tool_call_output": _result("call_id", "output"),
    **dict.fromkeys(
        (
            *("image", "image_url", "input_image", "file", "input_file", "document", "media", "video"),
            *("audio", "input_audio", "file-data", "file-url", "image-data", "image-url"),
        ),
        _text("file"),
    ),
    "image_generation_call": _text("text", "revised_prompt"),
    "step-start": _text("step"),
}
"""The reader of each type of block; blocks of other types are read as ``other``."""
