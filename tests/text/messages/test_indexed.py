"""The indexed text of messages with content blocks."""

import base64
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.text.messages.samples import ALL

from keepstone.log.line import text_of
from keepstone.text.bounded import LONGEST

SHIPPED = '{"order": 48213, "to": {"city": "Bern"}, "now": true}'
PNG = base64.b64encode(random.Random(1).randbytes(600)).decode()


def text(data: dict[str, Any]) -> str:
    return text_of({"id": "a", "ts": "2026-01-11T14:31:00Z", "type": "message", "data": data})


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({"role": "user", "content": [{"type": "text", "text": "Hello"}]}, "user: Hello"),
        ({"role": "user", "content": ["one", {"type": "text", "text": "two"}]}, "user: one\ntwo"),
        (
            {
                "role": "assistant",
                "content": "On it",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "ship", "arguments": SHIPPED},
                    }
                ],
            },
            "assistant: On it\nship: 48213, Bern",
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Compare both", "signature": "EqQB"},
                    {"type": "tool_use", "id": "toolu_1", "name": "search", "input": {"q": "flights"}},
                ],
            },
            "assistant: reasoning: Compare both\nsearch: flights",
        ),
        (
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "toolu_1",
                        "content": [{"type": "text", "text": "LX 318"}],
                    }
                ],
            },
            "user: LX 318",
        ),
        ({"type": "function_call", "call_id": "c", "name": "find", "arguments": "no JSON"}, "find: no JSON"),
        ({"type": "function_call_output", "call_id": "c", "output": "Gate B12"}, "Gate B12"),
        (
            {
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": "Sum"}],
                "encrypted_content": "gAAA",
            },
            "reasoning: Sum",
        ),
        (
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]},
            "assistant: Hi",
        ),
        (
            {
                "id": "m",
                "role": "assistant",
                "parts": [
                    {"type": "step-start"},
                    {
                        "type": "tool-track",
                        "toolCallId": "t",
                        "state": "output-available",
                        "input": {"id": "ORD-7"},
                        "output": {"type": "express", "days": 2},
                    },
                    {"type": "data-chart", "id": "d", "data": {"title": "Sales"}},
                ],
            },
            "assistant: track: ORD-7\ntype: express\ndays: 2\ntitle: Sales",
        ),
        ({"type": "human", "data": {"content": "Hello", "type": "human", "id": None}}, "Hello"),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No way"}]}, "assistant: No way"),
        (
            {
                "role": "assistant",
                "content": [
                    {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "cats"}},
                    {
                        "type": "web_search_tool_result",
                        "tool_use_id": "s",
                        "content": [
                            {"type": "web_search_result", "title": "Cats", "encrypted_content": "E"}
                        ],
                    },
                ],
            },
            "assistant: web_search: cats\ntitle: Cats",
        ),
    ],
)  # fmt: skip
def test_the_text_holds_what_was_said_and_no_keys_of_blocks(message: dict[str, Any], expected: str) -> None:
    assert text(message) == expected


FILES = [
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
    {"type": "file", "file": {"filename": "plan.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}},
    {"type": "input_file", "filename": "plan.pdf", "file_data": "QUJD"},
    {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
    {
        "type": "document",
        "title": "plan.pdf",
        "source": {"type": "base64", "media_type": "x", "data": "QUJD"},
    },
    {"type": "file", "mediaType": "image/png", "filename": "plan.pdf", "url": f"data:image/png;base64,{PNG}"},
    {"type": "image", "data": "QUJD", "mimeType": "image/png"},
    {"type": "media", "data": "QUJD", "mediaType": "image/png"},
    {"type": "image_generation_call", "id": "ig", "result": "QUJD"},
]


@pytest.mark.parametrize("block", FILES)
@pytest.mark.parametrize("wrap", ["content", "result"])
def test_of_a_file_the_name_is_indexed_and_never_its_bytes(block: dict[str, Any], wrap: str) -> None:
    blocks = (
        [block] if wrap == "content" else [{"type": "tool_result", "tool_use_id": "t", "content": [block]}]
    )
    found = text({"role": "user", "content": [{"type": "text", "text": "See"}, *blocks]})
    assert found == ("user: See\nplan.pdf" if "plan.pdf" in str(block) else "user: See")


def test_base64_in_a_block_of_another_type_is_left_out() -> None:
    block = {"type": "later", "note": "seen", "blob": PNG, "inner": {"type": "base64", "data": "QUJD"}}
    assert text({"role": "user", "content": [block]}) == "user: note: seen"


def test_a_data_url_inside_a_text_is_left_out() -> None:
    found = text(
        {"role": "user", "content": [{"type": "text", "text": f"![map](data:image/png;base64,{PNG}) here"}]}
    )
    assert found == "user: ![map]() here"


def test_the_text_of_a_plain_document_is_indexed() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "Clause seven"}
    assert text({"role": "user", "content": [{"type": "document", "source": source}]}) == "user: Clause seven"


@pytest.mark.parametrize("name", ALL)
def test_results_and_calls_of_every_format_are_in_the_text(name: str) -> None:
    found = "\n".join(map(text, ALL[name]))
    for told in (
        "Weather in Bern and Chur?",
        "get_weather: Bern",
        "18 degrees",
        "21 degrees",
        "Bern 18, Chur 21.",
    ):
        assert told in found
    for noise in ("type:", "tool-call", "tool_use", "call_1", "toolu_1", "gAAAAB", "EqQB", "input:", "state"):
        assert noise not in found


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({"parts": ["wheel", "axle"]}, "parts: wheel\nparts: axle"),
        ({"content": [1, 2], "k": "v"}, "k: v"),
        ({"content": {"a": "b"}}, "a: b"),
        ({"type": "human", "data": {"k": "v"}}, "type: human\nk: v"),
        ({"type": "phone_call", "with": "Ada"}, "type: phone_call\nwith: Ada"),
    ],
)
def test_a_payload_that_only_resembles_a_message_keeps_its_keys(data: dict[str, Any], expected: str) -> None:
    assert text(data) == expected


def test_a_tool_call_that_is_flat_in_a_line_has_its_text() -> None:
    line = {"id": "a", "ts": "2026-01-11T14:31:00Z", "type": "function_call", "call_id": "c"}
    line |= {"name": "find", "arguments": '{"q":"cats"}'}
    assert text_of(line) == "find: cats"


def _nested(levels: int) -> Any:
    block: Any = "deep"
    for _ in range(levels):
        block = [{"type": "tool_result", "tool_use_id": "t", "content": block}]
    return block


def test_hostile_nesting_and_repetition_are_bounded() -> None:
    assert "deep" in text({"role": "user", "content": _nested(5)})
    assert text({"role": "user", "content": _nested(95)}) == "user: "
    deep_json = '{"a":' * 900 + "1" + "}" * 900
    assert text({"type": "function_call", "call_id": "c", "name": "n", "arguments": deep_json}) == "n"
    long_label = {"x" * 100_000: ["y"] * 100_000}
    assert len(text(long_label)) <= LONGEST
    result = {"type": "tool-result", "toolCallId": "c", "output": {"type": "json", "value": long_label}}
    assert len(text({"role": "tool", "content": [result]})) <= LONGEST + len("tool: ")


KEYS = """
    type text content parts role name id input output arguments tool_calls function data source file
    image_url url call_id summary value toolCallId tool_call_id audio
""".split()
TYPES = "text tool_use tool_result function file image reasoning human x_call tool-x function_call".split()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS), inner | st.sampled_from(TYPES), max_size=5)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(KEYS), JSON | st.sampled_from(TYPES)))
def test_any_payload_has_a_text(data: dict[str, Any]) -> None:
    assert isinstance(text(json.loads(json.dumps(data))), str)
