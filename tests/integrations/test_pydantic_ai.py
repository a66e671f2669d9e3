"""Conversations and tools of Pydantic AI."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

import keepstone
from keepstone.integrations.pydantic_ai import KeepstoneConversationStore, KeepstoneToolset, memory_tool

pytestmark = pytest.mark.anyio

COUNTING = FunctionModel(
    lambda messages, _: ModelResponse([TextPart(f"I read {len(messages)}")]), model_name="counting"
)


def user(text: str) -> ModelRequest:
    return ModelRequest([UserPromptPart(text)])


async def ask(store: ConversationStore, text: str, conversation_id: str = "c1") -> str:
    conversation = await store.load(conversation_id) or Conversation(conversation_id=conversation_id)
    result = await Agent(COUNTING).run(text, conversation=conversation)
    await store.save(result)
    return result.output


async def messages(store: ConversationStore, conversation_id: str = "c1") -> list[ModelMessage]:
    loaded = await store.load(conversation_id)
    assert loaded is not None
    return loaded.messages


def stored(home: Path) -> int:
    return keepstone.open(home).agent("default").count(types=["message"])


def all_bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_conversation_goes_on_with_a_new_store(tmp_path: Path) -> None:
    assert await ask(KeepstoneConversationStore(tmp_path), "Hello") == "I read 1"
    assert await ask(KeepstoneConversationStore(tmp_path), "Hello") == "I read 3"
    loaded = await KeepstoneConversationStore(tmp_path).load("c1")
    assert loaded is not None
    assert (loaded.usage.requests, stored(tmp_path)) == (2, 4)


async def test_messages_come_back_as_they_were_saved(tmp_path: Path) -> None:
    given: list[ModelMessage] = [
        ModelRequest([UserPromptPart(["Ü\u2028", BinaryContent(b"\x00\xff", media_type="application/pdf")])]),
        ModelResponse([ToolCallPart("weather", '{"city": "Bern"}', "t1")], model_name="m"),
        ModelRequest([ToolReturnPart("weather", {"degrees": 4.5, "id": None}, "t1")]),
    ]
    await KeepstoneConversationStore(tmp_path).save(Conversation(messages=given, conversation_id="c1"))
    assert await messages(KeepstoneConversationStore(tmp_path)) == given


async def test_a_conversation_that_is_missing_loads_as_none(tmp_path: Path) -> None:
    assert await KeepstoneConversationStore(tmp_path).load("none") is None
    assert keepstone.open(tmp_path).agent("default").sessions() == []


async def test_a_save_of_what_another_one_saved_is_a_conflict(tmp_path: Path) -> None:
    store = KeepstoneConversationStore(tmp_path)
    await ask(store, "Hello")
    first, second = await store.load("c1"), await KeepstoneConversationStore(tmp_path).load("c1")
    assert first is not None
    assert second is not None
    for conversation in (first, second):
        conversation.messages.append(user("Again"))
    await store.save(first)
    with pytest.raises(ConversationConflict):
        await store.save(second)
    assert stored(tmp_path) == 3


async def test_of_many_concurrent_saves_one_wins(tmp_path: Path) -> None:
    stores = [KeepstoneConversationStore(tmp_path) for _ in range(8)]
    tried = [
        store.save(Conversation(messages=[user(str(number))], conversation_id="c1"))
        for number, store in enumerate(stores)
    ]
    outcomes = await asyncio.gather(*tried, return_exceptions=True)
    assert sum(isinstance(outcome, ConversationConflict) for outcome in outcomes) == 7
    assert len(await messages(stores[0])) == 1


async def test_a_conversation_branches_and_goes_back(tmp_path: Path) -> None:
    store = KeepstoneConversationStore(tmp_path)
    await ask(store, "One")
    await ask(store, "Two")
    loaded = await store.load("c1")
    assert loaded is not None
    branched = await store.branch("c1", at=2, expected_revision=loaded.revision)
    branched.messages.append(user("Other"))
    await store.save(branched)
    record = await store.read_record("c1")
    assert record is not None
    assert (len(await messages(store)), len(record.branches)) == (3, 1)
    back = await store.branch("c1", from_entry=record.branches[0], expected_revision=record.revision)
    assert len(back.messages) == 4


async def test_a_fork_outlives_the_conversation_that_it_shares(tmp_path: Path) -> None:
    store = KeepstoneConversationStore(tmp_path)
    await ask(store, "One")
    await ask(store, "Two")
    await store.fork("c1", at=2, new_conversation_id="c2")
    await store.delete("c1")
    assert await store.load("c1") is None
    assert len(await messages(store, "c2")) == 2
    assert stored(tmp_path) == 2


async def test_a_deleted_conversation_leaves_no_byte(tmp_path: Path) -> None:
    store = KeepstoneConversationStore(tmp_path)
    await ask(store, "Our password is swordfish")
    await store.delete("c1")
    await store.delete("c1")
    assert b"swordfish" not in all_bytes(tmp_path)
    assert await ask(store, "Hello") == "I read 1"


async def test_conversations_are_listed_by_scope_last_saved_first(tmp_path: Path) -> None:
    store = KeepstoneConversationStore(tmp_path)
    for name, scope in (("a", "ada"), ("b", "bob"), ("c", "ada")):
        await store.save(Conversation(conversation_id=name, messages=[user("Hi")]), scope=scope)
    assert [record.conversation_id for record in await store.list_conversations(scope="ada")] == ["c", "a"]
    assert [record.conversation_id for record in await store.list_conversations(limit=2)] == ["c", "b"]


async def test_a_limit_loads_the_newest_messages(tmp_path: Path) -> None:
    store = KeepstoneConversationStore(tmp_path)
    await ask(store, "One")
    await ask(store, "Two")
    loaded = await store.load("c1", limit=1)
    assert loaded is not None
    assert [part.content for part in loaded.messages[0].parts if isinstance(part, TextPart)] == ["I read 3"]


async def test_it_answers_like_the_framework_s_own_store(tmp_path: Path) -> None:
    for store in (KeepstoneConversationStore(tmp_path), InMemoryConversationStore()):
        entry = (await store.save(Conversation(conversation_id="c1", messages=[user("Hi")])))[0]
        assert await store.read_entry(entry.id) == entry
        record = await store.read_record("c1")
        assert record is not None
        assert (record.head_id, record.scope, record.forked_from) == (entry.id, None, None)
        with pytest.raises(LookupError):
            await store.read_entry("none")
        with pytest.raises(ConversationConflict):
            await store.delete_record("c1", expected_revision="old")
        with pytest.raises(ConversationConflict):
            await store.delete_record("none", expected_revision="old")


@pytest.mark.parametrize("name", ["../x", "a/b", "ü ", "s" * 150, "ü" * 150])
async def test_conversations_with_odd_ids_stay_apart(tmp_path: Path, name: str) -> None:
    store = KeepstoneConversationStore(tmp_path / "home")
    await ask(store, "Hello", name)
    assert await store.load(name + "x") is None
    assert len(await messages(store, name)) == 2
    assert os.listdir(tmp_path) == ["home"]


async def test_messages_are_recalled_and_records_are_not(tmp_path: Path) -> None:
    await ask(KeepstoneConversationStore(tmp_path), "We use pnpm")
    hits = keepstone.open(tmp_path).agent("default").recall("pnpm conversation")
    assert hits[0].text == "user: We use pnpm"
    assert {hit.entry.type for hit in hits} == {"message"}


async def test_a_model_remembers_and_recalls_with_the_tools(tmp_path: Path) -> None:
    def model(history: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        answers = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
        if not answers:
            return ModelResponse([ToolCallPart("memory_save", {"text": "Ada prefers tea"})])
        if len(answers) == 1:
            return ModelResponse([ToolCallPart("memory_search", '{"query": "tea"}')])
        content: Any = answers[1].content
        return ModelResponse([TextPart(content["hits"][0]["text"])])

    toolset = KeepstoneToolset(tmp_path, agent="coder", session="s1")
    result = await Agent(FunctionModel(model), toolsets=[toolset]).run("Hello")
    assert result.output == "Ada prefers tea"
    assert len(keepstone.open(tmp_path).agent("coder").session("s1").entries()) == 1


async def test_the_toolset_has_the_tools_of_the_agent(tmp_path: Path) -> None:
    model = TestModel(call_tools=[])
    await Agent(model, toolsets=[KeepstoneToolset(tmp_path, id="memory")]).run("Hello")
    assert model.last_model_request_parameters is not None
    offered = {
        tool.name: tool.parameters_json_schema for tool in model.last_model_request_parameters.function_tools
    }
    expected = keepstone.open(tmp_path).agent("default").tools()
    assert offered == {tool["name"]: tool["parameters"] for tool in expected}


async def test_a_tool_tells_the_model_what_was_wrong(tmp_path: Path) -> None:
    def model(history: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        answers = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
        if not answers:
            return ModelResponse([ToolCallPart("memory_files", {"action": "read", "path": "../secret"})])
        content: Any = answers[0].content
        return ModelResponse([TextPart(content["error"]["code"])])

    agent = Agent(FunctionModel(model), toolsets=[KeepstoneToolset(tmp_path)])
    assert (await agent.run("Hello")).output == "path_escape"


async def test_the_memory_tool_works_on_the_agents_files(tmp_path: Path) -> None:
    def model(history: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        answers = [part for message in history for part in message.parts if isinstance(part, ToolReturnPart)]
        path = "/memories/plan.md"
        commands = [
            {"command": "create", "path": path, "file_text": "Ship on Friday"},
            {"command": "view", "path": "/memories/none.md"},
        ]
        if len(answers) < len(commands):
            return ModelResponse([ToolCallPart("memory", commands[len(answers)])])
        return ModelResponse([TextPart("|".join(str(answer.content) for answer in answers))])

    agent = Agent(FunctionModel(model), tools=[memory_tool(tmp_path, agent="coder")])
    created, absent = (await agent.run("Hello")).output.split("|")
    assert created == "File created successfully at: /memories/plan.md"
    assert "does not exist" in absent
    files = keepstone.open(tmp_path).agent("coder").files
    assert [files.read(path) for path in files.list()] == ["Ship on Friday"]
