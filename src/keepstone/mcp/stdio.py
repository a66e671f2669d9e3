"""The MCP server over standard input and output, for one agent."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Collection
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from keepstone.mcp.instructions import instructions_of

if TYPE_CHECKING:
    from keepstone.home import Home
    from keepstone.mcp.memory_tools import Profile
    from keepstone.notes.notes import Notes

logger = logging.getLogger("keepstone.mcp")

_LONGEST_LINE = 32 * 1024 * 1024
"""Maximum bytes of a message, as over HTTP."""
_INVALID_PARAMS = -32602
"""JSON-RPC's code for invalid parameters."""
_LAST_ANSWERS = 10.0
"""Maximum seconds for calls in progress to complete after the input has ended."""


def serve(
    home: Home,
    agent: str,
    *,
    read_only: bool = False,
    notes: Notes | None = None,
    profile: Profile = "keepstone",
    shared: Collection[str] = (),
) -> None:
    """Serve an agent's memory, and what ``shared`` agents share with it, until standard input ends.

    Raises:
        NotGrantedError: One of the ``shared`` agents shares nothing with the agent.
        InvalidAgentIdError: The slug is not valid; nothing was read or written.
    """
    found = home.agent(agent)
    found.count(shared=shared, ids=())  # Raises unless all of them share something.
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="keepstone: %(message)s")
    instructions = instructions_of(profile, read_only=read_only)
    # Take the streams before further imports, as any library may print to standard output.
    wire = _Wire()

    import anyio
    from mcp.server.stdio import stdio_server

    from keepstone.mcp.memory_tools import McpTools
    from keepstone.mcp.resources import View
    from keepstone.mcp.server import create_server

    tools = McpTools(found, read_only=read_only, notes=notes, profile=profile, shared=shared)
    view = View(found, tools, home, notes)
    server = create_server(lambda _: view, instructions)

    async def run() -> None:
        async with stdio_server(cast("Any", wire.lines()), cast("Any", wire)) as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


class _Wire:
    """Standard input and output, reserved for the protocol.

    Afterwards, anything else that is written to standard output goes to standard error, and standard input is
    empty.
    """

    def __init__(self) -> None:
        self._input = _claimed(0, "rb", os.open(os.devnull, os.O_RDONLY))
        self._output = _claimed(1, "wb", os.dup(2))
        self._asked: set[int | str] = set()
        """The ids of requests without an answer."""
        self._is_open = True

    def _line(self) -> bytes:
        """Return the next line; a line that is too long is skipped and logged."""
        while len(line := self._input.readline(_LONGEST_LINE)) == _LONGEST_LINE and line[-1:] != b"\n":
            while (rest := self._input.readline(_LONGEST_LINE)) and rest[-1:] != b"\n":
                pass
            logger.warning("a message longer than %d bytes was skipped", _LONGEST_LINE)
        return line

    async def lines(self) -> AsyncIterator[str]:
        """Yield the client's messages until the input ends and all of them are answered."""
        import anyio
        from anyio.to_thread import run_sync

        # A blocked read cannot be cancelled; the thread is left behind when the server ends.
        while line := await run_sync(self._line, abandon_on_cancel=True):
            if _has_lone_surrogate(line):
                await run_sync(self._refuse, line)
            else:
                self._note(line)
                yield line.decode("utf-8", "replace")
        with anyio.move_on_after(_LAST_ANSWERS):
            while self._asked and self._is_open:  # noqa: ASYNC110  It ends once, and nobody waits for it.
                await anyio.sleep(0.01)

    def _refuse(self, line: bytes) -> None:
        """Answer a request that the package would drop without an answer."""
        message = _object(line)
        if "method" not in message or not isinstance(message.get("id"), int | str):
            logger.warning("a message with a lone surrogate was skipped")
            return
        error = {
            "code": _INVALID_PARAMS,
            "message": "the request has a lone surrogate, half of a \\u escape pair; send valid Unicode",
        }
        self._send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}) + "\n")

    def _note(self, line: bytes) -> None:
        message = _object(line)
        if message.get("method") == "notifications/cancelled" and isinstance(message.get("params"), dict):
            self._asked.discard(message["params"].get("requestId"))
        elif message.get("method") == "subscriptions/listen":
            pass  # It is answered only after the client has disconnected.
        elif "method" in message and isinstance(message.get("id"), int | str):
            self._asked.add(message["id"])

    async def write(self, text: str) -> None:
        """Send a message."""
        message = _object(text)
        if "method" not in message and "id" in message:
            self._asked.discard(message["id"])
        from anyio.to_thread import run_sync

        await run_sync(self._send, text)

    def _send(self, text: str) -> None:
        try:
            self._output.write(text.encode())
            self._output.flush()
        except OSError:
            self._is_open = False  # The client is gone, and the input ends.

    async def flush(self) -> None:
        """Do nothing: each message is flushed."""


def _claimed(fd: int, mode: str, diversion: int) -> BinaryIO:
    """Return a private stream of a standard descriptor, and redirect the descriptor."""
    # Redirect the descriptor and not sys.stdout, as C libraries and child processes write to the descriptor.
    kept = os.dup(fd)
    os.dup2(diversion, fd)
    os.close(diversion)
    return cast("BinaryIO", os.fdopen(kept, mode))


def _object(text: str | bytes) -> dict[str, Any]:
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _has_lone_surrogate(line: bytes) -> bool:
    """Return whether a message has a lone surrogate, which JSON can escape and the package cannot parse."""
    # Nearly all messages have no such escape, and are not parsed a second time.
    if b"\\ud" not in line and b"\\uD" not in line:
        return False
    try:
        json.dumps(json.loads(line), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    except (ValueError, RecursionError):
        return False  # The package reports the error.
    return False
