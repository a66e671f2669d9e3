"""Sockets of pages, spoken to by clients that are no browser."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import socketio  # type: ignore[import-untyped]
from tests.server.conftest import Server, serving
from tests.server.test_authorization import page_secret_in


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("sockets")) as server:
        yield server


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that none of its tests makes log anything."""
    with serving(tmp_path_factory.mktemp("silent")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    with serving(tmp_path) as server:
        yield server


@dataclass
class Visitor:
    """A browser's session without a browser."""

    server: Server
    agents: list[str] | None = None
    secret: str = ""
    cookies: httpx.Cookies = field(init=False)
    page: str = field(init=False)
    """The second secret, which a browser keeps for this origin."""

    def __post_init__(self) -> None:
        self.secret = self.secret or self.server.tokens.create(self.agents)[0]
        with self.server.client("") as client:
            own = {"Origin": self.server.url}
            welcome = client.post("/sign-in", data={"token": self.secret}, headers=own)
            self.cookies, self.page = client.cookies, page_secret_in(welcome.text)

    def html(self, path: str) -> str:
        with self.server.client("") as client:
            client.cookies = self.cookies
            return client.get(path).text

    def open(self, path: str) -> str:
        """Open a page and return its client id, which is all that its socket names it by."""
        return client_id_in(self.html(path))

    @asynccontextmanager
    async def socket(self, query: str = "") -> AsyncIterator[Any]:
        """Connect a socket."""
        client = socketio.AsyncClient(reconnection=False)
        cookie = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        await client.connect(
            f"{self.server.url}/?keepstone_page={self.page}&{query}",
            headers={"Cookie": cookie, "Origin": self.server.url},
            socketio_path="/_nicegui_ws/socket.io",
            transports=["websocket"],
        )
        try:
            yield client
        finally:
            await client.disconnect()


def client_id_in(html: str) -> str:
    found = re.search(r"client_id': '([0-9a-f-]{36})", html)
    assert found is not None
    return found[1]


def handshake_of(page: str) -> dict[str, Any]:
    return {
        "client_id": page,
        "tab_id": str(uuid.uuid4()),
        "document_id": str(uuid.uuid4()),
        "next_message_id": 0,
    }


async def joins(visitor: Visitor, page: str) -> bool:
    """Return whether a page takes a visitor's socket."""
    async with visitor.socket() as client:
        return bool(await client.call("handshake", handshake_of(page)))


def test_a_cookie_without_the_secret_of_its_pages_opens_no_socket(served: Server) -> None:
    thief = Visitor(served)
    page, thief.page = thief.open("/a/alpha/sessions"), "0" * 64
    with pytest.raises(socketio.exceptions.ConnectionError):
        asyncio.run(joins(thief, page))


def test_a_page_takes_the_socket_of_its_own_session(served: Server) -> None:
    owner = Visitor(served, ["alpha"])
    assert asyncio.run(joins(owner, owner.open("/a/alpha/sessions")))


@pytest.mark.parametrize("agents", [["beta"], ["alpha"], None], ids=["other", "same", "all"])
def test_a_page_refuses_the_socket_of_another_session(served: Server, agents: list[str] | None) -> None:
    page = Visitor(served, ["alpha"]).open("/a/alpha/sessions")
    assert not asyncio.run(joins(Visitor(served, agents), page))


def test_a_page_refuses_another_session_of_its_own_token(served: Server) -> None:
    owner = Visitor(served, ["alpha"])
    page = owner.open("/a/alpha/sessions")
    assert not asyncio.run(joins(Visitor(served, secret=owner.secret), page))


def test_a_page_refuses_another_session_in_the_address_of_the_socket(served: Server) -> None:
    page = Visitor(served, ["alpha"]).open("/a/alpha/sessions")
    query = "&".join(f"{name}={value}" for name, value in handshake_of(page).items())

    async def steps() -> None:
        with pytest.raises(socketio.exceptions.ConnectionError):
            async with Visitor(served, ["beta"]).socket(f"{query}&implicit_handshake=true"):
                pass

    asyncio.run(steps())


def test_a_refused_socket_leaves_the_page_to_its_owner(served: Server) -> None:
    owner = Visitor(served, ["alpha"])
    page = owner.open("/a/alpha/sessions")

    async def steps() -> None:
        assert not await joins(Visitor(served, ["beta"]), page)
        assert await joins(owner, page)

    asyncio.run(steps())


NEW_SESSION = re.compile(r'"(\d+)":\{"tag":"button","text":"New session".*?"listener_id":"([0-9a-f-]+)"')


def test_a_socket_cannot_press_the_buttons_of_another_page(served: Server) -> None:
    owner, other = Visitor(served, ["gamma"]), Visitor(served, ["beta"])
    html = owner.html("/a/gamma/sessions")
    button = NEW_SESSION.search(html)
    assert button is not None
    page = client_id_in(html)
    press: dict[str, Any] = {"client_id": page, "id": int(button[1]), "listener_id": button[2], "args": []}

    async def pressed(visitor: Visitor, own_page: str) -> None:
        async with visitor.socket() as client:
            assert await client.call("handshake", handshake_of(own_page))
            await client.emit("event", press)
            await client.call("handshake", handshake_of(own_page))  # By its answer the event was taken.

    async def steps() -> None:
        asked = asyncio.Event()
        async with owner.socket() as client:
            client.on("update", lambda change: asked.set() if "Title, if you like" in str(change) else None)
            assert await client.call("handshake", handshake_of(page))
            await pressed(other, other.open("/a/beta/sessions"))
            assert not asked.is_set()
            await client.emit("event", press)
            await asked.wait()

    asyncio.run(asyncio.wait_for(steps(), 30))


@pytest.mark.parametrize("message", [None, "x", 1, [], {}, {"client_id": None}, {"client_id": ["x"]}])
def test_a_message_without_a_page_leaves_no_traceback(silent: Server, message: Any) -> None:
    visitor = Visitor(silent)

    async def steps() -> None:
        async with visitor.socket() as client:
            for event in ("event", "javascript_response", "ack", "log"):
                await client.emit(event, message)
            assert await client.call("handshake", handshake_of(visitor.open("/a/alpha/sessions")))

    asyncio.run(steps())
    assert silent.log == ""


def test_a_log_message_of_a_page_cannot_control_the_terminal(own_server: Server) -> None:
    visitor = Visitor(own_server)
    page = visitor.open("/a/alpha/sessions")
    message = {
        "client_id": page,
        "level": "error",
        "message": "\x1b]0;pwned\x07\x1b[2J\nERROR: forged " + "x" * 999,
    }

    async def steps() -> None:
        async with visitor.socket() as client:
            await client.emit("log", message)
            assert await client.call("handshake", handshake_of(page))
            await client.emit("log", message)
            assert not await client.call("handshake", handshake_of(page))

    asyncio.run(steps())
    [line] = own_server.log.splitlines()
    assert line.startswith(r"WARNING: a page's script reports: \x1b]0;pwned\x07\x1b[2J ERROR: forged xxx")
    assert len(line) < 400
