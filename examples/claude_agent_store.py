"""Transcripts of the Claude Agent SDK in keepstone. Runs offline: a script plays the SDK.

pip install 'keepstone[claude-agent]' && python examples/claude_agent_store.py
"""

from __future__ import annotations

from tempfile import TemporaryDirectory
from typing import Any, cast
from uuid import uuid4

import anyio
from claude_agent_sdk import (
    SessionStoreEntry,
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
)

import keepstone
from keepstone.integrations.claude_agent import KeepstoneSessionStore


def line(role: str, text: str, before: str | None) -> dict[str, Any]:
    """Return a line of a transcript, as the SDK gives it to a store."""
    message = {"role": role, "content": text}
    time = "2026-01-11T14:31:00.000Z"
    return {"type": role, "uuid": str(uuid4()), "parentUuid": before, "timestamp": time, "message": message}


async def main(folder: str) -> None:
    """Store a transcript, and read it with the SDK's own helpers."""
    # With Claude Code installed: ClaudeAgentOptions(session_store=store), and the SDK does the rest.
    store = KeepstoneSessionStore(folder, agent="travel")
    session = str(uuid4())
    first = line("user", "I never fly, I take the ferry", None)
    second = line("assistant", "I will look for ferries.", first["uuid"])
    entries = cast("list[SessionStoreEntry]", [first, second])
    key = project_key_for_directory(folder)
    await store.append({"project_key": key, "session_id": session}, entries)

    for info in await list_sessions_from_store(store, directory=folder):
        print("session:", info.summary)
    for message in await get_session_messages_from_store(store, session, directory=folder):
        print(message.type, "said", message.message)

    with keepstone.open(folder) as home:
        for hit in home.agent("travel").recall("how does the user travel? ferry", limit=1):
            print("recalled:", hit.entry.text)


if __name__ == "__main__":
    with TemporaryDirectory() as home_folder:
        anyio.run(main, home_folder)
