"""Large and slow requests, and the end of the process, with real sockets."""

import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.conftest import Server, serving
from tests.warm import warm

import keepstone

ADD = "/v1/agents/coder/sessions/s/entries"


def head(server: Any, length: int, *, token: str | None = None) -> bytes:
    lines = [f"POST {ADD} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {length}"]
    lines += ["Content-Type: application/json", f"Authorization: Bearer {token or server.token}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def connected(server: Any) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def test_a_body_of_100_mb_is_refused_before_it_is_sent(server: Any) -> None:
    with connected(server) as sock:
        sock.sendall(head(server, 100_000_000))
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_body_that_grows_to_100_mb_without_saying_so_is_refused(server: Any) -> None:
    def pieces() -> Any:
        for _ in range(100):
            yield b" " * 1_000_000

    with server.client() as client:
        try:
            answer = client.post(ADD, content=pieces(), headers={"Content-Type": "application/json"})
        except (httpx.WriteError, httpx.ReadError):
            pass  # The connection was closed while we still sent.
        else:
            assert answer.status_code == 413
        assert client.get("/v1/health").status_code == 200


def test_a_large_body_without_a_token_is_not_read(server: Any) -> None:
    with connected(server) as sock:
        sock.sendall(head(server, 30_000_000, token="kst_no"))  # noqa: S106  No token at all.
        assert sock.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_a_stranger_cannot_fill_the_memory_through_the_sign_in_page(server: Any) -> None:
    lines = ["POST /sign-in HTTP/1.1", "Host: 127.0.0.1", "Content-Length: 30000000"]
    with connected(server) as sock:
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        assert sock.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_an_entry_of_nearly_16_mb_is_kept(http: httpx.Client) -> None:
    text = "x" * 16_000_000
    entry = http.post("/v1/agents/large/sessions/s/entries", json={"type": "note", "text": text, "id": "big"})
    assert entry.status_code == 201
    assert http.get("/v1/agents/large/entries/big").json()["text"] == text


def test_a_client_that_stops_in_its_headers_is_let_go(impatient: Any) -> None:
    with connected(impatient) as sock:
        sock.sendall(b"GET /v1/health HTTP/1.1\r\nHost: 127.")
        assert sock.recv(4096) == b""


def test_a_client_that_stops_in_its_body_is_let_go(impatient: Any) -> None:
    with connected(impatient) as sock:
        sock.sendall(head(impatient, 1000) + b'{"type":')
        assert sock.recv(4096).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    "target", [b"/ HTTP/9.9", b"\x00\xff", b"http://evil/ HTTP/1.1", b"/v1/\xc3\xa4 HTTP/1.1"]
)
def test_a_malformed_request_does_not_stop_the_server(server: Any, http: httpx.Client, target: bytes) -> None:
    with connected(server) as sock:
        sock.sendall(b"GET " + target + b"\r\n\r\n")
        sock.recv(4096)
    assert http.get("/v1/health").status_code == 200


def test_a_stop_during_adds_loses_nothing_that_was_acknowledged(own_server: Any) -> None:
    server, acknowledged, enough = own_server, [], threading.Event()

    def add(name: str) -> None:
        with server.client() as client:
            for number in range(100_000):
                entry = {"id": f"{name}-{number}", "type": "note", "text": "x"}
                try:
                    answer = client.post(f"/v1/agents/coder/sessions/{name}/entries", json=entry)
                except httpx.TransportError:
                    return
                if answer.status_code != 201:
                    return
                acknowledged.append(entry["id"])
                if len(acknowledged) > 100:
                    enough.set()

    writers = [threading.Thread(target=add, args=(f"w{number}",)) for number in range(4)]
    for writer in writers:
        writer.start()
    assert enough.wait(60)
    server.process.send_signal(signal.SIGTERM)
    for writer in writers:
        writer.join(60)
    assert server.process.wait(60) == 0
    with keepstone.open(server.home) as home:
        agent = home.agent("coder")
        kept = {entry.id for number in range(4) for entry in agent.session(f"w{number}").entries()}
        assert {finding.level for finding in home.doctor()} == {"ok"}
    assert set(acknowledged) <= kept
    assert len(kept - set(acknowledged)) <= 4


def test_a_client_that_leaves_in_its_body_is_not_counted_as_500(own_server: Any) -> None:
    with connected(own_server) as sock:
        sock.sendall(head(own_server, 100) + b"{")
        assert in_flight(own_server, 2)
    assert in_flight(own_server, 1)
    with own_server.client() as client:
        counts = client.get("/v1/metrics").text
    assert 'status="499"' in counts
    assert 'status="500"' not in counts


def in_flight(server: Any, count: int) -> bool:
    """Wait until the server has this number of requests under way, the one that asks included."""
    until = time.monotonic() + 30
    with server.client() as client:
        while time.monotonic() < until:
            if f"keepstone_http_requests_in_flight {count}\n" in client.get("/v1/metrics").text:
                return True
    return False


def folder_in_place_of(file: Path) -> None:
    file.unlink()
    file.mkdir()


DAMAGES: dict[str, Callable[[Path], object]] = {
    "damaged": lambda file: file.write_text("{"),
    "deep": lambda file: file.write_text("[" * 100_000),
    "null": lambda file: file.write_text('{"version": 1, "tokens": [null]}'),
    "digest": lambda file: file.write_text(file.read_text().replace('"sha256": "', '"sha256": "é')),
    "mode": lambda file: file.chmod(0o660),
    "folder": folder_in_place_of,
}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose home the tests damage."""
    with serving(tmp_path_factory.mktemp("broken")) as server:
        yield server


@pytest.fixture
def tokens_file(broken: Server) -> Iterator[Path]:
    """The file of the tokens, which is put back afterwards; with it the server answers again."""
    file = broken.home / ".tokens.json"
    kept, mode = file.read_bytes(), file.stat().st_mode
    yield file
    if file.is_dir():
        file.rmdir()
    file.write_bytes(kept)
    file.chmod(mode)
    with broken.client() as client:
        assert client.get("/v1/agents").status_code == 200


@pytest.mark.parametrize("damage", DAMAGES)
def test_with_unusable_tokens_the_server_says_so_and_stays_up(
    broken: Server, tokens_file: Path, damage: str
) -> None:
    before = broken.log
    DAMAGES[damage](tokens_file)
    with broken.client() as client:
        answers = [client.get("/v1/agents") for _ in range(3)]
        page = client.get("/", headers={"Accept": "text/html"})
        sign_in = client.post("/sign-in", data={"token": broken.token}, headers={"Origin": broken.url})
        healthy = [client.get(path).status_code for path in ("/v1/health", "/v1/openapi.json", "/sign-in")]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (500, "store")
    for shown in (answers[0], page, sign_in):
        assert shown.status_code == 500
        assert "keepstone token list" in shown.text
    assert healthy == [200, 200, 200]
    [line] = broken.log.removeprefix(before).splitlines()
    assert ".tokens.json" in line


@pytest.mark.parametrize(("agent", "place"), [("a", ""), ("b", "/memory"), ("c", "/memory/sessions")])
def test_a_file_in_place_of_a_folder_is_a_problem_with_its_remedy(
    broken: Server, agent: str, place: str
) -> None:
    path, before = broken.home / f"agents/{agent}{place}", broken.log
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    with broken.client() as client:
        answers = [
            client.get(f"/v1/agents/{agent}/sessions"),
            client.get(f"/v1/agents/{agent}/sessions/s/entries"),
            client.post(f"/v1/agents/{agent}/sessions/s/entries", json={"type": "note", "text": "x"}),
            client.post(f"/v1/agents/{agent}/recall", json={"query": "x"}),
        ]
        assert client.get("/v1/health").status_code == 200
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (500, "store")
        assert answer.json()["detail"] == f"{path} is not a folder; move it away, then try again"
    # Each request leaves one line, and no traceback.
    names = [answer.headers["x-request-id"] for answer in answers]
    new = broken.log.removeprefix(before).splitlines()
    assert new == [f"WARNING: request {name}: store" for name in names]


def test_the_printed_command_makes_a_link_for_the_running_server(target: str, tmp_path: Path) -> None:
    with serving(tmp_path, target=target) as server:
        assert server.process.stdout is not None
        told = server.process.stdout.readline()
        assert "The link is valid once, for 15 minutes. For a new one: keepstone serve --link " in told
        words = shlex.split(told.partition(": ")[2])[1:]
        # The password of a database is not printed.
        words = [target if word.startswith("postgresql:") else word for word in words]
        made = subprocess.run(
            [*warm(), "-m", "keepstone", *words],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        with server.client("") as browser, server.client("") as second:
            assert browser.get(made.stdout.strip()).status_code == 200
            assert browser.get("/v1/agents").status_code == 200
            assert second.get(made.stdout.strip()).status_code == 401
