"""Chat messages of providers, in a session and back."""

from pathlib import Path
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from tests.text.messages.samples import AI_SDK_UI, ALL, ANTHROPIC, OPENAI_CHAT

import keepstone
from keepstone import Home, Session


@pytest.fixture
def session(tmp_path: Path) -> Any:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        yield home.agent("coder").session("chat")


@pytest.mark.parametrize("name", ALL)
def test_messages_come_back_as_they_were_given(session: Session, name: str) -> None:
    entries = session.add_messages(ALL[name])
    assert session.messages() == [entry.data for entry in entries] == ALL[name]
    assert {entry.type for entry in entries} == {"message"}


def test_an_object_is_stored_as_its_model_dump(session: Session) -> None:
    answer = ChatCompletionMessage(role="assistant", content="Hello")
    session.add_messages([{"role": "user", "content": "Hi"}, answer])
    assert session.messages()[1] == answer.model_dump()


def test_a_message_with_an_id_is_an_entry_of_this_id(session: Session) -> None:
    entries = session.add_messages(AI_SDK_UI)
    assert [entry.id for entry in entries] == ["u1", "a1"]


def test_the_same_id_again_replaces_the_message_in_its_place(session: Session) -> None:
    session.add_messages(AI_SDK_UI)
    grown = {**AI_SDK_UI[0], "parts": [{"type": "text", "text": "And in Thun?"}]}
    session.add_messages([grown])
    assert session.messages() == [grown, AI_SDK_UI[1]]


@pytest.mark.parametrize("wrong", [{1: 2}, {"role": "user", "content": object()}, "text", None])
def test_a_message_that_cannot_be_stored_stops_all(session: Session, wrong: Any) -> None:
    with pytest.raises(TypeError):
        session.add_messages([{"role": "user", "content": "Hi"}, wrong])
    assert session.messages() == []


def test_a_single_message_must_be_in_a_list(session: Session) -> None:
    with pytest.raises(TypeError, match="iterable of mappings, not dict"):
        session.add_messages({"role": "user", "content": "Hi"})


def test_a_limit_keeps_the_newest_in_order(session: Session) -> None:
    session.add_messages(OPENAI_CHAT)
    session.add("note", text="no message")
    assert session.messages(limit=2) == OPENAI_CHAT[-2:]
    assert session.messages(limit=0) == []
    with pytest.raises(ValueError, match="limit must be at least 0, not -1"):
        session.messages(limit=-1)


def test_a_limit_that_cuts_a_tool_call_off_drops_its_result_for_a_provider(session: Session) -> None:
    session.add_messages(OPENAI_CHAT)
    assert session.messages(limit=2) == OPENAI_CHAT[-2:]
    assert session.messages("openai", limit=2) == OPENAI_CHAT[-1:]


def test_a_session_of_one_provider_goes_on_with_another(session: Session) -> None:
    session.add_messages(ANTHROPIC)
    found = session.messages("openai")
    assert [message["role"] for message in found] == ["user", "assistant", "tool", "tool", "assistant"]
    assert found[2]["tool_call_id"] == found[1]["tool_calls"][0]["id"] == "toolu_1"


def test_messages_added_one_by_one_are_read_alike(session: Session) -> None:
    session.add("message", {"role": "user", "content": "Hi"})
    assert session.messages("anthropic") == [{"role": "user", "content": "Hi"}]


@pytest.mark.parametrize("name", ALL)
def test_recall_finds_what_a_tool_returned(tmp_path: Path, name: str) -> None:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        home.agent("coder").session("chat").add_messages(ALL[name])
        (hit, *_) = home.agent("coder").recall("21 degrees")
        assert "21 degrees" in hit.entry.text


def test_an_index_with_the_old_texts_is_made_again_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def found(home: Home) -> int:
        return len(home.agent("coder").recall("get_weather"))

    with monkeypatch.context() as before:
        before.setattr("keepstone.log.line._message_text", lambda *_: None)
        before.setattr("keepstone.store.files.agent_logs.SCHEMA", 4)
        with keepstone.open(tmp_path, embedder="none") as home:
            home.agent("coder").session("chat").add_messages([{**OPENAI_CHAT[2], "content": "Let me look."}])
            assert found(home) == 0
    with keepstone.open(tmp_path, embedder="none") as home:
        assert found(home) == 1
