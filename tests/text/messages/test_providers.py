"""Messages as providers take them, checked with the types of their SDKs."""

from collections.abc import Iterable
from typing import Any

import pytest
from anthropic.types import Message, MessageParam
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage, ChatCompletionMessageParam
from openai.types.responses import ResponseFunctionToolCall, ResponseInputItemParam, ResponseReasoningItem
from pydantic import TypeAdapter, ValidationError
from tests.text.messages.samples import (
    AI_SDK_UI,
    ALL,
    ANTHROPIC,
    OPENAI_CHAT,
    OPENAI_RESPONSES,
    Messages,
)
from tests.text.messages.test_indexed import JSON, KEYS, TYPES

from keepstone.text.messages.providers import Provider, for_provider

CHAT: TypeAdapter[Any] = TypeAdapter(list[ChatCompletionMessageParam])
ITEMS: TypeAdapter[Any] = TypeAdapter(list[ResponseInputItemParam])
MESSAGES: TypeAdapter[Any] = TypeAdapter(list[MessageParam])


def check_types(messages: Messages, provider: str) -> None:
    """Raise ValidationError unless one API of the provider has a type for each message."""
    if provider == "anthropic":
        return _exhaust(MESSAGES.validate_python(messages))
    try:
        return _exhaust(CHAT.validate_python(messages))
    except ValidationError:
        return _exhaust(ITEMS.validate_python(messages))


def _exhaust(value: Any) -> None:
    """Go through iterables, which pydantic checks only when they are read."""
    if isinstance(value, dict):
        for item in value.values():
            _exhaust(item)
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            _exhaust(item)


def check_calls(messages: Messages, provider: str) -> None:
    """Assert what the APIs ask for and no type says: results follow their calls, each call has one."""
    asked: set[str] = set()
    has_items = any("role" not in message for message in messages)
    for message in messages:
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        answered = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        answered |= {message["tool_call_id"]} if "tool_call_id" in message else set()
        answered |= {message["call_id"]} if message.get("type") == "function_call_output" else set()
        assert answered <= asked
        asked -= answered
        # Only the Responses API allows anything between a call and its result.
        assert has_items or message["role"] == "tool" or not asked
        asked |= {block["id"] for block in blocks if block["type"] == "tool_use"}
        asked |= {call["id"] for call in message.get("tool_calls") or ()}
        asked |= {message["call_id"]} if message.get("type") == "function_call" else set()
    assert not asked
    if provider == "anthropic" and messages:
        assert messages[0]["role"] == "user"


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("name", ALL)
def test_every_format_becomes_messages_the_provider_takes(name: str, provider: Provider) -> None:
    found = for_provider(ALL[name], provider)
    check_types(found, provider)
    check_calls(found, provider)
    text = str(found)
    for told in (
        "Weather in Bern and Chur?",
        "get_weather",
        "Bern",
        "18 degrees",
        "21 degrees",
        "Bern 18, Chur 21.",
    ):
        assert told in text


@pytest.mark.parametrize(
    ("messages", "provider"),
    [(OPENAI_CHAT, "openai"), (OPENAI_RESPONSES, "openai"), (ANTHROPIC, "anthropic")],
    ids=["chat", "responses", "anthropic"],
)
def test_messages_of_the_provider_come_back_unchanged(messages: Messages, provider: Provider) -> None:
    assert for_provider(messages, provider) == messages


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_any_piece_of_a_conversation_is_valid(name: str, provider: Provider, data: st.DataObject) -> None:
    places = data.draw(st.sets(st.integers(0, len(ALL[name]) - 1)))
    found = for_provider([ALL[name][place] for place in sorted(places)], provider)
    check_types(found, provider)
    check_calls(found, provider)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@given(st.lists(st.sampled_from([message for messages in ALL.values() for message in messages]), max_size=12))
def test_messages_of_several_formats_in_any_order_are_valid(provider: Provider, messages: Messages) -> None:
    found = for_provider(messages, provider)
    check_calls(found, provider)
    check_types(found, provider)


def test_a_result_whose_call_is_cut_off_is_left_out() -> None:
    assert for_provider(OPENAI_CHAT[3:], "openai") == OPENAI_CHAT[-1:]
    assert for_provider(OPENAI_RESPONSES[5:], "openai") == OPENAI_RESPONSES[-1:]
    assert for_provider(ANTHROPIC[2:], "anthropic") == []


def test_a_call_without_its_result_is_left_out_and_the_text_stays() -> None:
    asked = {**OPENAI_CHAT[2], "content": "Let me look."}
    found = for_provider([OPENAI_CHAT[1], asked, OPENAI_CHAT[3]], "openai")
    assert found[1] == {**asked, "tool_calls": asked["tool_calls"][:1]}
    assert for_provider([asked], "openai") == [{"role": "assistant", "content": "Let me look."}]
    assert for_provider(OPENAI_CHAT[2:3], "openai") == []


def test_the_reasoning_of_a_call_that_is_left_out_goes_with_it() -> None:
    assert for_provider(OPENAI_RESPONSES[:4], "openai") == OPENAI_RESPONSES[:2]
    assert for_provider(ANTHROPIC[:2], "anthropic") == ANTHROPIC[:1]


def test_a_late_result_follows_its_call() -> None:
    system, user, calls, first, second, answer = OPENAI_CHAT
    hurry = {"role": "user", "content": "Hurry!"}
    found = for_provider([system, user, calls, first, hurry, second, answer], "openai")
    assert found == [system, user, calls, first, second, hurry, answer]


def test_an_answer_of_the_api_is_sent_without_what_a_request_refuses() -> None:
    message = Message.model_validate(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    ).model_dump()  # fmt: skip
    user = {"role": "user", "content": "Hi"}
    assert for_provider([user, message], "anthropic") == [
        user,
        {"role": "assistant", "content": message["content"]},
    ]
    answer = ChatCompletionMessage(role="assistant", content="Hello").model_dump()
    assert "tool_calls" not in for_provider([answer], "openai")[0]
    check_types(for_provider([user, answer], "openai"), "openai")
    reasoning = ResponseReasoningItem(id="rs_1", type="reasoning", summary=[]).model_dump()
    call = ResponseFunctionToolCall(type="function_call", call_id="c", name="n", arguments="{}").model_dump()
    output = {"type": "function_call_output", "call_id": "c", "output": "done"}
    found = for_provider([user, reasoning, call, output], "openai")
    assert [item.get("type") for item in found] == [
        None,
        "reasoning",
        "function_call",
        "function_call_output",
    ]
    check_types(found, "openai")


def test_images_are_passed_on_and_other_files_are_named() -> None:
    png = "data:image/png;base64,iVBORw0KGgo="
    message = {
        "id": "u1",
        "role": "user",
        "parts": [
            {"type": "file", "mediaType": "image/png", "url": png},
            {
                "type": "file",
                "mediaType": "application/pdf",
                "filename": "plan.pdf",
                "url": "data:;base64,AA",
            },
        ],
    }
    chat, anthropic = for_provider([message], "openai"), for_provider([message], "anthropic")
    assert chat[0]["content"][0] == {"type": "image_url", "image_url": {"url": png}}
    source = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    assert anthropic[0]["content"][0] == {"type": "image", "source": source}
    assert [found[0]["content"][1] for found in (chat, anthropic)] == [
        {"type": "text", "text": "[file: plan.pdf]"}
    ] * 2
    assert for_provider(anthropic, "openai") == chat


def test_a_tool_that_failed_says_so_to_anthropic() -> None:
    part = {
        "type": "tool-x",
        "toolCallId": "c",
        "state": "output-error",
        "input": {},
        "errorText": "no network",
    }
    message = {"id": "a", "role": "assistant", "parts": [part]}
    result = for_provider([AI_SDK_UI[0], message], "anthropic")[-1]["content"][0]
    assert (result["content"], result["is_error"]) == ("no network", True)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@given(
    st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from(["user", "assistant", *TYPES]), max_size=5)
)
def test_a_payload_of_any_form_breaks_no_other(provider: Provider, odd: dict[str, Any]) -> None:
    question = {"role": "user", "content": "Hi"}
    found = for_provider([question, odd, question], provider)
    check_calls(found, provider)
    assert str(found).count("'Hi'") == 2


def test_another_provider_is_refused() -> None:
    with pytest.raises(ValueError, match="'openai' or 'anthropic', or None"):
        for_provider([], "gemini")  # type: ignore[arg-type]
