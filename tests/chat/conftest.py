"""A server that speaks like a model, and conversations with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.chat.model_server import ModelServer, running

import keepstone
from keepstone import Agent, Home, Notes
from keepstone.chat import ChatModel, Conversation, choose

KEY = "sk-very-secret-4711"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with running() as state:
        yield state


@pytest.fixture
def home(target: str) -> Iterator[Home]:
    """A home on each store."""
    with keepstone.open(target) as opened:
        yield opened


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("default")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


@pytest.fixture(params=["openai", "anthropic"])
def model(request: pytest.FixtureRequest, server: ModelServer) -> ChatModel:
    """A model of each kind, which the server plays."""
    pytest.importorskip(request.param)
    variables = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"{server.url}/v1",
        "ANTHROPIC_API_KEY": KEY,
        "ANTHROPIC_BASE_URL": server.url,
    }
    return choose(f"{request.param}:m", variables).model


@pytest.fixture
def talk(agent: Agent, notes: Notes, model: ChatModel) -> Conversation:
    return Conversation(agent, notes, model, agent.session("s"))


Said = Callable[[Conversation, str], str]


@pytest.fixture
def say() -> Said:
    """Say something and return the text of the answer; errors are part of it."""

    def said(conversation: Conversation, text: str) -> str:
        return "".join(delta.text for delta in conversation.send(text) if delta.kind != "tool")

    return said
