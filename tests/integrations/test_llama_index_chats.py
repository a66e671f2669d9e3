"""The chat store of LlamaIndex."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer

import keepstone
from keepstone import Home
from keepstone.integrations.llama_index import KeepstoneChatStore, KeepstoneMemoryBlock


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    with keepstone.open(target, embedder="none") as home:
        yield home


@pytest.fixture
def store(home: Home) -> KeepstoneChatStore:
    store = KeepstoneChatStore(home)
    store.set_messages("monday", [*map(user, "abc")])
    return store


def user(text: str) -> ChatMessage:
    return ChatMessage(role="user", content=text, additional_kwargs={"session_id": text})


def test_messages_come_back_as_they_were_stored(store: KeepstoneChatStore) -> None:
    store.add_message("monday", user("d"))
    assert store.get_messages("monday") == [*map(user, "abcd")]
    assert store.get_messages("tuesday") == []


def test_setting_messages_replaces_those_of_the_key_only(store: KeepstoneChatStore) -> None:
    store.set_messages("tuesday", [user("x")])
    store.set_messages("monday", [*map(user, "ca")])
    assert store.get_messages("monday") == [*map(user, "ca")]
    assert store.get_messages("tuesday") == [user("x")]


def test_deleting_returns_what_was_there(store: KeepstoneChatStore) -> None:
    assert store.delete_message("monday", 1) == user("b")
    assert store.delete_message("monday", 2) is None
    assert store.delete_last_message("monday") == user("c")
    assert store.delete_messages("monday") == [user("a")]
    assert store.delete_messages("monday") is None
    assert store.delete_last_message("monday") is None


def test_keys_may_be_long_and_are_those_with_messages(store: KeepstoneChatStore, home: Home) -> None:
    home.agent("default").add("Not a chat", session="notes")
    store.add_message("k" * 300, user("x"))
    assert {*store.get_keys()} == {"monday", "k" * 300}
    store.delete_messages("k" * 300)
    assert store.get_keys() == ["monday"]


def test_recall_finds_what_was_said(store: KeepstoneChatStore, home: Home) -> None:
    store.add_message("tuesday", ChatMessage(role="user", content="I take the ferry"))
    assert home.agent("default").recall("ferry")[0].entry.session == "tuesday"


def test_a_memory_block_of_the_same_session_adds_no_message(home: Home, store: KeepstoneChatStore) -> None:
    block = KeepstoneMemoryBlock(home)
    block._store([user("monday")])  # noqa: SLF001  What the framework calls.
    assert store.get_messages("monday") == [*map(user, "abc")]


def test_a_buffer_goes_on_after_a_restart(target: str) -> None:
    for expected in (1, 2):
        with keepstone.open(target, embedder="none") as home:
            buffer = ChatMemoryBuffer.from_defaults(
                chat_store=KeepstoneChatStore(home), chat_store_key="ada", tokenizer_fn=str.split
            )
            buffer.put(user("Hi"))
            assert len(buffer.get()) == expected
