"""A server on this machine that speaks like OpenAI and like Anthropic, as well as a test wants."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Reply = str | tuple[str, dict[str, Any]]
"""The answer to a request: some text, or a tool with its arguments."""
Reader = Callable[[str], str]
"""Makes an answer of the system prompt, as a model would that has read it."""


@dataclass
class ModelServer:
    """What the server was asked, and what it is to answer."""

    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    replies: list[Reply | Reader] = field(default_factory=list)
    """The answers in their order; the last one goes on being given."""
    status: int = 200
    cut: bool = False
    """Whether the stream breaks off after the text."""
    held: threading.Event = field(default_factory=threading.Event)
    """While this is not set, the stream waits before its end."""
    finish: str = "stop"
    nonsense: bytes = b""
    """The bytes that are sent instead of an answer."""

    def __post_init__(self) -> None:
        self.held.set()

    def next_reply(self) -> Reply:
        reply = self.replies.pop(0) if len(self.replies) > 1 else (self.replies or ["Hello."])[0]
        return reply(self.prompts[-1]) if callable(reply) else reply

    @property
    def prompts(self) -> list[str]:
        """The system prompts of all requests, in either manner."""
        return [_prompt_of(body) for body in self.asked]


def _prompt_of(body: dict[str, Any]) -> str:
    system = body.get("system", body["messages"][0]["content"])
    return system if isinstance(system, str) else "".join(block["text"] for block in system)


@contextmanager
def running() -> Iterator[ModelServer]:
    state = ModelServer()
    handler = type("Bound", (_Handler,), {"state": state})
    server = _Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        state.held.set()
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that leave early, as some tests want them to."""


class _Handler(http.server.BaseHTTPRequestHandler):
    state: ModelServer

    def do_POST(self) -> None:
        state = self.state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        state.asked.append(body)
        state.headers.append({name.lower(): value for name, value in self.headers.items()})
        if state.status != 200:
            self._refuse(state.status)
            return
        reply = state.next_reply()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        if state.cut:
            self.send_header("Content-Length", "1000000")
        self.end_headers()
        if state.nonsense:
            self.wfile.write(state.nonsense)
            return
        events = _openai(reply, state.finish) if self.path.endswith("completions") else _anthropic(reply)
        for event in events:
            if event is None:
                if state.cut:
                    return
                self.wfile.flush()
                state.held.wait(60)
            else:
                self.wfile.write(event)

    def _refuse(self, status: int) -> None:
        secret = self.headers["Authorization"] or self.headers["x-api-key"]
        raw = json.dumps({"error": {"message": f"no: {secret}"}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  So it is called there.
        pass


def _openai(reply: Reply, finish: str) -> Iterator[bytes | None]:
    if isinstance(reply, str):
        for word in reply.split(" "):
            yield _chunk({"content": word + " "})
    else:
        name, arguments = reply
        text = json.dumps(arguments)
        yield _chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": name, "arguments": ""}}]})
        for part in (text[:5], text[5:]):
            yield _chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        finish = "tool_calls"
    yield None
    yield _chunk({}, finish)
    yield b"data: [DONE]\n\n"


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    body = {
        "id": "x",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return f"data: {json.dumps(body)}\n\n".encode()


def _anthropic(reply: Reply) -> Iterator[bytes | None]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    start = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m", "usage": usage}
    yield _event("message_start", message=start)
    if isinstance(reply, str):
        yield _event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for word in reply.split(" "):
            yield _event("content_block_delta", index=0, delta={"type": "text_delta", "text": word + " "})
    else:
        name, arguments = reply
        block = {"type": "tool_use", "id": "c1", "name": name, "input": {}}
        yield _event("content_block_start", index=0, content_block=block)
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
        yield _event("content_block_delta", index=0, delta=delta)
    yield None
    yield _event("content_block_stop", index=0)
    reason = "end_turn" if isinstance(reply, str) else "tool_use"
    yield _event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 1})
    yield _event("message_stop")


def _event(kind: str, **values: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **values})}\n\n".encode()
