"""The origin of a chat message: a person, a model, a tool or the program."""

from __future__ import annotations

from typing import Any

import pytest

from keepstone.text.messages.speakers import said_by

TEXT = {"type": "text", "text": "Hi"}


@pytest.mark.parametrize(
    ("role", "speaker"),
    [
        ("user", "user"),
        ("human", "user"),
        ("assistant", "model"),
        ("model", "model"),
        ("tool", "tool"),
        ("function", "tool"),
        ("system", "program"),
        ("developer", "program"),
        ("anything", "program"),
        (None, "program"),
        (7, "program"),
    ],
)
def test_the_role_says_who_speaks(role: Any, speaker: str) -> None:
    assert said_by({"role": role, "content": "Hi"}) == speaker


def test_a_message_of_langchain_says_it_in_its_type() -> None:
    assert said_by({"type": "HumanMessageChunk", "content": "Hi"}) == "user"


def test_a_message_inside_another_object_is_read_as_itself() -> None:
    assert said_by({"type": "ai", "data": {"content": "Hi"}}) == "model"


def test_the_type_of_an_entry_counts_for_a_message_without_one() -> None:
    assert said_by({"content": "Hi"}, "assistant") == "model"


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_result", "content": "42"},
        {"type": "tool-result", "output": "42"},
        {"type": "mcp_tool_result"},
        {"type": "tool-weather", "output": {"c": 18}},
        {"type": "dynamic-tool", "errorText": "no network"},
        {"type": "web_search_call", "results": ["x"]},
        {"functionResponse": {"name": "look"}},
        {"toolResult": {"content": []}},
    ],
)
def test_a_message_with_a_tool_s_result_is_the_tool_s(role: str, block: dict[str, Any]) -> None:
    assert said_by({"role": role, "content": [TEXT, block]}) == "tool"


@pytest.mark.parametrize("key", ["content", "contents", "parts"])
def test_results_are_found_wherever_providers_put_blocks(key: str) -> None:
    result = {"type": "tool_result"}
    assert said_by({"role": "user", key: [result]}) == said_by({"role": "user", key: result}) == "tool"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "input": {}},
        {"type": "tool-weather", "input": {}},
        {"type": "function_call", "arguments": "{}"},
        {"functionCall": {}},
    ],
)
def test_a_call_without_a_result_is_the_model_s(block: dict[str, Any]) -> None:
    assert said_by({"role": "assistant", "content": [block]}) == "model"


@pytest.mark.parametrize(
    ("item", "speaker"),
    [
        ({"type": "function_call", "call_id": "t1", "arguments": "{}"}, "model"),
        ({"type": "reasoning", "summary": []}, "model"),
        ({"type": "function_call_output", "call_id": "t1", "output": "42"}, "tool"),
        ({"type": "code_interpreter_call", "code": "1", "outputs": ["2"]}, "tool"),
    ],
)
def test_items_without_a_role_are_the_model_s_unless_they_hold_a_result(
    item: dict[str, Any], speaker: str
) -> None:
    assert said_by(item) == speaker
