"""A locked session is a time-out of each asynchronous adapter, and its event loop goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Message
from google.adk.memory.memory_entry import MemoryEntry
from google.genai.types import Content, Part
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from llama_index.core.llms import ChatMessage
from pydantic_ai import ModelRequest, UserPromptPart
from pydantic_ai.conversation import Conversation
from tests.integrations.locking import locked

from keepstone.integrations.adk import KeepstoneMemoryService
from keepstone.integrations.agent_framework import KeepstoneHistoryProvider
from keepstone.integrations.langchain import KeepstoneChatMessageHistory
from keepstone.integrations.langgraph import KeepstoneSaver
from keepstone.integrations.llama_index import KeepstoneMemoryBlock
from keepstone.integrations.pydantic_ai import KeepstoneConversationStore

pytestmark = pytest.mark.anyio


async def adk(home: Path, text: str) -> None:
    memory = MemoryEntry(content=Content(parts=[Part(text=text)]))
    await KeepstoneMemoryService(home).add_memory(app_name="a", user_id="u", memories=[memory])


async def agent_framework(home: Path, text: str) -> None:
    await KeepstoneHistoryProvider(home).save_messages("s1", [Message("user", [text])])


async def langchain(home: Path, text: str) -> None:
    await KeepstoneChatMessageHistory("s1", home).aadd_messages([HumanMessage(text)])


async def langgraph(home: Path, text: str) -> None:
    config: Any = {"configurable": {"thread_id": "s1", "checkpoint_ns": ""}}
    checkpoint: Any = empty_checkpoint() | {"channel_values": {"text": text}}
    await KeepstoneSaver(home).aput(config, checkpoint, {}, {})


async def llama_index(home: Path, text: str) -> None:
    await KeepstoneMemoryBlock(home).aput([ChatMessage(role="user", content=text)], session_id="s1")


async def pydantic_ai(home: Path, text: str) -> None:
    store = KeepstoneConversationStore(home)
    conversation = await store.load("s1") or Conversation(conversation_id="s1")
    conversation.messages.append(ModelRequest([UserPromptPart(text)]))
    await store.save(conversation)


@pytest.mark.parametrize("write", [adk, agent_framework, langchain, langgraph, llama_index, pydantic_ai])
async def test_a_locked_session_is_a_timeout_and_the_loop_stays_free(
    tmp_path: Path, write: Callable[[Path, str], Awaitable[None]]
) -> None:
    await write(tmp_path, "first")
    turns = 0
    with locked(lock_of(tmp_path)):
        writing = asyncio.ensure_future(write(tmp_path, "second"))
        while not writing.done():
            await asyncio.sleep(0.01)
            turns += 1
        with pytest.raises(TimeoutError) as raised:
            await writing
    assert type(raised.value) is TimeoutError
    assert turns > 20
    await write(tmp_path, "third")


def lock_of(home: Path) -> Path:
    (log,) = home.glob("agents/default/memory/sessions/*.ndjson")
    return log.with_suffix(".lock")
