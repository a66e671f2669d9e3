"""Anthropic models, with prompt caching."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from keepstone.chat.endpoint import NO_ANSWER, RETRIES, SILENCE, Endpoint, broken_off, check_package
from keepstone.chat.messages import Message, Piece, Prompt, Request, ToolCall

if TYPE_CHECKING:
    from anthropic import Anthropic

_LONGEST = 4096
"""Maximum tokens of an answer."""
_KEPT = {"cache_control": {"type": "ephemeral"}}


class AnthropicModel:
    """Model behind Anthropic's Messages API.

    The cache breakpoint follows the stable part of the prompt, so that tools and notes are cached.

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
        """Yield the answer as it is streamed; see ``ChatModel``."""
        from anthropic import AnthropicError

        failures: tuple[type[Exception], ...] = (AnthropicError, *broken_off())
        reading = _Reading()
        try:
            for event in self._stream(request):
                yield from reading.take(event)
        except failures as error:
            # The server's message, and chained errors, may contain the key.
            raise self._endpoint.failure(error) from None
        except NO_ANSWER as error:
            raise self._endpoint.cut(f"invalid response ({type(error).__name__})") from None
        # The package raises no error for a connection that ends early: only the last event shows that the
        # answer is complete.
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
        # ``with`` closes the connection even if the consumer stops early.
        with stream:
            yield from stream

    def _connected(self) -> Anthropic:
        if self._client is None:
            from anthropic import Anthropic

            self._client = Anthropic(
                api_key=self._endpoint.key,
                base_url=self._endpoint.base_url,
                timeout=SILENCE,
                # The package's default is two retries, each with a pause: too long for a person who waits.
                max_retries=RETRIES,
            )
        return self._client


class _Reading:
    """Assembles an answer from a stream of events."""

    def __init__(self) -> None:
        self.ended = False
        self.reason: str | None = None
        self._calls: dict[int, dict[str, str]] = {}

    def take(self, event: Any) -> Iterator[str]:
        """Yield the text of an event, and record its other content."""
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            block = event.content_block
            self._calls[event.index] = {"id": block.id, "name": block.name, "arguments": ""}
        elif event.type == "content_block_delta" and event.delta.type == "text_delta":
            yield event.delta.text
        elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
            # The arguments arrive as fragments of JSON; fragments of several calls may alternate.
            self._calls[event.index]["arguments"] += event.delta.partial_json
        elif event.type == "message_delta":
            self.reason = event.delta.stop_reason
        self.ended = self.ended or event.type == "message_stop"

    def calls(self) -> list[ToolCall]:
        """Return the model's tool calls, in order."""
        return [ToolCall(**call) for _, call in sorted(self._calls.items())]


def _system(prompt: Prompt) -> Any:
    """Return the prompt as blocks with a cache breakpoint, without blank blocks, which the API rejects."""
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": prompt.stable, **_KEPT},
        {"type": "text", "text": prompt.varying},
    ]
    return [block for block in blocks if block["text"].strip()]


def _said(message: Message) -> dict[str, Any]:
    """Return a message in the API's form."""
    blocks: list[dict[str, Any]] = [
        # Results come before any text, as the API requires in the message after a call.
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
    """Return a call's arguments as an object; empty if they are not valid."""
    try:
        value = json.loads(arguments or "{}")
    # The API accepts only an object here; the tool's result has already told the model about the error.
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
