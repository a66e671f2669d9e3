"""Real servers: the command, and the official client or plain pipes in front of it."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from mcp import Client, StdioServerParameters
from tests.warm import warm

T = TypeVar("T")
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"roots": {"listChanged": True}},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def command() -> list[str]:
    """Return the command's first words."""
    return [*warm(), "-m", "keepstone"]


def with_client(
    home: Path,
    use: Callable[[Client], Awaitable[T]],
    *options: str,
    mode: str = "auto",
    cwd: Path | None = None,
) -> T:
    """Start a server, connect the official client, and return what ``use`` returns."""

    async def run() -> T:
        async with client(home, *options, mode=mode, cwd=cwd) as connected:
            return await use(connected)

    return asyncio.run(run())


def client(home: Path, *options: str, mode: str = "auto", cwd: Path | None = None) -> Client:
    """Return a client that starts a server of its own."""
    words = [*command(), "mcp", "--home", str(home), *options]
    place = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ), cwd=cwd)
    return Client(place, mode=mode)


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    """Return the message that calls a tool."""
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}


def piped(
    home: Path, messages: Iterable[object], *options: str, python: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a server with these messages, or lines, as its whole input, perhaps by another Python."""
    lines = [message if isinstance(message, str) else json.dumps(message) for message in messages]
    return subprocess.run(
        [*(python or warm()), "-m", "keepstone", "mcp", "--home", str(home), *options],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        text=True,
        check=False,
    )


def answers(done: subprocess.CompletedProcess[str]) -> dict[Any, dict[str, Any]]:
    """Return the answers by id; every line of the output is a message."""
    return {message["id"]: message for message in map(json.loads, done.stdout.splitlines())}
