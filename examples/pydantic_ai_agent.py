"""A Pydantic AI agent with stored conversations and tools for its memory. Runs offline, on a scripted model.

pip install 'keepstone[pydantic-ai]' && python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio
from tempfile import TemporaryDirectory

from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.conversation import Conversation
from pydantic_ai.models.function import AgentInfo, FunctionModel

import keepstone
from keepstone.integrations.pydantic_ai import KeepstoneConversationStore, KeepstoneToolset


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    """Remember something in the first turn, and answer."""
    if any(isinstance(part, ToolReturnPart) for message in messages for part in message.parts):
        return ModelResponse([TextPart(f"I read {len(messages)} messages")])
    return ModelResponse([ToolCallPart("memory_save", {"text": "The team uses pnpm", "type": "decision"})])


async def main(home: str) -> None:
    """Talk twice, each time with new objects, as after a restart."""
    for text in ("We use pnpm", "Which tool do we use?"):
        store = KeepstoneConversationStore(home, agent="coder")
        agent = Agent(FunctionModel(model), toolsets=[KeepstoneToolset(home, agent="coder")])
        conversation = await store.load("project") or Conversation(conversation_id="project")
        result = await agent.run(text, conversation=conversation)
        await store.save(result)
        print(text, "->", result.output)

    with keepstone.open(home) as memory:
        print("recalled:", memory.agent("coder").recall("pnpm", types=["decision"])[0].text)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
