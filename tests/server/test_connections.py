"""Bounds of connections, with real sockets: headers, and clients without a token."""

import socket
from contextlib import ExitStack
from typing import Any

import pytest

BEGIN = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
LINE = b"X-Many: " + b"a" * 1_000 + b"\r\n"
CHUNKED = b"POST /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def connected(server: Any) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=30)


def answer_to(server: Any, data: bytes) -> bytes:
    with connected(server) as sock:
        sock.sendall(data)
        return sock.recv(4096)


@pytest.mark.parametrize(
    "more",
    [b"X: " + b"a" * 70_000, LINE * 70, b"X: " + b"a" * 70_000 + b"\r\n\r\n", LINE * 70 + b"\r\n"],
    ids=["one unfinished", "many unfinished", "one", "many"],
)
def test_headers_above_64_kb_are_refused(server: Any, more: bytes) -> None:
    assert answer_to(server, BEGIN + more).startswith(b"HTTP/1.1 431 ")


def test_a_long_request_line_is_refused(server: Any) -> None:
    assert answer_to(server, b"GET /" + b"a" * 70_000).startswith(b"HTTP/1.1 431 ")


def test_headers_below_64_kb_are_answered(server: Any) -> None:
    assert answer_to(server, BEGIN + LINE * 60 + b"\r\n").startswith(b"HTTP/1.1 200 ")


def test_the_bound_of_headers_does_not_count_bodies(server: Any) -> None:
    with server.client() as client:
        for _ in range(2):
            assert client.put("/v1/agents/a/files/x", json={"content": "x" * 300_000}).status_code == 200


def sent_without_end(sock: socket.socket, piece: bytes, most: int) -> int:
    """Send a piece again and again until the connection ends; return how many bytes went out."""
    sent = 0
    try:
        while sent < most:
            sock.sendall(piece)
            sent += len(piece)
    except OSError:
        pass
    return sent


@pytest.mark.parametrize(
    "begin",
    [BEGIN, BEGIN + b"X: ", CHUNKED + b"0\r\n", CHUNKED + b"0\r\nX: ", CHUNKED + b"1;"],
    ids=["headers", "one header", "trailers", "one trailer", "chunk extension"],
)
def test_what_has_no_end_closes_the_connection(server: Any, begin: bytes) -> None:
    piece = b"a" * 60_000 if begin.endswith((b": ", b";")) else LINE * 60
    with connected(server) as sock:
        sock.sendall(begin)
        assert sent_without_end(sock, piece, 100_000_000) < 20_000_000


def test_idle_connections_without_a_token_refuse_no_others(crowded: Any) -> None:
    with ExitStack() as stack:
        idle = [stack.enter_context(connected(crowded)) for _ in range(30)]
        with crowded.client() as client:
            assert client.get("/v1/agents").status_code == 200
        assert idle[0].recv(1) == b""


def test_many_idle_connections_do_not_close_one_with_a_token(crowded: Any) -> None:
    with crowded.client() as client, ExitStack() as stack:
        assert client.get("/v1/agents").status_code == 200
        used = client.get("/v1/agents").extensions["network_stream"].get_extra_info("client_addr")
        for _ in range(30):
            stack.enter_context(connected(crowded))
        answer = client.get("/v1/agents")
        assert answer.status_code == 200
        assert answer.extensions["network_stream"].get_extra_info("client_addr") == used


def test_a_request_with_a_token_under_way_outlives_many_idle_connections(crowded: Any) -> None:
    body = b'{"type": "note", "text": "x"}'
    lines = [b"POST /v1/agents/a/sessions/s/entries HTTP/1.1", b"Host: 127.0.0.1"]
    lines += [b"Content-Type: application/json", f"Authorization: Bearer {crowded.token}".encode()]
    lines += [b"Content-Length: %d" % len(body), b"Expect: 100-continue"]
    with connected(crowded) as sock, ExitStack() as stack:
        sock.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
        assert sock.recv(4096).startswith(b"HTTP/1.1 100 ")
        sock.sendall(body[:5])
        idle = [stack.enter_context(connected(crowded)) for _ in range(30)]
        assert idle[0].recv(1) == b""
        sock.sendall(body[5:])
        assert sock.recv(4096).startswith(b"HTTP/1.1 201 ")


def test_two_host_headers_are_refused(server: Any) -> None:
    answer = answer_to(server, BEGIN + b"Host: evil.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer


def test_an_absolute_target_of_another_host_is_refused(server: Any) -> None:
    line = b"GET http://evil.example/v1/health HTTP/1.1\r\n"
    answer = answer_to(server, line + b"Host: 127.0.0.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 421 ")


def test_an_absolute_target_of_this_server_is_answered(server: Any) -> None:
    target = f"http://127.0.0.1:{server.port}/v1/health".encode()
    answer = answer_to(server, b"GET " + target + b" HTTP/1.1\r\nHost: other.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 200 ")
