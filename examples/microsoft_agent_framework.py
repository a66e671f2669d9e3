"""A Microsoft Agent Framework agent whose history keepstone keeps. Runs offline, on a scripted model.

pip install 'keepstone[agent-framework]' && python examples/microsoft_agent_framework.py
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from tempfile import TemporaryDirectory
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Message

import keepstone
from keepstone.integrations.agent_framework import KeepstoneHistoryProvider


class Counting(BaseChatClient):
    """A model that answers with the number of messages that it was sent."""

    async def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> ChatResponse:
        return ChatResponse(messages=[Message("assistant", [f"I read {len(messages)} messages"])])


async def main(home: str) -> None:
    """Talk twice, each time with a new agent object, as after a restart."""
    for text in ("We use pnpm", "Which tool do we use?"):
        history = KeepstoneHistoryProvider(home, agent="coder")
        agent = Agent(client=Counting(), context_providers=[history])
        answer = await agent.run(text, session=agent.create_session(session_id="project"))
        print(text, "->", answer.text)

    with keepstone.open(home) as memory:
        print("recalled:", memory.agent("coder").recall("pnpm", limit=1)[0].text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
