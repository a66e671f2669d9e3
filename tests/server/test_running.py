"""The socket of a server, and its stop; clients that are slow or late are with the real server."""

import errno
import logging
import os
import signal
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from keepstone.server.running import listen, run


def test_port_0_takes_a_free_port_that_can_be_connected_to_at_once() -> None:
    with listen("127.0.0.1", 0) as listening:
        socket.create_connection(listening.getsockname(), timeout=30).close()


def test_small_answers_are_sent_at_once_as_the_socket_names_its_protocol() -> None:
    with listen("127.0.0.1", 0) as listening:
        assert (listening.family, listening.proto) == (socket.AF_INET, socket.IPPROTO_TCP)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_an_address_with_colons_is_listened_on_as_ipv6() -> None:
    with listen("::1", 0) as listening:
        assert listening.getsockname()[0] == "::1"


def test_a_port_that_another_program_has_is_named_with_the_remedy() -> None:
    with listen("127.0.0.1", 0) as other:
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"127.0.0.1 port {port}: .*; choose another port, or 0") as refused:
            listen("127.0.0.1", port)
    assert refused.value.errno == errno.EADDRINUSE


def test_an_address_that_is_not_of_this_machine_is_named_without_that_remedy() -> None:
    with pytest.raises(OSError, match=r"^\[Errno \d+\] 192.0.2.1 port 0: ") as refused:
        listen("192.0.2.1", 0)
    assert "choose another port" not in str(refused.value)


def test_a_port_that_was_just_left_can_be_taken_again() -> None:
    with listen("127.0.0.1", 0) as first:
        address = first.getsockname()
        with socket.create_connection(address, timeout=30), first.accept()[0]:
            pass
    listen(*address).close()


@pytest.fixture(params=[signal.SIGTERM, signal.SIGINT])
def told(request: pytest.FixtureRequest) -> Iterator[tuple[signal.Signals, list[Any]]]:
    """A signal, and how often it came to who handled it before."""
    came: list[Any] = []
    before = signal.signal(request.param, lambda *_: came.append(request.param))
    yield request.param, came
    signal.signal(request.param, before)


def test_a_stop_ends_the_server_quietly_and_gives_its_signals_and_its_socket_back(
    told: tuple[signal.Signals, list[Any]],
) -> None:
    kind, came = told

    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        os.kill(os.getpid(), kind)
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    listening = listen("127.0.0.1", 0)
    run(app, listening)
    assert (came, listening.fileno()) == ([], -1)
    os.kill(os.getpid(), kind)
    assert came == [kind]


def test_a_logged_text_cannot_control_the_terminal_or_forge_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def app(_: Any, receive: Any, send: Any) -> None:
        await receive()
        logging.getLogger("x").error("%s", "\x1b]0;title\x07\nERROR: forged")
        logging.getLogger("x").error("failed", exc_info=ValueError("\x1b[2J"))
        await send({"type": "lifespan.startup.complete"})
        os.kill(os.getpid(), signal.SIGTERM)
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    run(app, listen("127.0.0.1", 0))
    told = capsys.readouterr().err
    assert "\x1b" not in told
    assert [line for line in told.splitlines() if line.startswith("ERROR: ")] == [
        r"ERROR: \x1b]0;title\x07\nERROR: forged",
        "ERROR: failed",
    ]
    assert r"ValueError: \x1b[2J" in told
