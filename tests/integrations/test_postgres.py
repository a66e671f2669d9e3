"""Adapters on a home in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import anyio
import pytest

import keepstone
from keepstone import Home
from keepstone.integrations.homes import opened_home


@pytest.fixture
def home(dsn: str) -> Iterator[Home]:
    with keepstone.open(dsn, embedder="none") as home:
        yield home


def test_adapters_of_one_database_share_its_home(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = opened_home(dsn)
    monkeypatch.setenv("KEEPSTONE_HOME", dsn)
    try:
        assert opened_home(None) is opened_home(dsn) is shared
    finally:
        shared.close()


def test_openai_sessions(home: Home) -> None:
    pytest.importorskip("agents")
    from keepstone.integrations.openai_agents import KeepstoneSession

    session = KeepstoneSession("s1", home=home)
    items = cast("Any", [{"role": "user", "content": text} for text in "abc"])
    anyio.run(session.add_items, items)
    assert anyio.run(session.get_items, 2) == items[1:]
    assert anyio.run(session.pop_item) == items[2]
    anyio.run(session.clear_session)
    assert anyio.run(session.get_items) == []


def test_langgraph_stores(home: Home) -> None:
    pytest.importorskip("langgraph.store")
    from keepstone.integrations.langgraph import KeepstoneStore

    index: Any = {"dims": 2, "embed": lambda texts: [[float(len(text)), 1.0] for text in texts]}
    store = KeepstoneStore(home, index=index)
    store.put(("users", "ada"), "tea", {"n": 1})
    store.put(("users", "ada"), "tea", {"n": 2}, ttl=None)
    store.put(("users", "bob"), "tea", {"n": 3}, ttl=0)
    item = store.get(("users", "ada"), "tea")
    assert item is not None
    assert item.value == {"n": 2}
    assert [one.key for one in store.search(("users",), filter={"n": {"$gt": 1}}, query="x")] == ["tea"]
    assert store.list_namespaces() == [("users", "ada")]
    assert store.sweep_ttl() == 1
    store.delete(("users", "ada"), "tea")
    assert store.search(()) == []


def test_claude_session_stores(home: Home) -> None:
    pytest.importorskip("claude_agent_sdk")
    from claude_agent_sdk.testing import run_session_store_conformance

    from keepstone.integrations.claude_agent import KeepstoneSessionStore

    agents = iter(range(100))
    anyio.run(run_session_store_conformance, lambda: KeepstoneSessionStore(home, agent=f"a{next(agents)}"))


def test_adk_memory_services(home: Home) -> None:
    pytest.importorskip("google.adk")
    from tests.integrations.test_adk import event, found, session

    from keepstone.integrations.adk import KeepstoneMemoryService

    async def script() -> list[list[str]]:
        service = KeepstoneMemoryService(home)
        await service.add_session_to_memory(session("s1", event("e1", "green tea"), event("e2", "a walk")))
        await service.add_session_to_memory(session("s1", event("e1", "black coffee")))
        return [await found(KeepstoneMemoryService(home), words) for words in ("tea", "coffee", "walk")]

    assert anyio.run(script) == [[], ["e1"], ["e2"]]


def test_agent_framework_histories(home: Home) -> None:
    pytest.importorskip("agent_framework")
    from tests.integrations.test_agent_framework import said, texts

    from keepstone.integrations.agent_framework import KeepstoneHistoryProvider

    async def script() -> list[str]:
        await KeepstoneHistoryProvider(home).save_messages("s1", [said("Hi"), said("Hello", "assistant")])
        await KeepstoneHistoryProvider(home).save_messages("s1", [said("Bye")])
        return texts(await KeepstoneHistoryProvider(home).get_messages("s1"))

    assert anyio.run(script) == ["Hi", "Hello", "Bye"]


def test_langchain_histories_and_retrievers(home: Home) -> None:
    pytest.importorskip("langchain_core")
    from tests.integrations.test_langchain import MESSAGES

    from keepstone.integrations.langchain import KeepstoneChatMessageHistory, KeepstoneRetriever

    KeepstoneChatMessageHistory("s1", home).add_messages(MESSAGES)
    assert KeepstoneChatMessageHistory("s1", home).messages == MESSAGES
    assert KeepstoneRetriever(home=home).invoke("brief")[0].page_content == "system: Be brief"
    KeepstoneChatMessageHistory("s1", home).clear()
    assert KeepstoneChatMessageHistory("s1", home).messages == []


def test_llama_index_memory_blocks(home: Home) -> None:
    pytest.importorskip("llama_index.core")
    from tests.integrations.test_llama_index import user

    from keepstone.integrations.llama_index import KeepstoneMemoryBlock

    async def script() -> str:
        gate = user("The harbour gate opens at six")
        await KeepstoneMemoryBlock(home).aput([gate], session_id="monday")
        return await KeepstoneMemoryBlock(home).aget([user("When does the harbour gate open?")])

    assert "opens at six" in anyio.run(script)


def test_pydantic_ai_conversations(home: Home) -> None:
    pytest.importorskip("pydantic_ai.conversation_store")
    from tests.integrations.test_pydantic_ai import ask, messages

    from keepstone.integrations.pydantic_ai import KeepstoneConversationStore

    async def script() -> tuple[list[str], int]:
        answers = [await ask(KeepstoneConversationStore(home), "Hello") for _ in range(2)]
        return answers, len(await messages(KeepstoneConversationStore(home)))

    assert anyio.run(script) == (["I read 1", "I read 3"], 4)


def test_the_memory_tool_says_that_it_needs_a_folder(home: Home) -> None:
    pytest.importorskip("anthropic.lib.tools")
    from keepstone.integrations.anthropic import KeepstoneMemoryTool

    with pytest.raises(ValueError, match="needs a home in a folder"):
        KeepstoneMemoryTool(home)
