"""Models of Anthropic, with a mark in the prompt up to which it is kept for the next request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keepstone.chat.endpoint import NO_ANSWER, RETRIES, SILENCE, Endpoint, broken_off, check_package
from keepstone.chat.messages import Message, Piece, Prompt, Request, ToolCall

if TYPE_CHECKING:
    from anthropic import Anthropic

_LONGEST = 4096
"""Tokens of an answer."""
_KEPT = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel:
    """Asks Anthropic's API for messages.

    The cache breakpoint stands after the stable part of the prompt, so tools and notes are read once.

    Raises:
        ModelError: The package ``anthropic`` is not installed.
    """

    def __init__(self, endpoint: Endpoint, *, uses_tools: bool = True) -> None:
        check_package("anthropic")
        self.name = endpoint.name
        self.uses_tools = uses_tools
        self._endpoint = endpoint
        self._client: Anthropic | None = None

    def answer(self, request: Request) -> Iterator[Piece]:
        """Yield the answer as it comes; see ``ChatModel``."""
        from anthropic import AnthropicError

        failures: tuple[type[Exception], ...] = (AnthropicError, *broken_off())
        reading = _Reading()
        try:
            for event in self._stream(request):
                yield from reading.take(event)
        except failures as error:
            # What the server said may repeat the key, and so may what is chained to it.
            raise self._endpoint.failure(error) from None
        except NO_ANSWER as error:
            raise self._endpoint.cut(f"it sent what is no answer ({type(error).__name__})") from None
        if not reading.ended:
            raise self._endpoint.cut()
        if reading.reason == "max_tokens":
            raise self._endpoint.cut(f"the answer reached {_LONGEST:,} tokens")
        yield from reading.calls()

    def _stream(self, request: Request) -> Iterator[Any]:
        more: dict[str, Any] = {"tools": request.tools.definitions("anthropic")} if self.uses_tools else {}
        messages: Any = [_said(message) for message in request.messages]
        stream = self._connected().messages.create(
            model=self._endpoint.model,
            max_tokens=_LONGEST,
            system=_system(request.prompt),
            messages=messages,
            stream=True,
            **more,
        )
        with stream:
            yield from stream

    def _connected(self) -> Anthropic:
        if self._client is None:
            from anthropic import Anthropic

            self._client = Anthropic(
                api_key=self._endpoint.key,
                base_url=self._endpoint.base_url,
                timeout=SILENCE,
                max_retries=RETRIES,
            )
        return self._client


class _Reading:
    """Puts a stream of events together."""

    def __init__(self) -> None:
        self.ended = False
        self.reason: str | None = None
        self._calls: dict[int, dict[str, str]] = {}

    def take(self, event: Any) -> Iterator[str]:
        """Yield the text in an event, and keep what else it says."""
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            block = event.content_block
            self._calls[event.index] = {"id": block.id, "name": block.name, "arguments": ""}
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            self._calls[event.index]["arguments"] += event.delta.partial_json
        elif event.type == "message_delta":
            self.reason = event.delta.stop_reason
        self.ended = self.ended or event.type == "message_stop"

    def calls(self) -> list[ToolCall]:
        """Return the tools that the model asked for, in its order."""
        return [ToolCall(**call) for _, call in sorted(self._calls.items())]


def _system(prompt: Prompt) -> Any:
    """Return the prompt in blocks, the stable one marked; blocks without words are refused there."""
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": prompt.stable, **_KEPT},
        {"type": "text", "text": prompt.varying},
    ]
    return [block for block in blocks if block["text"].strip()]


def _said(message: Message) -> dict[str, Any]:
    """Return a message in the server's form."""
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": result.id, "content": result.content}
        for result in message.results
    ]
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    blocks += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": _object(call.arguments)}
        for call in message.calls
    ]
    return {"role": message.role, "content": blocks}


def _object(arguments: str) -> dict[str, Any]:
    """Return a call's arguments as the object that the server wants back, empty if they were none."""
    try:
        value = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
