"""Whether a client's configuration starts a server that answers."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from keepstone.mcp.handshake import HANDSHAKE_VERSIONS

_SECONDS = 10
"""As long as impatient clients wait."""
_REQUEST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": HANDSHAKE_VERSIONS[-1],
        "capabilities": {},
        "clientInfo": {"name": "keepstone mcp status", "version": "1"},
    },
}


def trouble_of(entry: Mapping[str, Any]) -> str | None:
    """Start the server of an entry and return what is wrong with it, None if it answers."""
    command, words = entry.get("command"), entry.get("args", [])
    if not isinstance(command, str) or not isinstance(words, list):
        return "the entry has no command: run keepstone mcp install again"
    if shutil.which(command) is None:
        return f"{command} is missing or not executable: run keepstone mcp install again"
    try:
        done = subprocess.run(  # noqa: S603  It is the command that the client starts, too.
            [command, *map(str, words)],
            input=f"{json.dumps(_REQUEST)}\n",
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"the server did not answer and end within {_SECONDS} s"
    except OSError as error:
        return f"{command} cannot be started: {error.strerror}"
    if '"serverInfo"' in done.stdout:
        return None
    last = done.stderr.strip().splitlines()[-1:] or [f"it ended with status {done.returncode}"]
    return f"the server did not answer: {last[0]}"
