"""What routes are made of, in an app that serves a real home."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi import APIRouter, FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.server.asgi import scope_of, sent_by

import keepstone
from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.parts import (
    AgentName,
    HomeReading,
    HomeWriting,
    Reading,
    Writing,
    access_of,
    answer,
    decoded,
    responds,
)
from keepstone.server.problems import ProblemError, install

agents = APIRouter(prefix="/agents/{agent}")
others = APIRouter()


@agents.get("")
async def read_agent(memory: Reading) -> str:
    return memory.slug


@agents.post("")
async def write_agent(memory: Writing) -> str:
    return memory.slug


@others.get("/home")
async def read_home(_: HomeReading) -> str:
    return "home"


@others.post("/home")
async def write_home(_: HomeWriting) -> str:
    return "home"


@others.get("/names/{agent}")
async def name_of(agent: AgentName) -> str:
    return agent


@pytest.fixture
def app(tmp_path: Path) -> Iterator[FastAPI]:
    app = FastAPI()
    install(app)
    app.include_router(agents)
    app.include_router(others)
    with keepstone.open(tmp_path) as app.state.home:
        yield app


def asked(app: FastAPI, method: str, path: str, access: Access | None = None) -> tuple[int, Any]:
    scope = {**scope_of(path, method=method), "path": path, SCOPE_KEY: access}
    sent = sent_by(app, scope)
    document = json.loads(sent[1]["body"])
    return sent[0]["status"], document.get("code") if isinstance(document, dict) else document


CODER = frozenset({"coder"})


@pytest.mark.parametrize(
    ("access", "path", "read", "write"),
    [
        (Access(), "/agents/coder", (200, "coder"), (200, "coder")),
        (Access(CODER), "/agents/coder", (200, "coder"), (200, "coder")),
        (Access(CODER), "/agents/other", (404, "agent_not_found"), (404, "agent_not_found")),
        (Access(CODER, read_only=True), "/agents/coder", (200, "coder"), (403, "read_only")),
        (Access(CODER, read_only=True), "/agents/other", (404, "agent_not_found"), (404, "agent_not_found")),
        (Access(), "/home", (200, "home"), (200, "home")),
        (Access(read_only=True), "/home", (200, "home"), (403, "read_only")),
        (Access(CODER), "/home", (403, "forbidden"), (403, "forbidden")),
        (Access(CODER, read_only=True), "/home", (403, "forbidden"), (403, "forbidden")),
        (None, "/agents/coder", (401, "unauthorized"), (401, "unauthorized")),
        (None, "/home", (401, "unauthorized"), (401, "unauthorized")),
    ],
)
def test_a_route_gets_only_what_its_sender_may_touch(
    app: FastAPI, access: Access | None, path: str, read: tuple[int, str], write: tuple[int, str]
) -> None:
    assert asked(app, "GET", path, access) == read
    assert asked(app, "POST", path, access) == write


def test_an_agent_is_compared_by_its_name_and_not_as_it_was_sent(app: FastAPI) -> None:
    assert asked(app, "GET", "/agents/c%6fder", Access(CODER)) == (200, "coder")
    assert asked(app, "GET", "/agents/%2e%2e", Access()) == (400, "invalid_agent_id")


def test_a_name_of_other_bytes_than_utf8_is_refused(app: FastAPI) -> None:
    assert asked(app, "GET", "/names/%FF", Access()) == (400, "invalid_argument")


def test_who_is_not_known_is_refused_by_the_second_lock_as_well() -> None:
    with pytest.raises(ProblemError, match="Bearer") as refused:
        access_of(Request(scope_of("/x")))
    assert refused.value.status == 401


@given(st.text())
def test_a_part_of_a_path_may_be_any_text_that_was_encoded(text: str) -> None:
    assert decoded(quote(text, safe="")) == text


@pytest.mark.parametrize(("part", "name"), [("a+b", "a+b"), ("%2525", "%25"), ("%", "%"), ("%zz", "%zz")])
def test_a_part_of_a_path_is_decoded_once_and_as_no_form(part: str, name: str) -> None:
    assert decoded(part) == name


@pytest.mark.parametrize("part", ["%FF", "a%C3", "%ED%A0%80"])
def test_a_part_that_is_not_utf8_is_not_a_name(part: str) -> None:
    with pytest.raises(ValueError, match="not UTF-8"):
        decoded(part)


def test_a_document_is_answered_in_ascii_with_its_status_and_headers() -> None:
    made = answer({"text": "☂ \ud800"}, 201, {"ETag": '"x"'})
    assert made.body == rb'{"text": "\u2602 \ud800"}'
    assert (made.status_code, made.headers["content-type"], made.headers["etag"]) == (
        201, "application/json", '"x"'
    )  # fmt: skip


def test_a_route_says_what_it_answers_with_and_under_which_status() -> None:
    said = responds(BaseModel, 201)
    assert said == {"status_code": 201, "responses": {201: {"model": BaseModel, "description": "Done."}}}
