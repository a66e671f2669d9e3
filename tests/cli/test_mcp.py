"""``keepstone mcp``: what is refused before anything is read; ``tests/mcp`` has the rest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepstone.mcp.clients import CLIENTS

if TYPE_CHECKING:
    from .conftest import Command


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["install"], f"name a client, or use --all: {', '.join(client.name for client in CLIENTS)}"),
        (["install", "cursor", "--profile", "x"], "unknown profile 'x'; use keepstone or reference"),
        (["install", "windsurf", "--project"], "Windsurf has no file in a repository: leave out --project"),
    ],
)
def test_a_wrong_choice_is_refused_with_the_right_ones(cli: Command, words: list[str], said: str) -> None:
    result = cli("mcp", *words)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_uninstalling_what_was_not_installed_changes_nothing(cli: Command, user_folder: Path) -> None:
    result = cli("mcp", "uninstall", "cursor")
    assert (result.exit_code, result.stdout.startswith("Cursor: nothing to change in ")) == (0, True)
    assert [path for path in user_folder.rglob("*") if path.is_file()] == []


def test_all_clients_of_a_machine_without_any_are_none(cli: Command) -> None:
    result = cli("mcp", "install", "--all")
    assert (result.exit_code, result.stdout) == (0, "")


def test_status_of_a_machine_without_clients_finds_none(cli: Command) -> None:
    rows = cli.json("mcp", "status")["clients"]
    assert [row["client"] for row in rows] == [client.name for client in CLIENTS]
    assert {(row["state"], row["trouble"]) for row in rows} == {("not found", None)}
