"""The history provider of the Microsoft Agent Framework."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Content,
    InMemoryHistoryProvider,
    Message,
)

import keepstone
from keepstone.integrations.agent_framework import KeepstoneHistoryProvider

pytestmark = pytest.mark.anyio


def said(text: str, role: str = "user", **keys: Any) -> Message:
    return Message(role, [text], **keys)


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


class Counting(BaseChatClient):
    """A model that answers with the number of messages that it was sent."""

    async def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> ChatResponse:
        return ChatResponse(messages=[said(f"I read {len(messages)}", "assistant")])


async def test_an_agent_continues_a_session_in_another_process(tmp_path: Path) -> None:
    for expected in ("I read 1", "I read 3"):
        agent = Agent(client=Counting(), context_providers=[KeepstoneHistoryProvider(tmp_path)])
        session = agent.create_session(session_id="support")
        assert (await agent.run("Hello", session=session)).text == expected
        assert session.state.get("keepstone", {}) == {}


async def test_messages_come_back_as_they_were_saved(tmp_path: Path) -> None:
    messages = [
        said("Ünï\u2028code ", message_id="m1", additional_properties={"id": "x", "deleted": True}),
        Message("assistant", [Content.from_function_call("c1", "weather", arguments={"city": "Bern"})]),
        Message("tool", [Content.from_function_result("c1", result={"degrees": 4.5})]),
        Message("user", [Content.from_data(data=b"\x89PNG", media_type="image/png")]),
    ]
    await KeepstoneHistoryProvider(tmp_path).save_messages("s1", messages)
    loaded = await KeepstoneHistoryProvider(tmp_path).get_messages("s1")
    assert [message.to_dict() for message in loaded] == [message.to_dict() for message in messages]


async def test_a_missing_session_has_no_messages_and_is_not_created(tmp_path: Path) -> None:
    assert await KeepstoneHistoryProvider(tmp_path).get_messages("none") == []
    assert keepstone.open(tmp_path).agent("default").sessions() == []


async def test_a_changed_message_does_not_change_the_history(tmp_path: Path) -> None:
    provider = KeepstoneHistoryProvider(tmp_path)
    await provider.save_messages("s1", [said("Hi", additional_properties={"a": {"b": 1}})])
    (await provider.get_messages("s1"))[0].additional_properties["a"]["b"] = 2
    assert (await provider.get_messages("s1"))[0].additional_properties == {"a": {"b": 1}}


async def test_the_overlap_rule_is_that_of_the_built_in_provider(tmp_path: Path) -> None:
    chance = random.Random(23)
    for number in range(60):
        ours, theirs = KeepstoneHistoryProvider(tmp_path), InMemoryHistoryProvider()
        state: dict[str, Any] = {}
        for _ in range(4):
            batch = [
                said(
                    chance.choice("ab"),
                    chance.choice(["user", "assistant"]),
                    message_id=chance.choice([None, None, "m1"]),
                )
                for _ in range(chance.randrange(5))
            ]
            await ours.save_messages(str(number), deepcopy(batch))
            await theirs.save_messages(str(number), batch, state=state)
        expected = await theirs.get_messages(str(number), state=state)
        assert texts(await ours.get_messages(str(number))) == texts(expected)


async def test_one_bad_message_stores_none_of_its_batch(tmp_path: Path) -> None:
    provider = KeepstoneHistoryProvider(tmp_path)
    bad = said("bad", additional_properties={"number": float("nan")})
    with pytest.raises(ValueError, match="nan") as caught:
        await provider.save_messages("s1", [said("good"), bad])
    assert not isinstance(caught.value, keepstone.KeepstoneError)
    await provider.save_messages("s1", [said("later")])
    assert texts(await provider.get_messages("s1")) == ["later"]


@pytest.mark.parametrize("session", ["../x", "a/b", "ü ", "s" * 150, "ü" * 150])
async def test_sessions_with_odd_ids_stay_apart(tmp_path: Path, session: str) -> None:
    provider = KeepstoneHistoryProvider(tmp_path / "home")
    await provider.save_messages(session, [said("one")])
    await provider.save_messages(session + "x", [said("two")])
    assert texts(await provider.get_messages(session)) == ["one"]
    assert os.listdir(tmp_path) == ["home"]


async def test_a_message_without_a_session_id_is_kept(tmp_path: Path) -> None:
    provider = KeepstoneHistoryProvider(tmp_path)
    await provider.save_messages(None, [said("one")])
    assert texts(await provider.get_messages(None)) == ["one"]


async def test_concurrent_saves_of_one_transcript_store_it_once(tmp_path: Path) -> None:
    provider = KeepstoneHistoryProvider(tmp_path)
    batch = [said("Hi", message_id="1"), said("Hello", "assistant", message_id="2")]
    await asyncio.gather(*(provider.save_messages("s1", batch) for _ in range(8)))
    assert texts(await provider.get_messages("s1")) == ["Hi", "Hello"]


async def test_messages_are_recalled_by_the_agent(tmp_path: Path) -> None:
    await KeepstoneHistoryProvider(tmp_path, agent="coder").save_messages("s1", [said("We use pnpm")])
    (hit,) = keepstone.open(tmp_path).agent("coder").recall("pnpm")
    assert (hit.entry.session, hit.text) == ("s1", "user: We use pnpm")


async def test_a_subclass_adds_to_what_is_saved(tmp_path: Path) -> None:
    class Marked(KeepstoneHistoryProvider):
        async def save_messages(
            self, session_id: str | None, messages: Sequence[Message], **keys: Any
        ) -> None:
            await super().save_messages(session_id, [*messages, said("marked", "assistant")], **keys)

    provider = Marked(tmp_path, source_id="marked", store_outputs=False)
    await provider.save_messages("s1", [said("Hi")])
    assert texts(await provider.get_messages("s1")) == ["Hi", "marked"]
    assert (provider.source_id, provider.store_outputs) == ("marked", False)
