"""The chat history and the retriever of LangChain."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables.history import RunnableWithMessageHistory

import keepstone
from keepstone.integrations.langchain import KeepstoneChatMessageHistory, KeepstoneRetriever

pytestmark = pytest.mark.anyio

CALL = {"name": "weather", "args": {"city": "Bern", "id": None}, "id": "c1", "type": "tool_call"}
MESSAGES: list[BaseMessage] = [
    SystemMessage("Be brief"),
    HumanMessage(
        [{"type": "text", "text": "Ü\u2028"}, {"type": "image", "url": "https://example.org/a.png"}]
    ),
    AIMessage("", tool_calls=[CALL], id="m1", response_metadata={"deleted": True, "data": {"ts": ""}}),
    ToolMessage("4.5", tool_call_id="c1", artifact={"degrees": 4.5}),
    AIMessage("It is cold", name="Ada"),
    ChatMessage(content="Aye", role="pirate"),
    AIMessageChunk(content="cold"),
]


def history(home: Path, session: str = "s1", **keys: Any) -> KeepstoneChatMessageHistory:
    return KeepstoneChatMessageHistory(session, home, **keys)


def test_messages_come_back_as_they_were_added(tmp_path: Path) -> None:
    history(tmp_path).add_messages(MESSAGES)
    assert history(tmp_path).messages == MESSAGES


async def test_the_methods_can_be_awaited(tmp_path: Path) -> None:
    chat = history(tmp_path)
    await chat.aadd_messages(MESSAGES)
    assert await chat.aget_messages() == MESSAGES
    await chat.aclear()
    assert await chat.aget_messages() == []


def test_equal_messages_are_kept_in_order(tmp_path: Path) -> None:
    for _ in range(3):
        history(tmp_path).add_user_message("Hi")
    history(tmp_path).add_ai_message(AIMessage("Hello", id="same"))
    history(tmp_path).add_ai_message(AIMessage("Hello again", id="same"))
    assert [message.text for message in history(tmp_path).messages] == ["Hi"] * 3 + ["Hello", "Hello again"]


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
def test_a_chain_continues_its_conversation(tmp_path: Path) -> None:
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    for turn in range(2):
        model = GenericFakeChatModel(messages=iter([f"answer {turn}"]))
        chain = RunnableWithMessageHistory(
            prompt | model,
            lambda session_id: history(tmp_path, session_id),
            input_messages_key="input",
            history_messages_key="history",
        )
        chain.invoke({"input": f"question {turn}"}, {"configurable": {"session_id": "s1"}})
    said = [message.text for message in history(tmp_path).messages]
    assert said == ["question 0", "answer 0", "question 1", "answer 1"]


def test_reading_creates_no_session(tmp_path: Path) -> None:
    assert history(tmp_path).messages == []
    history(tmp_path).add_messages([])
    history(tmp_path).clear()
    assert keepstone.open(tmp_path).agent("default").sessions() == []


def test_a_changed_message_does_not_change_the_history(tmp_path: Path) -> None:
    history(tmp_path).add_messages([HumanMessage("Hi", additional_kwargs={"a": {"b": 1}})])
    history(tmp_path).messages[0].additional_kwargs["a"]["b"] = 2
    assert history(tmp_path).messages[0].additional_kwargs == {"a": {"b": 1}}


def test_one_bad_message_stores_none_of_its_batch(tmp_path: Path) -> None:
    bad = ToolMessage("4.5", tool_call_id="c1", artifact=object())
    with pytest.raises(TypeError, match="object"):
        history(tmp_path).add_messages([HumanMessage("Hi"), bad])
    assert history(tmp_path).messages == []


@pytest.mark.parametrize("session", ["../x", "a/b", "ü ", "s" * 150, "ü" * 150])
def test_sessions_with_odd_ids_stay_apart(tmp_path: Path, session: str) -> None:
    history(tmp_path / "home", session).add_user_message("one")
    history(tmp_path / "home", session + "x").add_user_message("two")
    assert [message.text for message in history(tmp_path / "home", session).messages] == ["one"]
    assert os.listdir(tmp_path) == ["home"]


def test_an_empty_session_id_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must not be empty") as caught:
        history(tmp_path, "")
    assert not isinstance(caught.value, keepstone.KeepstoneError)


def test_the_retriever_finds_what_was_said_and_noted(tmp_path: Path) -> None:
    history(tmp_path, agent="coder").add_user_message("We use pnpm")
    noted = (
        keepstone.open(tmp_path).agent("coder").session("notes").add("decision", {"content": "Use pnpm 10"})
    )
    found = KeepstoneRetriever(tmp_path, agent="coder").invoke("pnpm")
    assert {document.page_content for document in found} == {"user: We use pnpm", "Use pnpm 10"}
    (document,) = KeepstoneRetriever(tmp_path, agent="coder", filters={"types": ["decision"]}).invoke("pnpm")
    assert (document.id, document.metadata["session"], document.metadata["type"]) == (
        noted.id,
        "notes",
        "decision",
    )


async def test_the_number_of_documents_is_chosen_for_all_or_one_call(tmp_path: Path) -> None:
    history(tmp_path).add_messages([HumanMessage(f"tea number {number}") for number in range(5)])
    retriever = KeepstoneRetriever(tmp_path, k=3)
    assert len(retriever.invoke("tea")) == len(await retriever.ainvoke("tea")) == 3
    assert len(retriever.invoke("tea", k=1)) == len(await retriever.ainvoke("tea", k=1)) == 1


def test_a_subclass_changes_the_documents(tmp_path: Path) -> None:
    class Loud(KeepstoneRetriever):
        def _get_relevant_documents(self, query: str, **keys: Any) -> list[Any]:
            found = super()._get_relevant_documents(query, **keys)
            return [document.model_copy(update={"page_content": "!"}) for document in found]

    history(tmp_path).add_user_message("We use pnpm")
    loud = Loud(tmp_path)  # type: ignore[call-arg, arg-type]
    assert [document.page_content for document in loud.invoke("pnpm")] == ["!"]
