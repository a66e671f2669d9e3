"""One conversation as each provider and framework writes it: question, two calls, results, answer."""

from typing import Any

Messages = list[dict[str, Any]]

OPENAI_CHAT: Messages = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather in Bern and Chur?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_1",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Bern"}'},
            },
            {
                "id": "call_2",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city":"Chur"}'},
            },
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "18 degrees"},
    {"role": "tool", "tool_call_id": "call_2", "content": "21 degrees"},
    {"role": "assistant", "content": "Bern 18, Chur 21."},
]
OPENAI_RESPONSES: Messages = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "Weather in Bern and Chur?"}]},
    {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [{"type": "summary_text", "text": "Two lookups"}],
        "encrypted_content": "gAAAAB",
    },
    {
        "type": "function_call",
        "id": "fc_1",
        "call_id": "call_1",
        "name": "get_weather",
        "arguments": '{"city":"Bern"}',
        "status": "completed",
    },
    {
        "type": "function_call",
        "id": "fc_2",
        "call_id": "call_2",
        "name": "get_weather",
        "arguments": '{"city":"Chur"}',
        "status": "completed",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "18 degrees"},
    {"type": "function_call_output", "call_id": "call_2", "output": "21 degrees"},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Bern 18, Chur 21.", "annotations": []}],
    },
]
ANTHROPIC: Messages = [
    {"role": "user", "content": "Weather in Bern and Chur?"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "Two lookups", "signature": "EqQB"},
            {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Bern"}},
            {"type": "tool_use", "id": "toolu_2", "name": "get_weather", "input": {"city": "Chur"}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "18 degrees"},
            {
                "type": "tool_result",
                "tool_use_id": "toolu_2",
                "content": [{"type": "text", "text": "21 degrees"}],
            },
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Bern 18, Chur 21."}]},
]
LANGCHAIN: Messages = [
    {"type": "system", "content": "Be brief.", "additional_kwargs": {}, "name": None, "id": None},
    {
        "type": "human",
        "content": "Weather in Bern and Chur?",
        "additional_kwargs": {},
        "name": None,
        "id": None,
    },
    {
        "type": "ai",
        "content": "",
        "additional_kwargs": {},
        "id": "run-1",
        "tool_calls": [
            {"name": "get_weather", "args": {"city": "Bern"}, "id": "call_1", "type": "tool_call"},
            {"name": "get_weather", "args": {"city": "Chur"}, "id": "call_2", "type": "tool_call"},
        ],
        "invalid_tool_calls": [],
        "usage_metadata": None,
    },
    {
        "type": "tool",
        "content": "18 degrees",
        "tool_call_id": "call_1",
        "status": "success",
        "name": "get_weather",
    },
    {
        "type": "tool",
        "content": "21 degrees",
        "tool_call_id": "call_2",
        "status": "success",
        "name": "get_weather",
    },
    {"type": "ai", "content": "Bern 18, Chur 21.", "tool_calls": [], "id": "run-2"},
]
LANGCHAIN_DICTS: Messages = [
    {"type": message["type"], "data": {key: value for key, value in message.items() if key != "type"}}
    for message in LANGCHAIN
]
"""The result of ``messages_to_dict``."""
AI_SDK_UI: Messages = [
    {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Weather in Bern and Chur?"}]},
    {
        "id": "a1",
        "role": "assistant",
        "metadata": {"model": "m"},
        "parts": [
            {"type": "step-start"},
            {"type": "reasoning", "text": "Two lookups", "state": "done"},
            {
                "type": "tool-get_weather",
                "toolCallId": "call_1",
                "state": "output-available",
                "input": {"city": "Bern"},
                "output": "18 degrees",
            },
            {
                "type": "dynamic-tool",
                "toolName": "get_weather",
                "toolCallId": "call_2",
                "state": "output-available",
                "input": {"city": "Chur"},
                "output": "21 degrees",
            },
            {"type": "step-start"},
            {"type": "text", "text": "Bern 18, Chur 21.", "state": "done"},
        ],
    },
]
AI_SDK_MODEL: Messages = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": [{"type": "text", "text": "Weather in Bern and Chur?"}]},
    {
        "role": "assistant",
        "content": [
            {"type": "reasoning", "text": "Two lookups"},
            {
                "type": "tool-call",
                "toolCallId": "call_1",
                "toolName": "get_weather",
                "input": {"city": "Bern"},
            },
            {
                "type": "tool-call",
                "toolCallId": "call_2",
                "toolName": "get_weather",
                "input": {"city": "Chur"},
            },
        ],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "call_1",
                "toolName": "get_weather",
                "output": {"type": "text", "value": "18 degrees"},
            },
            {
                "type": "tool-result",
                "toolCallId": "call_2",
                "toolName": "get_weather",
                "output": {"type": "text", "value": "21 degrees"},
            },
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Bern 18, Chur 21."}]},
]
ALL: dict[str, Messages] = {
    "openai chat": OPENAI_CHAT,
    "openai responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "langchain": LANGCHAIN,
    "langchain dicts": LANGCHAIN_DICTS,
    "ai sdk ui": AI_SDK_UI,
    "ai sdk model": AI_SDK_MODEL,
}
