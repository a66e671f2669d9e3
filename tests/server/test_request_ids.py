"""An id for each request."""

from __future__ import annotations

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from tests.server.asgi import scope_of, sent_by

from keepstone.server.request_ids import RequestIds, request_id_of


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the id that the routes see."""
    await PlainTextResponse(request_id_of(scope))(scope, receive, send)


def asked(**headers: str) -> tuple[str, str]:
    """Return the id in the response's header, and the one that the routes saw."""
    start, body = sent_by(RequestIds(app), scope_of("/", **headers))
    return dict(start["headers"])[b"x-request-id"].decode(), body["body"].decode()


def test_the_routes_see_the_id_of_the_response() -> None:
    in_header, seen = asked()
    assert in_header == seen != ""


def test_each_request_has_another_id() -> None:
    assert len({asked()[0] for _ in range(20)}) == 20


@pytest.mark.parametrize("given", ["a", "A-z.0_9", "x" * 128])
def test_an_id_of_the_client_is_taken_if_it_is_safe_to_log(given: str) -> None:
    assert asked(x_request_id=given) == (given, given)


@pytest.mark.parametrize("given", ["", "x" * 129, "a b", "a/b", "a\x1b[2J", "ä", "a\n"])
def test_another_id_is_replaced(given: str) -> None:
    in_header, seen = asked(x_request_id=given)
    assert in_header == seen
    assert in_header not in ("", given)


def test_a_response_that_says_its_id_keeps_it() -> None:
    async def own(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("", headers={"X-Request-Id": "own"})(scope, receive, send)

    start, _ = sent_by(RequestIds(own), scope_of("/"))
    assert [value for name, value in start["headers"] if name == b"x-request-id"] == [b"own"]


def test_a_websocket_passes_without_an_id() -> None:
    seen: list[str] = []

    async def socket(scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG001
        seen.append(request_id_of(scope))

    sent_by(RequestIds(socket), scope_of("/", "websocket"))
    assert seen == [""]
