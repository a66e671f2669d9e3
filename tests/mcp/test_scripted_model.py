"""A model that does what the instructions say, with the tools as a real client lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import validate
from mcp import Client

from keepstone.mcp.instructions import INSTRUCTIONS, READ_ONLY

from .processes import with_client

LEARNED = [
    "We deploy from the branch release, because main is not tested at night.",
    "Ada prefers short answers without examples.",
    "The flaky checkout test failed because the clock of the container was wrong.",
]
ASKED = [
    "From which branch do we deploy?",
    "How long may answers be for Ada?",
    "Why did the checkout test fail?",
]


class Model:
    """Calls a tool only as its schema allows."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._tools: dict[str, Any] = {}

    async def call(self, name: str, **arguments: Any) -> Any:
        self._tools = self._tools or {tool.name: tool for tool in (await self._client.list_tools()).tools}
        tool = self._tools[name]
        validate(tool.input_schema, arguments)
        result = await self._client.call_tool(name, arguments)
        assert not result.is_error, result.content
        validate(tool.output_schema, result.structured_content)
        return result


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def test_what_one_conversation_learned_the_next_one_finds(home: Path) -> None:
    async def learn(client: Client) -> None:
        model = Model(client)
        await model.call("memory_context", query="a new task")
        for text in LEARNED:
            await model.call("memory_save", text=text)

    async def use(client: Client) -> list[str]:
        model = Model(client)
        found = [await model.call("memory_search", query=question) for question in ASKED]
        return [result.structured_content["hits"][0]["text"] for result in found]

    with_client(home, learn)
    assert with_client(home, use) == LEARNED


@pytest.mark.parametrize(("options", "instructions"), [((), INSTRUCTIONS), (("--read-only",), READ_ONLY)])
def test_the_instructions_name_only_tools_that_are_listed(
    home: Path, options: tuple[str, ...], instructions: str
) -> None:
    async def use(client: Client) -> tuple[str | None, set[str]]:
        return client.instructions, {tool.name for tool in (await client.list_tools()).tools}

    given, names = with_client(home, use, *options)
    assert given == instructions
    assert {word.strip(".,") for word in instructions.split() if word.startswith("memory_")} <= names
