"""The indexed text of Google ADK's contents."""

from __future__ import annotations

import pytest

pytest.importorskip("google.genai")

from google.genai.types import Blob, Content, FunctionCall, FunctionResponse, Part

from keepstone.integrations.adk_texts import blocks_of, content_text


def test_the_author_of_an_event_goes_before_the_role_of_its_content() -> None:
    content = Content(role="model", parts=[Part(text="Hi")])
    assert content_text(content, "planner") == "planner: Hi"
    assert content_text(content, None) == "model: Hi"


def test_calls_and_responses_are_found_by_their_values() -> None:
    call = Part(function_call=FunctionCall(name="weather", args={"city": "Bern"}))
    response = Part(function_response=FunctionResponse(name="weather", response={"result": "sunny"}))
    text = content_text(Content(role="user", parts=[call, response]), None)
    assert "weather: Bern" in text
    assert "sunny" in text


def test_bytes_are_no_text() -> None:
    image = Part(inline_data=Blob(data=b"\x89PNG", mime_type="image/png"))
    assert content_text(Content(role="user", parts=[image]), None) == "user: "


def test_a_content_without_parts_has_no_blocks() -> None:
    assert blocks_of(Content(role="user")) == []
