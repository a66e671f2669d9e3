"""The memory block of LlamaIndex."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine

import keepstone
from keepstone.integrations.llama_index import KeepstoneMemoryBlock

pytestmark = pytest.mark.anyio


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text)


@asynccontextmanager
async def memory(home: Path, session: str = "s1") -> AsyncIterator[Memory]:
    """A memory whose short-term part holds about thirty words."""
    engine = create_async_engine("sqlite+aiosqlite:///:memory:")
    yield Memory.from_defaults(
        session_id=session,
        token_limit=30,
        chat_history_token_ratio=0.5,
        tokenizer_fn=str.split,
        memory_blocks=[KeepstoneMemoryBlock(home)],
        async_engine=engine,
    )
    await engine.dispose()


async def test_what_leaves_the_short_term_memory_is_recalled(tmp_path: Path) -> None:
    async with memory(tmp_path) as chat:
        await chat.aput(user("The harbour gate opens at six sharp"))
        for number in range(8):
            await chat.aput(user(f"Filler message number {number} about lighthouses"))
        await chat.aput(user("When does the harbour gate open?"))
        system, *rest = await chat.aget()
    assert "The harbour gate opens at six sharp" not in [message.content for message in rest]
    assert "The harbour gate opens at six sharp" in str(system.content)


async def test_a_new_session_recalls_earlier_ones(tmp_path: Path) -> None:
    await KeepstoneMemoryBlock(tmp_path).aput([user("The harbour gate opens at six")], session_id="monday")
    async with memory(tmp_path, "tuesday") as chat:
        await chat.aput(user("harbour gate?"))
        assert "opens at six" in str((await chat.aget())[0].content)


async def test_messages_are_stored_in_the_session_that_they_name(tmp_path: Path) -> None:
    message = user("Hi")
    await KeepstoneMemoryBlock(tmp_path, agent="coder").aput([message], session_id="s/1")
    await KeepstoneMemoryBlock(tmp_path, agent="coder").aput([user("Ho")])
    agent = keepstone.open(tmp_path).agent("coder")
    (entry,) = agent.session("s/1").entries()
    assert (entry.text, entry.data["additional_kwargs"]) == ("user: Hi", {})
    assert ChatMessage.model_validate(entry.data).content == "Hi"
    assert [entry.text for entry in agent.session("keepstone").entries()] == ["user: Ho"]
    assert message.additional_kwargs == {"session_id": "s/1"}


async def test_what_the_prompt_has_already_is_not_recalled(tmp_path: Path) -> None:
    block = KeepstoneMemoryBlock(tmp_path)
    await block.aput([user("The harbour gate opens at six")])
    assert "six" not in await block.aget([user("The harbour gate opens at six")])


async def test_the_block_stays_within_its_budget(tmp_path: Path) -> None:
    large, small = KeepstoneMemoryBlock(tmp_path), KeepstoneMemoryBlock(tmp_path, budget=150)
    await large.aput([user(f"The harbour gate number {number} opens at {number}") for number in range(50)])
    question = [user("harbour gate")]
    assert len(await small.aget(question)) < len(await large.aget(question)) / 2


async def test_a_block_may_refuse_short_term_memory(tmp_path: Path) -> None:
    block = KeepstoneMemoryBlock(tmp_path, accept_short_term_memory=False, name="knowledge", priority=2)
    await block.aput([user("Hi")], from_short_term_memory=True)
    assert keepstone.open(tmp_path).agent("default").sessions() == []
    assert (block.name, block.priority) == ("knowledge", 2)


async def test_one_bad_message_stores_none_of_its_batch(tmp_path: Path) -> None:
    bad = ChatMessage(role="user", content="bad", additional_kwargs={"number": object()})
    with pytest.raises(ValueError, match="serialize") as caught:
        await KeepstoneMemoryBlock(tmp_path).aput([user("good"), bad])
    assert not isinstance(caught.value, keepstone.KeepstoneError)
    assert keepstone.open(tmp_path).agent("default").count() == 0


def test_an_invalid_agent_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="x y"):
        KeepstoneMemoryBlock(tmp_path, agent="x y")
