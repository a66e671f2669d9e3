"""What is sent to Anthropic."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chat.conftest import KEY, Said
from tests.chat.model_server import ModelServer

from keepstone import Agent, Notes
from keepstone.chat import Conversation, choose

pytest.importorskip("anthropic")


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Where an empty home is: what goes to a model does not depend on the store."""
    return str(tmp_path / "home")


@pytest.fixture
def talk(agent: Agent, notes: Notes, server: ModelServer) -> Conversation:
    variables = {"ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
    return Conversation(agent, notes, choose("anthropic:small", variables).model)


def test_the_cache_breakpoint_follows_the_stable_part(
    talk: Conversation, notes: Notes, server: ModelServer, say: Said
) -> None:
    notes.add("Use pnpm", "Project")
    talk.agent.session("old").add("fact", {"content": "the office is in Lisbon"})
    say(talk, "Where is the office?")
    stable, varying = server.asked[0]["system"]
    assert stable["cache_control"] == {"type": "ephemeral"}
    assert "cache_control" not in varying
    assert ("Use pnpm" in stable["text"], "Lisbon" in varying["text"]) == (True, True)


def test_the_marked_part_is_the_same_for_another_question(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    talk.agent.session("old").add("fact", {"content": "the office is in Lisbon"})
    say(talk, "Where is the office?")
    say(talk, "Why?")
    first, second = (asked["system"][0] for asked in server.asked)
    assert first == second


def test_results_of_tools_follow_their_calls(talk: Conversation, server: ModelServer, say: Said) -> None:
    server.replies = [("recall", {"query": "tea"}), "Nothing."]
    say(talk, "Tea?")
    call, result = server.asked[1]["messages"][-2:]
    assert call["content"][0] == {"type": "tool_use", "id": "c1", "name": "recall", "input": {"query": "tea"}}
    assert (result["role"], result["content"][0]["tool_use_id"]) == ("user", "c1")


def test_the_key_goes_in_one_header_only(talk: Conversation, server: ModelServer, say: Said) -> None:
    say(talk, "Hi")
    carriers = [name for name, value in server.headers[0].items() if KEY in value]
    assert carriers in (["x-api-key"], ["authorization"])
