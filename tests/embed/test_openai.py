"""Embedders behind the OpenAI API, against a server on this machine."""

from __future__ import annotations

import http.server
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.warm import warm

import keepstone
from keepstone.embed import check_embedder, embed_query, embed_texts, openai
from keepstone.embed.openai import OpenAIEmbedder, server_named
from keepstone.errors import EmbedderUnavailableError, EmbeddingDimMismatchError, InvalidEmbeddingError
from keepstone.vector import Space

pytestmark = pytest.mark.skipif(not find_spec("openai"), reason="pip install 'keepstone[openai]'")
KEY = "sk-very-secret-4711"


class Server:
    """What a server was asked, and what it is to answer."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.failures: list[int] = []
        self.answer: Callable[[list[str]], Any] = embeddings_of
        self.url = ""

    def embedder(self, dim: int | None = None) -> OpenAIEmbedder:
        return OpenAIEmbedder("small", self.url, dim)


def embeddings_of(texts: list[str]) -> Any:
    """Answer with the length of each text and its place, in another order."""
    data = [{"index": place, "embedding": [len(text), place, 1]} for place, text in enumerate(texts)]
    return {"object": "list", "data": data[::-1]}


@pytest.fixture
def server(serve: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch) -> Server:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked.append({"path": self.path, **body})
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            status = state.failures.pop(0) if state.failures else 200
            said = {"error": {"message": f"no: {self.headers['Authorization']}"}}
            raw = json.dumps(said if status != 200 else state.answer(body["input"])).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("retry-after-ms", "1")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  So it is called there.
            pass

    state.url = serve(Handler) + "/v1"
    return state


def test_vectors_come_in_the_order_of_their_texts(server: Server) -> None:
    made = server.embedder(3).embed_documents(["a", "bcd", ""])
    assert made.dtype == np.float32
    assert made.tolist() == [[1, 0, 1], [3, 1, 1], [1, 2, 1]]
    asked = {
        "path": "/v1/embeddings",
        "model": "small",
        "input": ["a", "bcd", " "],
        "encoding_format": "float",
    }
    assert server.asked == [asked]


def test_many_texts_go_in_several_requests(server: Server) -> None:
    made = server.embedder(3).embed_documents([str(number) for number in range(150)])
    assert [len(asked["input"]) for asked in server.asked] == [64, 64, 22]
    assert made.shape == (150, 3)


def test_a_query_is_one_vector_and_long_texts_are_cut(server: Server) -> None:
    assert server.embedder(3).embed_query("x" * 1_000_000).tolist() == [8000, 0, 1]
    assert server.embedder(3).embed_query("\ud800").tolist() == [1, 0, 1]


def test_an_unknown_dimension_is_asked_for_once(server: Server) -> None:
    embedder = server.embedder()
    assert server.asked == []
    assert check_embedder(embedder) == Space(f"{server.url}?model=small", 3)
    embed_texts(embedder, ["a"])
    assert [asked["input"] for asked in server.asked] == [["dimension"], ["a"]]


def test_a_server_that_is_busy_is_asked_again(server: Server) -> None:
    server.failures = [503, 429]
    assert len(server.embedder(3).embed_documents(["a"])) == 1
    assert len(server.asked) == 3


def test_a_refusal_does_not_show_the_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSTONE_EMBED_KEY", KEY)
    server.failures = [401]
    with pytest.raises(EmbedderUnavailableError, match=r"AuthenticationError: .*no: Bearer \*\*\*") as raised:
        server.embedder(3).embed_query("a")
    assert KEY not in str(raised.value)
    assert raised.value.__suppress_context__
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_the_key_of_openai_never_goes_to_another_server(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-secret")
    server.embedder(3).embed_query("a")
    server.embedder(3).embed_documents(["a"])
    assert "secret" not in json.dumps(server.headers)


def test_openai_itself_gets_its_key_from_the_environment(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.answer = lambda _: {"data": [{"index": 0, "embedding": [1.0] * 1536}]}
    embedder = OpenAIEmbedder("text-embedding-3-small")
    assert check_embedder(embedder) == Space("openai:text-embedding-3-small", 1536)
    assert len(embedder.embed_query("a")) == 1536
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"


def test_openai_without_a_key_says_which_variable_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(EmbedderUnavailableError, match="set OPENAI_API_KEY"):
        OpenAIEmbedder("text-embedding-3-small")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}, EmbeddingDimMismatchError),
        ({"data": [{"index": 0, "embedding": [1.0, 2.0, None]}]}, InvalidEmbeddingError),
        ({"data": [{"index": 0, "embedding": "abc"}]}, EmbeddingDimMismatchError),
        ({"data": [{"embedding": [1.0]}, {"embedding": [2.0]}]}, InvalidEmbeddingError),
        ({"data": []}, EmbeddingDimMismatchError),
        ({"data": None}, InvalidEmbeddingError),
        ({}, InvalidEmbeddingError),
        ([], InvalidEmbeddingError),
    ],
)
def test_an_answer_without_the_vectors_is_refused(
    server: Server, answer: Any, error: type[Exception]
) -> None:
    server.answer = lambda _: answer
    with pytest.raises(error, match="small' (returned|sent)"):
        embed_query(server.embedder(3), "a")
    with pytest.raises(error, match="small' (returned|sent)"):
        embed_texts(server.embedder(3), ["a"])


def test_a_server_that_gives_no_vector_has_no_dimension(server: Server) -> None:
    server.answer = lambda _: {"data": [{"index": 0, "embedding": []}]}
    with pytest.raises(InvalidEmbeddingError, match="returned no vector for a text"):
        check_embedder(server.embedder())


def test_a_server_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "_QUERY_RETRIES", 0)
    with pytest.raises(EmbedderUnavailableError, match="127.0.0.1:1/v1.* failed: APIConnectionError"):
        OpenAIEmbedder("small", "http://127.0.0.1:1/v1", 3).embed_query("a")


@pytest.fixture
def silent(serve: Callable[[Any], str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server that takes a question and keeps silent until the test ends."""
    over = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            over.wait(60)

    monkeypatch.setattr(openai, "_QUERY_RETRIES", 0)
    monkeypatch.setattr(openai, "_QUERY_TIMEOUT", 0.05)
    yield serve(Handler)
    over.set()


def test_a_server_that_keeps_silent_is_given_up(silent: str) -> None:
    with pytest.raises(EmbedderUnavailableError, match="failed: APITimeoutError"):
        OpenAIEmbedder("small", silent, 3).embed_query("a")


def test_an_address_names_server_model_and_dimension() -> None:
    made = server_named("http://localhost:11434/v1/?model=nomic-embed-text%3Av1&dim=768")
    assert check_embedder(made) == Space("http://localhost:11434/v1?model=nomic-embed-text:v1", 768)


def test_a_model_may_be_named_by_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEEPSTONE_EMBED_MODEL", "bge")
    assert server_named("https://host/v1").id == "https://host/v1?model=bge"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("http://host/v1", "names no model: add"),
        ("http:///v1?model=m", "an embedder's address must be"),
        ("http://user:word@host/v1?model=m", "put a key into KEEPSTONE_EMBED_KEY"),
        ("http://:word@host/v1?model=m", "put a key into KEEPSTONE_EMBED_KEY"),
        ("http://host/v1?model=m&key=secret", "put a key into KEEPSTONE_EMBED_KEY"),
        ("http://host/v1?model=m&dim=0", "dim must be a positive whole number"),
        ("http://host/v1?model=m&dim=-3", "dim must be a positive whole number"),
    ],
)
def test_an_address_of_another_form_is_refused(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        server_named(address)
    assert "word" not in str(raised.value)
    assert "secret" not in str(raised.value)


SHORT_PROCESS = """
import sys
import keepstone, keepstone.home

keepstone.home._CATCHING_UP_SECONDS = 30  # A busy machine may need longer than a second.
root, server, text, query = sys.argv[1:]
with keepstone.open(root, embedder=server, durability="os") as home:
    agent = home.agent("a")
    if text:
        agent.session("s").add("note", {"content": text})
    hits = agent.recall(query) if query else ()
    print(sorted(hit.entry.text for hit in hits if "vectors" in hit.why.ranks))
"""


def short_process(server: Server, root: Path, text: str = "", query: str = "") -> str:
    """Add a text, recall by a query, and return what was found by meaning."""
    command = [*warm(), "-c", SHORT_PROCESS, str(root), f"{server.url}?model=small", text, query]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout.strip()


def test_short_processes_find_earlier_entries_by_meaning(server: Server, tmp_path: Path) -> None:
    assert short_process(server, tmp_path, "alpha", "xyz") == "[]"
    assert short_process(server, tmp_path, "gamma", "xyz") == "['alpha']"
    assert short_process(server, tmp_path, "delta", "xyz") == "['alpha', 'gamma']"


def test_closing_has_a_server_embed_what_was_added(server: Server, tmp_path: Path) -> None:
    assert short_process(server, tmp_path, "alpha") == "[]"
    assert short_process(server, tmp_path, query="xyz") == "['alpha']"
    assert [body["input"] for body in server.asked].count(["alpha"]) == 1


def test_closing_waits_for_no_server_that_hangs(server: Server, tmp_path: Path) -> None:
    released = threading.Event()

    answered: list[str] = []

    def hang(texts: list[str]) -> Any:
        released.wait(30)
        answered.extend(texts)
        return embeddings_of(texts)

    server.answer = hang
    with keepstone.open(tmp_path, embedder=f"{server.url}?model=small&dim=3") as home:
        home.agent("a").session("s").add("note", {"content": "alpha"})
    assert answered == []
    released.set()
    with keepstone.open(tmp_path, embedder="none") as home:
        assert [entry.text for entry in home.agent("a").session("s").entries()] == ["alpha"]


def test_closing_a_home_whose_server_is_gone_raises_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with keepstone.open(tmp_path, embedder="http://127.0.0.1:1/v1?model=small&dim=3") as home:
        home.agent("a").session("s").add("note", {"content": "alpha"})
    assert "entries are not embedded yet, run keepstone index" in caplog.text
    assert "alpha" not in caplog.text
