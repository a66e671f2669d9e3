"""A chat message as turns: who speaks, in which parts."""

from __future__ import annotations

from typing import Any

import pytest

from keepstone.text.messages.turns import is_item, spoken, tool_calls_of, turns_of, unwrapped

CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "18 degrees"}


def turns(message: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """Return the role of each turn, with the kinds of its parts."""
    return [(turn.role, [part.kind for part in turn.parts]) for turn in turns_of(message)]


# Who speaks


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("user", "user"),
        ("human", "user"),
        ("assistant", "assistant"),
        ("model", "assistant"),
        ("developer", "system"),
        ("someone", "user"),
        (7, "user"),
    ],
)
def test_each_provider_s_role_becomes_one_of_four(name: Any, role: str) -> None:
    assert turns({"role": name, "content": "Hi"}) == [(role, ["text"])]


def test_a_message_of_langchain_has_its_role_in_its_type() -> None:
    assert turns({"type": "AIMessageChunk", "content": "Hi"}) == [("assistant", ["text"])]


def test_a_message_inside_another_object_is_read_as_itself() -> None:
    assert turns({"type": "ai", "data": {"content": "Hi"}}) == [("assistant", ["text"])]


@pytest.mark.parametrize(
    "message", [{"type": "ai", "data": {"text": "x"}}, {"type": "note", "data": {"content": "x"}}, {}]
)
def test_an_object_of_another_form_is_not_opened(message: dict[str, Any]) -> None:
    assert unwrapped(message) is message


# Where turns end


def test_results_of_tools_are_a_turn_of_the_tool() -> None:
    assert turns({"role": "user", "content": [RESULT]}) == [("tool", ["result"])]


def test_calls_and_results_of_one_message_are_two_turns() -> None:
    message = {"role": "assistant", "content": [CALL, RESULT, {"type": "text", "text": "18."}]}
    assert turns(message) == [("assistant", ["call"]), ("tool", ["result"]), ("assistant", ["text"])]


def test_calls_that_follow_results_stay_with_the_calls_before() -> None:
    second = {**CALL, "id": "t2"}
    message = {"role": "assistant", "content": [CALL, RESULT, second]}
    assert turns(message) == [("assistant", ["call", "call"]), ("tool", ["result"])]


def test_what_a_tool_says_beside_its_results_is_the_user_s() -> None:
    message = {"role": "tool", "content": [{"type": "text", "text": "note"}, RESULT]}
    assert turns(message) == [("user", ["text"]), ("tool", ["result"])]


def test_a_step_of_the_ai_sdk_is_no_part_of_a_turn() -> None:
    message = {"role": "assistant", "parts": [{"type": "step-start"}, {"type": "text", "text": "Hi"}]}
    assert turns(message) == [("assistant", ["text"])]


def test_a_message_without_parts_is_no_turn() -> None:
    assert turns({"role": "assistant", "content": None}) == []


def test_turns_know_the_message_that_they_are_from() -> None:
    assert [turn.source for turn in turns_of({"role": "user", "content": "Hi"}, 7)] == [7]


# Parts of a message


def test_the_answer_of_a_tool_is_one_result_with_its_name() -> None:
    message = {"role": "tool", "tool_call_id": "t1", "name": "look", "content": "18", "status": "error"}
    ((part,),) = (turn.parts for turn in turns_of(message))
    assert (part.kind, part.call, part.name, part.value, part.failed) == ("result", "t1", "look", "18", True)


def test_reasoning_comes_first_and_a_refusal_is_said() -> None:
    message = {"role": "assistant", "reasoning_content": "Hm", "content": "No", "refusal": "I cannot"}
    assert [part.text for part in turns_of(message)[0].parts] == ["Hm", "No", "I cannot"]


def test_spoken_words_are_their_transcript() -> None:
    message = {"role": "assistant", "audio": {"id": "a", "transcript": "Hello"}}
    assert [part.text for part in turns_of(message)[0].parts] == ["Hello"]


def test_a_call_that_a_message_says_twice_is_there_once() -> None:
    call = {"id": "t1", "name": "look", "args": {}}
    message = {"role": "assistant", "content": [CALL], "tool_calls": [call, {**call, "id": "t2"}]}
    assert [part.call for part in turns_of(message)[0].parts] == ["t1", "t2"]


@pytest.mark.parametrize("calls", [None, "x", {"id": "t1"}])
def test_calls_of_another_form_are_none(calls: Any) -> None:
    assert tool_calls_of({"tool_calls": calls}) == []


def test_an_item_without_a_role_is_the_assistant_s() -> None:
    item = {"type": "function_call", "call_id": "t1", "name": "look", "arguments": "{}"}
    assert turns(item) == [("assistant", ["call"])]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"type": "reasoning", "summary": []}, True),
        ({"type": "web_search_call", "action": {}}, True),
        ({"type": "function_call_output", "call_id": "t1"}, True),
        ({"type": "phone_call", "with": "Ada"}, False),
        ({"type": "reasoning", "text": "Hm"}, False),
        ({"type": "function_call", "call_id": "t1", "role": "user"}, False),
        ({"call_id": "t1"}, False),
    ],
)
def test_items_are_told_from_payloads_of_a_similar_type(message: dict[str, Any], expected: bool) -> None:  # noqa: FBT001
    assert is_item(message, message.get("type")) is expected


# More than one text


@pytest.mark.parametrize(
    "payload",
    [
        {"role": "user", "content": "Hi"},
        {"content": {"a": 1}},
        {"content": []},
        {"content": [{"no": "block"}]},
        {"tool_calls": ["x"]},
        {},
    ],
)
def test_a_plain_text_and_other_payloads_have_no_parts_of_their_own(payload: dict[str, Any]) -> None:
    assert spoken(payload) is None


@pytest.mark.parametrize(
    ("payload", "kinds"),
    [
        ({"content": ["one", "two"]}, ["text", "text"]),
        ({"parts": [{"type": "text", "text": "one"}], "content": "two"}, ["text"]),
        ({"content": "On it", "tool_calls": [{"id": "t1", "name": "look", "args": {}}]}, ["text", "call"]),
        ({"type": "human", "data": {"content": "Hi"}}, ["text"]),
    ],
)
def test_blocks_calls_and_messages_in_another_object_have_parts(
    payload: dict[str, Any], kinds: list[str]
) -> None:
    assert [part.kind for part in spoken(payload) or ()] == kinds


def test_the_type_of_an_entry_counts_for_an_item_without_one() -> None:
    item = {"call_id": "t1", "output": "18"}
    assert spoken(item) is None
    assert [part.kind for part in spoken(item, "function_call_output") or ()] == ["result"]
