"""Models of OpenAI and of compatible servers such as Ollama and vLLM."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

from keepstone.chat.endpoint import NO_ANSWER, RETRIES, SILENCE, Endpoint, broken_off, check_package
from keepstone.chat.messages import Message, Piece, Request, ToolCall

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIModel:
    """Model behind an OpenAI-compatible chat completions API.

    The prompt is one system message with its stable part first, which servers cache by prefix.

    Raises:
        ModelError: The package ``openai`` is not installed.
    """

    def __init__(self, endpoint: Endpoint, *, uses_tools: bool = True) -> None:
        check_package("openai")
        self.name = endpoint.name
        self.uses_tools = uses_tools
        self._endpoint = endpoint
        self._client: OpenAI | None = None

    def answer(self, request: Request) -> Iterator[Piece]:
        """Yield the answer as it is streamed; see ``ChatModel``."""
        from openai import OpenAIError

        failures: tuple[type[Exception], ...] = (OpenAIError, *broken_off())
        calls: _Calls = {}
        try:
            finish = yield from _text_of(self._stream(request), calls)
        except failures as error:
            # The server's message, and chained errors, may contain the key.
            raise self._endpoint.failure(error) from None
        except NO_ANSWER as error:
            raise self._endpoint.cut(f"invalid response ({type(error).__name__})") from None
        # A server may close the stream early without an error; only a finish reason shows a complete answer.
        if finish is None:
            raise self._endpoint.cut()
        if finish == "length":
            raise self._endpoint.cut("the answer reached the model's limit of tokens")
        yield from (ToolCall(**call) for _, call in sorted(calls.items()))

    def _stream(self, request: Request) -> Iterator[Any]:
        more: dict[str, Any] = {"tools": request.tools.definitions("openai")} if self.uses_tools else {}
        messages: Any = [
            {"role": "system", "content": request.prompt.text},
            *(said for message in request.messages for said in _said(message)),
        ]
        stream = self._connected().chat.completions.create(
            model=self._endpoint.model, messages=messages, stream=True, **more
        )
        with stream:
            yield from stream

    def _connected(self) -> OpenAI:
        if self._client is None:
            from openai import OpenAI

            address = self._endpoint.base_url
            self._client = OpenAI(
                api_key=self._endpoint.key, base_url=address, timeout=SILENCE, max_retries=RETRIES
            )
            if address is not None:
                # The package reads both from the environment, but they are meant for OpenAI only.
                self._client.organization = self._client.project = None
        return self._client


_Calls = dict[tuple[int, int], dict[str, str]]
"""Tool calls by index and by number within it, as some servers give all calls the same index."""


def _text_of(chunks: Iterator[Any], calls: _Calls) -> Generator[str, None, str | None]:
    """Yield the text of a stream, collect tool calls in ``calls``, and return the finish reason."""
    finish: str | None = None
    for chunk in chunks:
        # The last chunk may have the usage only, without a choice.
        for choice in chunk.choices[:1]:
            if choice.delta.content:
                yield choice.delta.content
            for part in choice.delta.tool_calls or ():
                _join(_call_of(calls, part), part)
            finish = choice.finish_reason or finish
    return finish


def _call_of(calls: _Calls, part: Any) -> dict[str, str]:
    """Return the call that a delta belongs to: the last one of its index, unless the id differs."""
    same = [key for key in calls if key[0] == part.index]
    if same and part.id in (None, "", calls[same[-1]]["id"]):
        return calls[same[-1]]
    return calls.setdefault((part.index, len(same)), {"id": "", "name": "", "arguments": ""})


def _join(call: dict[str, str], part: Any) -> None:
    # Only the first delta of a call has its id and name; later ones have pieces of the arguments.
    call["id"] = part.id or call["id"]
    if part.function is not None:
        call["name"] = part.function.name or call["name"]
        call["arguments"] += part.function.arguments or ""


def _said(message: Message) -> Iterator[dict[str, Any]]:
    """Yield a message in the API's form, where each tool result is a separate message."""
    for result in message.results:
        yield {"role": "tool", "tool_call_id": result.id, "content": result.content}
    # A message of results has no text, and the API rejects an empty message.
    if message.results:
        return
    said: dict[str, Any] = {"role": message.role, "content": message.text}
    if message.calls:
        said["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in message.calls
        ]
    yield said
