"""Where ``keepstone serve`` listens, for whom, and what it says."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Command

fastapi = pytest.importorskip("fastapi")

from starlette.testclient import TestClient  # noqa: E402

from keepstone.server import Tokens, running  # noqa: E402

ANYONE = "0.0.0.0"  # noqa: S104
WITHOUT = """
import sys
sys.modules["fastapi"] = None
from keepstone.cli import main
sys.argv = ["keepstone", "serve", "--home", sys.argv[1]]
main()
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let the command listen and leave at once, without pages; what it would serve is kept."""
    apps: list[Any] = []

    def run(app: Any, listening: Any, *, proxied: bool) -> None:
        listening.close()
        apps.append((app, proxied))

    monkeypatch.setattr(running, "run", run)
    monkeypatch.setattr("keepstone.cli.serve.find_spec", lambda _: None)
    return apps


def test_on_the_loopback_a_link_signs_the_browser_in(cli: Command, served: list[Any]) -> None:
    told = cli("serve", "--port", "0")
    assert (told.exit_code, len(served)) == (0, 1)
    assert f"keepstone serves {cli.home} at http://127.0.0.1:" in told.stdout
    assert "/sign-in?once=" in told.stdout


def test_where_others_can_listen_no_link_signs_in(cli: Command, served: list[Any]) -> None:
    Tokens(cli.home).create()
    told = cli("serve", "--host", ANYONE, "--port", "0")
    assert (told.exit_code, len(served)) == (0, 1)
    assert "Open the page: http://0.0.0.0:" in told.stdout
    assert "once=" not in told.stdout


def test_without_a_token_others_are_not_served(cli: Command, served: list[Any]) -> None:
    told = cli("serve", "--host", ANYONE, "--port", "0")
    assert (told.exit_code, served) == (2, [])
    assert "0.0.0.0 is not loopback and there is no token: run keepstone token create" in told.stderr


def test_the_remedy_of_a_missing_token_names_the_home(
    cli: Command, served: list[Any], tmp_path: Path
) -> None:
    home = tmp_path / "another home"
    told = cli("serve", "--home", str(home), "--host", ANYONE, "--port", "0")
    remedy = told.stderr.partition("run keepstone ")[2].partition("\n")[0]
    assert shlex.split(remedy)[:4] == ["token", "create", "--home", str(home)]
    assert served == []


def test_a_revoked_token_does_not_allow_listening_elsewhere(cli: Command, served: list[Any]) -> None:
    tokens = Tokens(cli.home)
    _, made = tokens.create()
    tokens.revoke(made.id)
    assert cli("serve", "--host", ANYONE, "--port", "0").exit_code == 2
    assert served == []


def test_an_address_of_another_machine_is_named(cli: Command, served: list[Any]) -> None:
    Tokens(cli.home).create()
    told = cli("serve", "--host", "203.0.113.9", "--port", "0")
    assert (told.exit_code, served) == (3, [])
    assert "203.0.113.9 port 0: " in told.stderr


@pytest.mark.parametrize(
    ("words", "name", "status"),
    [
        ((), "localhost", 401),
        ((), "memory.example", 421),
        (("--allow-host", "memory.example"), "memory.example", 401),
        (("--allow-host", "a.example", "--allow-host", "b.example"), "b.example", 401),
        (("--host", ANYONE), "192.0.2.7", 401),
        ((), "192.0.2.7", 421),
    ],
)
def test_it_is_reached_under_the_names_that_were_allowed(
    cli: Command, served: list[Any], words: tuple[str, ...], name: str, status: int
) -> None:
    Tokens(cli.home).create()
    cli("serve", "--port", "0", *words)
    with TestClient(served[0][0], base_url=f"http://{name}") as http:
        assert http.get("/v1/agents").status_code == status


@pytest.mark.parametrize(("words", "proxied"), [((), False), (("--proxied",), True)])
def test_a_proxy_is_believed_only_when_told(
    cli: Command, served: list[Any], words: tuple[str, ...], *, proxied: bool
) -> None:
    cli("serve", "--port", "0", *words)
    assert served[0][1] is proxied


@pytest.mark.parametrize("port", ["-1", "65536", "http"])
def test_a_port_that_is_none_is_bad_input(cli: Command, served: list[Any], port: str) -> None:
    assert (cli("serve", "--port", port).exit_code, served) == (2, [])


def test_a_server_that_is_not_installed_is_named_with_the_extra(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WITHOUT, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "fastapi is missing: pip install 'keepstone[server]'" in done.stderr
