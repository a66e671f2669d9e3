"""``agents list`` and ``agents purge``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .conftest import Command


def test_agents_are_listed_by_slug(cli: Command) -> None:
    for agent in ("writer", "coder"):
        cli.json("add", "text", "--agent", agent)
    assert cli.json("agents", "list") == {"agents": ["coder", "writer"]}
    assert cli("agents", "list").stdout == "coder\nwriter\n"


def test_a_home_without_agents_says_so(cli: Command) -> None:
    assert cli("agents", "list").stdout == "no agents yet\n"


def test_a_purged_agent_leaves_the_others_alone(cli: Command) -> None:
    for agent in ("writer", "coder"):
        cli.json("add", f"secret of the {agent}", "--agent", agent)
    assert cli.json("agents", "purge", "coder", "--yes") == {"agent": "coder", "purged": True}
    assert cli.json("agents", "list") == {"agents": ["writer"]}
    files = [path for path in cli.home.rglob("*") if path.is_file()]
    assert [path for path in files if b"secret of the coder" in path.read_bytes()] == []


def test_purging_an_agent_needs_yes_without_a_terminal(cli: Command) -> None:
    cli.json("add", "text", "--agent", "coder")
    assert cli.error("agents", "purge", "coder") == (2, "invalid_argument")
    assert cli.json("agents", "list") == {"agents": ["coder"]}


def test_an_unknown_agent_cannot_be_purged(cli: Command) -> None:
    assert cli.error("agents", "purge", "nobody", "--yes") == (1, "agent_not_found")


def test_a_slug_that_is_none_is_bad_input(cli: Command) -> None:
    assert cli.error("add", "text", "--agent", "../other") == (2, "invalid_agent_id")
    assert not cli.home.exists() or list(cli.home.rglob("*.ndjson")) == []


def test_a_user_has_the_same_slug_every_time_and_needs_no_home(cli: Command) -> None:
    answer = {"text": "ada@example.com", "slug": "u.ada_40example.com"}
    assert [cli.json("agents", "slug", "ada@example.com") for _ in range(2)] == [answer] * 2
    assert cli("agents", "slug", "coder").stdout == "coder\n"
    assert cli.error("agents", "slug", "") == (2, "invalid_argument")
    assert not cli.home.exists()
