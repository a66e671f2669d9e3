"""A backup over HTTP leaves nothing on the server's disk, whatever the client does."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import pytest
from tests.server.conftest import Server, serving
from tests.warm import warm

import keepstone
from keepstone.server.packing import pack, sweep


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a home that no socket's buffer can hold, and a temporary folder of its own beside it."""
    folder = tmp_path_factory.mktemp("packing")
    (folder / "temporary").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "temporary"))
        with serving(folder) as started:
            with started.client() as http:
                text = os.urandom(3_000_000).hex()
                http.put("/v1/agents/a/files/big.txt", json={"content": text}).raise_for_status()
            yield started


def left_by(server: Server) -> list[Path]:
    return list((server.home.parent / "temporary").iterdir())


@pytest.mark.parametrize(
    "wanted", ["bytes=abc", "bytes=99999999999-", "items=0-1", "bytes=5-1", "bytes=0-10"]
)
def test_a_range_is_ignored_and_nothing_is_left(server: Server, wanted: str) -> None:
    with server.client() as http:
        answer = http.get("/v1/backup", headers={"Range": wanted})
    assert (answer.status_code, "content-range" in answer.headers) == (200, False)
    assert len(answer.content) == int(answer.headers["content-length"])
    assert left_by(server) == []


def test_a_client_that_leaves_in_the_middle_leaves_nothing(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as sock:
        head = f"GET /v1/backup HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        sock.sendall(head.encode())
        assert sock.recv(4096).startswith(b"HTTP/1.1 200")
        assert left_by(server) == []


def test_a_packed_home_has_no_name_on_the_disk(tmp_path: Path, temporary: Path) -> None:
    with keepstone.open(tmp_path / "home") as home:
        home.agent("a").session("s").add("note", text="walnut")
        with pack(home) as packed:
            assert list(temporary.iterdir()) == []
            assert "agents/a/memory/sessions/s.ndjson" in ZipFile(packed).namelist()


def test_a_start_sweeps_what_a_killed_server_left_and_spares_what_is_in_use(temporary: Path) -> None:
    left, used = temporary / "keepstone-transfer-left", temporary / "keepstone-transfer-used"
    (left / "home").mkdir(parents=True)
    (left / "home" / "s.ndjson").write_text("walnut")
    used.mkdir()
    program = (
        "import fcntl, os, sys; fcntl.flock(os.open(sys.argv[1], 0), fcntl.LOCK_EX); print(flush=1); input()"
    )
    holder = [*warm(), "-c", program, str(used)]
    with subprocess.Popen(holder, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        sweep()
        assert list(temporary.iterdir()) == [used]
        process.communicate(b"\n")
    sweep()
    assert list(temporary.iterdir()) == []
