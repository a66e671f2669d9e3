"""The route that embeds texts, in an app whose home has an embedder."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from tests.server.asgi import scope_of, sent_by

import keepstone
from keepstone.server import Tokens, create_app

PATH = "/v1/agents/coder/embed"


def directions(texts: list[str]) -> list[list[float]]:
    return [[float(len(text)), 3.0] for text in texts]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    with keepstone.open(tmp_path, embedder=directions) as home:
        yield create_app(home, tokens=Tokens(tmp_path))


def posted(app: FastAPI, document: Any, agents: list[str] | None = None) -> tuple[int, Any]:
    secret, _ = Tokens(app.state.home.root).create(agents, read_only=True)
    body = json.dumps(document).encode()
    given = {"content_type": "application/json", "content_length": str(len(body))}
    scope = scope_of(PATH, method="POST", host="localhost", authorization=f"Bearer {secret}", **given)
    begin, *parts = sent_by(app, scope, body)
    return begin["status"], json.loads(b"".join(part["body"] for part in parts))


def test_texts_get_the_unit_vectors_of_the_homes_embedder(app: FastAPI) -> None:
    status, answer = posted(app, {"texts": ["four", "four", "a"]})
    assert status == 200
    assert answer["dim"] == 2
    assert answer["space"] == app.state.home.agent("coder").vectors().space().id
    assert answer["vectors"][0] == answer["vectors"][1] == pytest.approx([0.8, 0.6])
    assert answer["vectors"][2] == pytest.approx([0.1**0.5, 0.9**0.5])


def test_embedding_stores_nothing(app: FastAPI, tmp_path: Path) -> None:
    posted(app, {"texts": ["remember nothing of this"]})
    assert app.state.home.agents() == []
    assert not (tmp_path / "agents").exists()


@pytest.mark.parametrize(
    "texts", [[], [""], ["x"] * 65, ["x" * 32_769], "x", [1], None], ids=lambda texts: repr(texts)[:8]
)
def test_too_many_or_too_long_texts_are_refused(app: FastAPI, texts: Any) -> None:
    status, problem = posted(app, {"texts": texts})
    assert (status, problem["code"]) == (400, "invalid_argument")


def test_a_token_for_another_agent_embeds_nothing(app: FastAPI) -> None:
    status, problem = posted(app, {"texts": ["x"]}, ["writer"])
    assert (status, problem["code"]) == (404, "agent_not_found")


def test_without_an_embedder_the_problem_says_so(http: httpx.Client) -> None:
    answer = http.post(PATH, json={"texts": ["x"]})
    assert (answer.status_code, answer.json()["code"]) == (503, "embedder_unavailable")
