"""The app as pages are added to it, called in this process."""

from pathlib import Path
from typing import Any

import fastapi
import pytest
from tests.server.asgi import scope_of, sent_by

import keepstone
from keepstone.server import Tokens, create_app, signed_in


def pages(app: fastapi.FastAPI) -> None:
    @app.get("/page")
    def page(request: fastapi.Request) -> fastapi.Response:
        access = signed_in(request)
        assert access is not None
        agents = "all" if access.agents is None else ",".join(access.agents)
        return fastapi.Response(f"for {agents}", media_type="text/html")

    @app.get("/fault")
    def fault() -> None:
        raise RuntimeError("a secret of the code")

    @app.websocket("/live")
    async def live(socket: fastapi.WebSocket) -> None:
        await socket.accept()


@pytest.fixture
def app(tmp_path: Path) -> fastapi.FastAPI:
    return create_app(keepstone.open(tmp_path), tokens=Tokens(tmp_path), web=pages)


def asked(app: fastapi.FastAPI, path: str, kind: str = "http", **headers: str) -> list[Any]:
    return sent_by(app, scope_of(path, kind, **headers))


def bearer(app: fastapi.FastAPI, agents: list[str] | None = None) -> str:
    secret, _ = Tokens(app.state.home.root).create(agents)
    return f"Bearer {secret}"


def test_a_page_learns_what_its_reader_may_touch(app: fastapi.FastAPI) -> None:
    start, body = asked(app, "/page", authorization=bearer(app, ["coder"]))
    assert body["body"] == b"for coder"
    assert b"object-src 'none'" in dict(start["headers"])[b"content-security-policy"]


def test_a_page_needs_a_sign_in(app: fastapi.FastAPI) -> None:
    assert asked(app, "/page", accept="text/html")[0]["status"] == 303
    assert asked(app, "/page")[0]["status"] == 401


def test_a_websocket_needs_a_sign_in(app: fastapi.FastAPI) -> None:
    assert asked(app, "/live", "websocket") == [{"type": "websocket.close", "code": 1008}]
    foreign = asked(app, "/live", "websocket", authorization=bearer(app), origin="http://evil.example")
    assert foreign == [{"type": "websocket.close", "code": 1008}]
    accepted = asked(app, "/live", "websocket", authorization=bearer(app), origin="http://localhost")
    assert accepted[0]["type"] == "websocket.accept"


def test_a_mistake_of_ours_tells_nothing_of_itself(app: fastapi.FastAPI) -> None:
    answer = asked(app, "/fault", authorization=bearer(app))
    assert answer[0]["status"] == 500
    assert b'"code": "internal"' in answer[1]["body"]
    assert b"secret of the code" not in answer[1]["body"]


def test_a_server_without_notes_has_no_notes_routes(app: fastapi.FastAPI) -> None:
    assert asked(app, "/v1/notes", authorization=bearer(app))[0]["status"] == 404
