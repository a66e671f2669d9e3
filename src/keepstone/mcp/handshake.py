"""The answer to a client's first request, given before the protocol's package is loaded.

Loading it takes longer than the rest of the start, and clients drop servers that are slow to answer. The
package gets the same request as soon as it is there; its own answer, which is the same, is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import keepstone

NAME, TITLE = "keepstone", "Keepstone memory"
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
_META = "io.modelcontextprotocol/"


def early_answer(line: bytes, instructions: str) -> dict[str, Any] | None:
    """Return the answer to a first request that is well-formed, None for one to leave to the package."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or type(message.get("id")) not in (int, str):
        return None
    params = message.get("params")
    if message.get("jsonrpc") != "2.0" or not isinstance(params, dict):
        return None
    make = {"initialize": _initialized, "server/discover": _discovered}.get(str(message.get("method")))
    result = None if make is None else make(params, instructions)
    return None if result is None else {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _initialized(params: Mapping[str, Any], instructions: str) -> dict[str, Any] | None:
    version = params.get("protocolVersion")
    if version not in HANDSHAKE_VERSIONS or not _is_client(
        params.get("clientInfo"), params.get("capabilities")
    ):
        return None
    return {
        "protocolVersion": version,
        "capabilities": _capabilities(is_modern=False),
        "serverInfo": _server(),
        "instructions": instructions,
    }


def _discovered(params: Mapping[str, Any], instructions: str) -> dict[str, Any] | None:
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get(f"{_META}protocolVersion") not in MODERN_VERSIONS:
        return None
    if not _is_client(meta.get(f"{_META}clientInfo"), meta.get(f"{_META}clientCapabilities")):
        return None
    return {
        "supportedVersions": [*MODERN_VERSIONS],
        "capabilities": _capabilities(is_modern=True),
        "instructions": instructions,
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {f"{_META}serverInfo": _server()},
    }


def _is_client(info: object, capabilities: object) -> bool:
    return (
        isinstance(info, dict)
        and all(isinstance(info.get(key), str) for key in ("name", "version"))
        and isinstance(capabilities, dict)
        and all(isinstance(value, dict) for value in capabilities.values())
    )


def _server() -> dict[str, str]:
    return {"name": NAME, "title": TITLE, "version": keepstone.__version__}


def _capabilities(*, is_modern: bool) -> dict[str, Any]:
    """Return what the server can do; newer clients listen to changes of whatever kind they name."""
    return {
        "completions": {},
        "prompts": {"listChanged": is_modern},
        "resources": {"listChanged": is_modern, "subscribe": True},
        "tools": {"listChanged": is_modern},
    }
