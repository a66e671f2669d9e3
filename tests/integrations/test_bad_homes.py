"""What each adapter raises for a home or an agent that cannot be used: built-in errors, none of ours."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from tests.integrations.test_locked_homes import adk, agent_framework, langchain, llama_index, pydantic_ai

from keepstone.integrations.adk import KeepstoneMemoryService
from keepstone.integrations.agent_framework import KeepstoneHistoryProvider
from keepstone.integrations.anthropic import AsyncKeepstoneMemoryTool, KeepstoneMemoryTool
from keepstone.integrations.claude_agent import KeepstoneSessionStore
from keepstone.integrations.langchain import KeepstoneChatMessageHistory, KeepstoneRetriever
from keepstone.integrations.langgraph import KeepstoneStore
from keepstone.integrations.llama_index import KeepstoneMemoryBlock
from keepstone.integrations.openai_agents import KeepstoneSession
from keepstone.integrations.pydantic_ai import KeepstoneConversationStore

pytestmark = pytest.mark.anyio


async def openai_agents(home: Path, text: str) -> None:
    await KeepstoneSession("s1", home=home).add_items([{"role": "user", "content": text}])


async def langgraph(home: Path, text: str) -> None:
    await KeepstoneStore(home).aput(("users",), "k", {"text": text})


async def claude_agent(home: Path, text: str) -> None:
    line: Any = {"type": "user", "message": {"role": "user", "content": text}}
    await KeepstoneSessionStore(home).append({"project_key": "p", "session_id": "s"}, [line])


async def anthropic(home: Path, text: str) -> None:
    command = {"command": "create", "path": "/memories/a.md", "file_text": text}
    await AsyncKeepstoneMemoryTool(home).call(command)


WRITES = [adk, agent_framework, claude_agent, langchain, langgraph, llama_index, openai_agents, pydantic_ai]


@pytest.mark.parametrize("write", WRITES)
async def test_a_home_that_cannot_be_written_is_a_built_in_os_error(
    tmp_path: Path, write: Callable[[Path, str], Awaitable[None]]
) -> None:
    (tmp_path / "agents").write_text("a file where a folder should be")
    with pytest.raises(OSError) as raised:  # noqa: PT011  Its message is the library's.
        await write(tmp_path, "never stored")
    assert type(raised.value).__module__ == "builtins"
    assert set(os.listdir(tmp_path)) <= {"agents", ".index"}


async def test_a_home_that_cannot_be_written_is_a_tool_error_of_the_memory_tool(tmp_path: Path) -> None:
    (tmp_path / "agents").write_text("a file where a folder should be")
    with pytest.raises(ToolError) as raised:
        await anthropic(tmp_path, "never stored")
    assert str(tmp_path) not in str(raised.value)


@pytest.mark.parametrize(
    "make",
    [
        KeepstoneMemoryService, KeepstoneHistoryProvider, KeepstoneSessionStore, KeepstoneStore,
        KeepstoneMemoryTool, AsyncKeepstoneMemoryTool, KeepstoneRetriever, KeepstoneMemoryBlock,
        KeepstoneConversationStore, lambda home, **keys: KeepstoneSession("s1", home=home, **keys),
        lambda home, **keys: KeepstoneChatMessageHistory("s1", home, **keys),
    ],
)  # fmt: skip
def test_an_invalid_agent_is_a_built_in_value_error(tmp_path: Path, make: Callable[..., Any]) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  Its message is the library's.
        make(tmp_path, agent="../other")
    assert type(raised.value).__module__ == "builtins"
    assert list(tmp_path.iterdir()) == []
