"""What is sent to a server that speaks the OpenAI API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.chat.conftest import KEY, Said
from tests.chat.model_server import ModelServer

from keepstone import Agent, Notes
from keepstone.chat import Conversation, choose

pytest.importorskip("openai")


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Where an empty home is: what goes to a model does not depend on the store."""
    return str(tmp_path / "home")


@pytest.fixture
def talk(agent: Agent, notes: Notes, server: ModelServer) -> Conversation:
    return Conversation(agent, notes, choose(f"{server.url}/v1?model=small", {}).model)


def test_the_prompt_is_one_system_message_and_tools_are_offered(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    say(talk, "Hi")
    asked = server.asked[0]
    assert [message["role"] for message in asked["messages"]] == ["system", "user"]
    assert (asked["model"], asked["stream"]) == ("small", True)
    assert [tool["function"]["name"] for tool in asked["tools"]][:2] == ["remember", "recall"]


def test_results_of_tools_follow_their_calls(talk: Conversation, server: ModelServer, say: Said) -> None:
    server.replies = [("recall", {"query": "tea"}), "Nothing."]
    say(talk, "Tea?")
    call, result = server.asked[1]["messages"][-2:]
    assert call["tool_calls"][0]["function"] == {"name": "recall", "arguments": '{"query": "tea"}'}
    assert (result["role"], result["tool_call_id"]) == ("tool", "c1")
    assert result["content"].startswith("Recalled data: ")


def test_tools_can_be_left_out(agent: Agent, notes: Notes, server: ModelServer, say: Said) -> None:
    model = choose(f"{server.url}/v1?model=small", {}, uses_tools=False).model
    say(Conversation(agent, notes, model), "Hi")
    assert "tools" not in server.asked[0]


def test_the_key_of_openai_never_goes_to_a_server_named_by_its_address(
    talk: Conversation, server: ModelServer, say: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, KEY)
    say(talk, "Hi")
    assert KEY not in json.dumps(server.headers)


def test_an_answer_that_reached_the_limit_is_marked(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    server.finish = "length"
    assert "limit of tokens" in say(talk, "Hi")
    assert "limit of tokens" in talk.turns()[-1].data["cut"]


def test_calls_that_share_an_index_stay_apart(talk: Conversation, server: ModelServer, say: Said) -> None:
    def part(id: str | None, name: str | None, arguments: str) -> dict[str, Any]:  # noqa: A002
        return {"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}

    parts = [part("a", "recall", '{"query": '), part(None, None, '"x"}'), part("b", "list_files", "{}")]
    chunks = [{"choices": [{"index": 0, "delta": {"tool_calls": parts}, "finish_reason": "tool_calls"}]}]
    server.nonsense = b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks)
    say(talk, "Hi")
    calls = server.asked[1]["messages"][-3]["tool_calls"]
    assert [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in calls] == [
        ("a", "recall", '{"query": "x"}'),
        ("b", "list_files", "{}"),
    ]
