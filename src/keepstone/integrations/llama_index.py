"""LlamaIndex: a memory block that keeps what leaves the short-term memory, and recalls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keepstone.agent import Agent
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import in_thread, needs, opened_agent, opened_session, write_in_thread
from keepstone.integrations.texts import called, said, text_of_blocks
from keepstone.model import Record
from keepstone.services.memory_repository import Target

with needs("llama-index"):
    from llama_index.core.llms import ChatMessage, MessageRole
    from llama_index.core.memory import BaseMemoryBlock
    from pydantic import PrivateAttr

_SESSION_KEY = "session_id"
"""Where ``Memory`` puts the session's id into the messages of a block."""
_WINDOW = 5
"""The newest messages that are the question."""


class KeepstoneMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory of a ``Memory``: what leaves its short-term memory, and all that the agent knows.

    Each session of LlamaIndex is a session of the agent. What the block returns is the agent's context for
    the newest messages: pinned entries, preferences and decisions, and what matches, of all sessions.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        fields: ``budget``, the most tokens of what the block returns, and what ``BaseMemoryBlock`` takes.
    """

    name: str = "keepstone"
    budget: int = 2000
    _agent: Agent = PrivateAttr()

    def __init__(self, home: Target = None, *, agent: str = DEFAULT_AGENT, **fields: Any) -> None:
        """Open the home; nothing is written before the first message."""
        super().__init__(**fields)
        self._agent = opened_agent(home, agent)

    async def _aget(self, messages: list[ChatMessage] | None = None, **_block_kwargs: Any) -> str:
        """Return the context for the newest messages, without what these say already."""
        return await in_thread(self._context, messages or [])

    async def _aput(self, messages: list[ChatMessage]) -> None:
        """Store messages in the sessions that they name, those of one session all or none."""
        await write_in_thread(self._store, messages)

    def _context(self, messages: Sequence[ChatMessage]) -> str:
        asked = [text for message in messages[-_WINDOW:] if (text := message.content)]
        window = [f"{MessageRole(message.role).value}: {message.content}" for message in messages]
        query = "\n".join(asked) or None
        return self._agent.context(query, budget=self.budget, window=window).text

    def _store(self, messages: Sequence[ChatMessage]) -> None:
        items: dict[str, list[Record]] = {}
        for message in messages:
            name = str(message.additional_kwargs.get(_SESSION_KEY) or self.name)
            items.setdefault(name, []).append(_item(message))
        for name, group in items.items():
            session = opened_session(self._agent, name)
            named = {} if session.id == name else {"session_id": name}
            session.add_many({**item, **named} for item in group)


def _item(message: ChatMessage) -> Record:
    data = message.model_dump(mode="json")
    data["additional_kwargs"].pop(_SESSION_KEY, None)
    data["role"] = MessageRole(message.role).value
    return {"type": "message", "text": text_of_blocks(map(_block, data["blocks"])), "data": data}


def _block(block: Record) -> Record:
    if block["block_type"] == "tool_call":
        return called(block["tool_name"], block["tool_kwargs"])
    text = block.get("content") if block["block_type"] == "thinking" else block.get("text")
    return said(text if isinstance(text, str) else "")
