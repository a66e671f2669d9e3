"""A check that a client's configuration starts a server that responds.

Everybody who works on a project may change its file, so a command in the file may be anything.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from keepstone.mcp.clients import command_of

_SECONDS = 30
"""Maximum seconds for a server to start, as in Claude Code."""
_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "keepstone mcp status", "version": "1"},
    },
}


def trouble_of(entry: Mapping[str, Any], *, shared: bool = False, start: bool = False) -> str | None:
    """Start the server of an entry and return a description of its problem; None if it responds.

    Args:
        entry: The entry in the client's configuration.
        shared: Whether the entry is in a project's file.
        start: Whether to start also a command that ``keepstone mcp install`` does not write.
    """
    command, words = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(words, list):
        return "the entry has no command: run keepstone mcp install again"
    if shutil.which(command) is None:
        return f"{command} is missing or not executable: run keepstone mcp install again"
    line = [command, *map(str, words)]
    # A cloned repository may name any command, and a check must not run the command without asking.
    if not start and not is_written_by_install(line, shared=shared):
        return (
            f"not started, as keepstone mcp install writes another command: {shlex.join(line)}. "
            "Run keepstone mcp install again; or look at it, then add --start"
        )
    return _trouble_of_server(line)


def _trouble_of_server(line: Sequence[str]) -> str | None:
    try:
        done = subprocess.run(  # noqa: S603  Our own command, or one that the user chose to start.
            line,
            # The input ends after the request, which also ends the server.
            input=f"{json.dumps(_REQUEST)}\n",
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the server did not answer and end within {_SECONDS} s"
    except OSError as error:
        return f"{line[0]} cannot be started: {error.strerror}"
    if '"serverInfo"' in done.stdout:
        return None
    last = done.stderr.strip().splitlines()[-1:] or [f"it ended with status {done.returncode}"]
    return f"the server did not answer: {last[0]}"


def is_written_by_install(line: Sequence[str], *, shared: bool) -> bool:
    """Return whether ``keepstone mcp install`` may have written a command line.

    In a project's file such a command names no home, which could be someone else's folder or database.
    """
    for own in (command_of(["mcp"]), command_of(["mcp"], shared=True)):
        if list(line[: len(own)]) == own:
            return _are_options_of_install(line[len(own) :], shared=shared)
    return False


def _are_options_of_install(words: Sequence[str], *, shared: bool) -> bool:
    rest = iter(words)
    for word in rest:
        takes_value = word == "--agent" or (word == "--home" and not shared)
        if takes_value and next(rest, None) is not None:
            continue
        if word != "--read-only":
            return False
    return True
