"""Bodies, before an app that keeps what reaches it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from tests.server.asgi import scope_of, sent_by

from keepstone.log.line import MAX_LINE
from keepstone.server.authorization import SCOPE_KEY, Access
from keepstone.server.bodies import Bodies, Limits

CHUNKED = {"method": "POST", "transfer_encoding": "chunked"}


class Kept:
    """An app that takes all messages of its request until its client has gone."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, _: Scope, receive: Receive, __: Send) -> None:
        while not self.messages or self.messages[-1]["type"] == "http.request":
            self.messages.append(await receive())


def known(**given: Any) -> Scope:
    return {**scope_of("/x", **given), SCOPE_KEY: Access()}


def status_and_code(sent: list[Any]) -> tuple[int, str]:
    assert (b"connection", b"close") in sent[0]["headers"]
    return sent[0]["status"], json.loads(sent[1]["body"])["code"]


async def unread(*_: Any) -> None:
    """Answer nothing and take no message."""


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def answered(
    receive: Callable[[], Awaitable[Message]], scope: Scope, limits: Limits, app: ASGIApp = unread
) -> list[Any]:
    """Call an app behind the limits of bodies, and return the messages that it sends."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Bodies(app, limits)(scope, receive, send))
    return sent


@given(st.lists(st.binary(max_size=9), min_size=1))
def test_a_body_comes_in_one_piece_and_then_the_end_of_its_client(pieces: list[bytes]) -> None:
    app = Kept()
    sent_by(Bodies(app, Limits()), known(**CHUNKED), *pieces)
    assert app.messages == [
        {"type": "http.request", "body": b"".join(pieces), "more_body": False},
        {"type": "http.disconnect"},
    ]


@pytest.mark.parametrize("headers", [{"content_length": "5"}, {"transfer_encoding": "chunked"}])
def test_a_body_may_have_as_many_bytes_as_the_limit_says(headers: dict[str, str]) -> None:
    app = Kept()
    assert sent_by(Bodies(app, Limits(body=5)), known(**headers), b"123", b"45") == []
    assert app.messages[0]["body"] == b"12345"


@pytest.mark.parametrize(
    "headers", [{"content_length": "6"}, {"content_length": "5"}, {"content_length": "few"}, CHUNKED]
)
def test_a_body_of_one_byte_more_is_refused_whatever_it_said(headers: dict[str, str]) -> None:
    app = Kept()
    sent = sent_by(Bodies(app, Limits(body=5)), known(**headers), b"123", b"456")
    assert status_and_code(sent) == (413, "too_large")
    assert app.messages == []


def test_a_body_that_says_it_is_too_long_is_not_waited_for() -> None:
    sent = answered(never, known(content_length="6"), Limits(body=5))
    assert status_and_code(sent) == (413, "too_large")


@pytest.mark.parametrize(("size", "status"), [(16 * 1024, None), (16 * 1024 + 1, 413)])
def test_who_has_not_said_who_they_are_may_send_16_kib(size: int, status: int | None) -> None:
    sent = sent_by(Bodies(Kept(), Limits()), scope_of("/sign-in", **CHUNKED), b"x" * size)
    assert [message["status"] for message in sent[:1]] == ([status] if status else [])


def test_a_body_may_hold_the_longest_line_and_as_much_for_its_json() -> None:
    assert Limits().body == 2 * MAX_LINE


def test_a_request_cut_short_by_its_client_is_not_handled() -> None:
    app = Kept()
    messages: list[Message] = [
        {"type": "http.request", "body": b"half", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    assert answered(receive, known(**CHUNKED), Limits(), app) == []
    assert app.messages == []


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_without_a_body_nothing_is_waited_for(version: str) -> None:
    seen: list[Any] = []

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        seen.append(receive)

    answered(never, {**known(content_length="0"), "http_version": version}, Limits(pause=0.001), app)
    assert seen == [never]


@pytest.mark.parametrize("version", ["2", "3"])
def test_a_body_that_no_header_announces_has_the_same_limits(version: str) -> None:
    sent = sent_by(
        Bodies(Kept(), Limits(body=5)), {**known(method="POST"), "http_version": version}, b"123456"
    )
    assert status_and_code(sent) == (413, "too_large")


def test_a_pause_in_a_body_ends_it() -> None:
    sent = answered(never, known(**CHUNKED), Limits(pause=0.001, whole=600))
    assert status_and_code(sent) == (408, "too_slow")


def test_a_body_that_trickles_on_is_ended_as_a_whole() -> None:
    async def trickle() -> Message:
        await asyncio.sleep(0)
        return {"type": "http.request", "body": b"", "more_body": True}

    sent = answered(trickle, known(**CHUNKED), Limits(pause=600, whole=0.001))
    assert status_and_code(sent) == (408, "too_slow")


def test_a_websocket_goes_through_as_it_is() -> None:
    seen: list[Any] = []

    async def app(_: Scope, receive: Receive, __: Send) -> None:
        seen.append(receive)

    answered(never, scope_of("/x", kind="websocket", content_length="5"), Limits(), app)
    assert seen == [never]


def test_bodies_under_way_share_a_budget_and_give_it_back() -> None:
    async def steps() -> None:
        end = asyncio.Event()
        taken: list[Any] = []

        async def app(_: Scope, receive: Receive, __: Send) -> None:
            taken.append(await receive())
            await end.wait()

        bodies = Bodies(app, Limits(together=10))

        async def ask(size: int) -> list[Any]:
            sent: list[Any] = []

            async def receive() -> Message:
                return {"type": "http.request", "body": b"x" * size}

            async def send(message: Any) -> None:
                sent.append(message)

            await bodies(known(**CHUNKED), receive, send)
            return sent

        first = asyncio.create_task(ask(6))
        await asyncio.sleep(0)
        assert status_and_code(await ask(5)) == (503, "busy")
        second = asyncio.create_task(ask(4))
        await asyncio.sleep(0)
        end.set()
        assert list(await asyncio.gather(first, second, ask(10))) == [[], [], []]
        assert [len(message["body"]) for message in taken] == [6, 4, 10]

    asyncio.run(steps())
