"""Servers that a home names as its embedder: asked only if the user allows them."""

from __future__ import annotations

import asyncio
import http.server
import json
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from nicegui import Client, core
from tests.web.page import every, on_a_page, words_of
from typer.testing import CliRunner

import keepstone
from keepstone.chat.offline import OfflineResponder
from keepstone.cli.app import app
from keepstone.embed.openai import server_named
from keepstone.embed.servers import allow, allowed, disallow, server_of
from keepstone.model import Finding
from keepstone.web.answering import Talking
from keepstone.web.components import CommandLine
from keepstone.web.pages.recall import RecallPage
from keepstone.web.pages.settings import SettingsPage
from keepstone.web.site import Open, Place, Site

pytestmark = pytest.mark.skipif(not find_spec("openai"), reason="pip install 'keepstone[openai]'")


class Server:
    """An embeddings server, and the texts that it received."""

    def __init__(self, serve: Callable[[Any], str]) -> None:
        received = self.received = list[str]()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                received.extend(texts)
                data = [{"index": n, "embedding": [len(text), n, 1]} for n, text in enumerate(texts)]
                raw = json.dumps({"object": "list", "data": data}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *_: object) -> None:
                pass

        self.address = serve(Handler) + "/v1"
        self.name = f"{self.address}?model=m"


@pytest.fixture
def server(serve: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch) -> Server:
    """A server, and a user who names no embedder."""
    monkeypatch.delenv("KEEPSTONE_EMBEDDER")
    return Server(serve)


def make(target: Path | str, embedder: str) -> None:
    """Make a home whose vectors are of a server."""
    with keepstone.open(target, embedder=embedder) as home:
        home.agent("a").session("s").add("note", text="a gift", id="g")
        assert home.agent("a").recall("gift").embedder == embedder


def use(target: Path | str, **options: Any) -> keepstone.Hits:
    """Write a secret into a home and ask for it."""
    with keepstone.open(target, **options) as home:
        home.agent("a").session("s").add("note", text="my secret")
        home.sync()
        return home.agent("a").recall("secret")


def test_a_server_that_only_the_home_names_receives_nothing(target: str, server: Server) -> None:
    make(target, server.name)
    server.received.clear()
    hits = use(target)
    assert server.received == []
    assert (hits.lexical_only, hits[0].entry.text) == (True, "my secret")


def test_a_server_that_a_copied_home_names_receives_nothing(tmp_path: Path, server: Server) -> None:
    make(tmp_path / "given", server.name)
    server.received.clear()
    shutil.copytree(tmp_path / "given", tmp_path / "copy")
    assert use(tmp_path / "copy").lexical_only
    assert server.received == []


def test_a_key_of_openai_goes_nowhere_because_a_home_says_so(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setenv("OPENAI_BASE_URL", server.address)
    make(tmp_path, "openai:m")
    server.received.clear()
    assert "keepstone model allow openai" in use(tmp_path).reason
    assert server.received == []


def test_recall_says_which_server_the_home_asks_for(tmp_path: Path, server: Server) -> None:
    make(tmp_path, server.name)
    reason = use(tmp_path).reason
    assert server.name in reason
    assert f"keepstone model allow {server.address}" in reason


def about_the_embedder(path: Path) -> Finding:
    with keepstone.open(path) as home:
        return home.doctor()[-1]


def test_the_doctor_says_how_to_allow_the_server(tmp_path: Path, server: Server) -> None:
    make(tmp_path, server.name)
    finding = about_the_embedder(tmp_path)
    assert (finding.level, server.name in finding.message) == ("warning", True)
    assert finding.remedy.endswith(f"keepstone model allow {server.address}")


@pytest.mark.parametrize("shown", ["recall", "settings"])
def test_the_pages_say_which_server_the_home_asks_for(tmp_path: Path, server: Server, shown: str) -> None:
    make(tmp_path, server.name)
    server.received.clear()
    said = list[str]()

    async def build(page: Client) -> None:
        notes = keepstone.Notes(tmp_path)
        site = Site(home, notes, lambda _: Open(), Talking(notes, OfflineResponder()))
        place = Place(site, home.agent("a"), Open(), {"q": "gift"})
        built = RecallPage(place) if shown == "recall" else SettingsPage(place)
        with patch.object(core, "loop", asyncio.get_running_loop()):
            await built.build()
            # What their timers do.
            await (built._ask() if isinstance(built, RecallPage) else built._look())  # noqa: SLF001
        said.extend([*words_of(page), *(line.props["text"] for line in every(page, CommandLine))])

    with keepstone.open(tmp_path) as home:
        on_a_page(build)
    assert server.name in "\n".join(said)
    assert f"keepstone model allow {server.address}" in "\n".join(said)
    assert server.received == []


def test_indexing_names_the_server_instead_of_asking_it(tmp_path: Path, server: Server) -> None:
    make(tmp_path, server.name)
    server.received.clear()
    with (
        keepstone.open(tmp_path) as home,
        pytest.raises(keepstone.EmbedderUnavailableError, match="keepstone model allow"),
    ):
        home.embed()
    assert server.received == []


@pytest.mark.parametrize("how", ["argument", "environment", "list"])
def test_a_server_that_the_user_names_is_asked(
    tmp_path: Path, server: Server, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    make(tmp_path, server.name)
    server.received.clear()
    if how == "environment":
        monkeypatch.setenv("KEEPSTONE_EMBEDDER", server.name)
    if how == "list":
        allow(server.address)
    hits = use(tmp_path, embedder=server.name) if how == "argument" else use(tmp_path)
    assert (hits.embedder, "secret" in server.received) == (server.name, True)


def test_a_server_that_re_embedding_names_is_asked_from_then_on(tmp_path: Path, server: Server) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("s").add("note", text="a gift")
    words = ["index", "--re-embed", "--embedder", server.name, "--home", str(tmp_path)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert use(tmp_path).embedder == server.name


def test_an_open_home_sees_that_its_server_was_allowed(tmp_path: Path, server: Server) -> None:
    make(tmp_path, server.name)
    with keepstone.open(tmp_path) as home:
        assert home.agent("a").recall("gift").lexical_only
        allow(server.address)
        assert home.agent("a").recall("gift").embedder == server.name


def test_another_server_than_the_allowed_one_receives_nothing(tmp_path: Path, server: Server) -> None:
    make(tmp_path, server.name)
    server.received.clear()
    allow(f"{server.address}/more")
    allow("http://127.0.0.1/v1")
    assert use(tmp_path).lexical_only
    assert server.received == []


def test_servers_are_allowed_and_taken_back_once(user_folder: Path) -> None:
    assert (allow("http://h:1/v1/?model=m"), allow("http://h:1/v1"), allow("openai:small")) == (
        True,
        False,
        True,
    )
    assert allowed() == ["http://h:1/v1", "openai"]
    assert (disallow("http://h:1/v1"), disallow("http://h:1/v1")) == (True, False)
    assert allowed() == ["openai"]
    (path,) = [path for path in user_folder.rglob("*") if path.is_file()]
    assert path.stat().st_mode & 0o077 == 0


def test_the_list_may_have_comments_and_keeps_them(user_folder: Path) -> None:
    allow("openai")
    (path,) = [path for path in user_folder.rglob("*") if path.is_file()]
    path.write_text("# mine\n\nhttp://h:1/v1\n", "utf-8")
    allow("openai")
    assert path.read_text("utf-8") == "# mine\n\nhttp://h:1/v1\nopenai\n"


@pytest.mark.parametrize("name", ["minilm", "given:3", "http://", "http://a b/v1", "http://h/\x1b[2J", "x"])
def test_what_is_no_server_is_not_allowed(name: str) -> None:
    with pytest.raises(ValueError, match="server|address"):
        allow(name)
    assert allowed() == []


@pytest.mark.parametrize(
    "name", ["http://good/v1?model=m", "HTTP://good/v1/?model=m", "http://g/a@b?model=m"]
)
def test_the_server_that_is_checked_is_the_one_that_is_asked(name: str) -> None:
    assert server_named(name).id == f"{server_of(name)}?model=m"
