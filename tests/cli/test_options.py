"""What the shell completes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from keepstone.cli.app import app
from keepstone.cli.options import complete_agents, complete_files, complete_layouts, complete_sessions

if TYPE_CHECKING:
    from .conftest import Command


def context(cli: Command, **given: str) -> typer.Context:
    found = typer.Context(typer.main.get_command(app))
    found.params = {"home": str(cli.home), **given}
    return found


def test_session_ids_of_the_named_agent_are_completed(cli: Command) -> None:
    for session in ("plans", "plays", "other"):
        cli.json("add", "text", "--session", session, "--agent", "coder")
    assert sorted(complete_sessions(context(cli, agent="coder"), "pl")) == ["plans", "plays"]
    assert complete_sessions(context(cli), "pl") == []


def test_agent_slugs_are_completed(cli: Command) -> None:
    for agent in ("coder", "writer"):
        cli.json("add", "text", "--agent", agent)
    assert complete_agents(context(cli), "") == ["coder", "writer"]


def test_files_of_the_agent_are_completed(cli: Command) -> None:
    cli("files", "write", "notes/a.md", "text")
    assert complete_files(context(cli), "no") == ["notes/a.md"]


def test_layouts_are_completed() -> None:
    assert complete_layouts("b") == ["bmad"]


@pytest.mark.parametrize("given", [{"layout": "nonsense"}, {"agent": "../x"}])
def test_completion_never_fails(cli: Command, given: dict[str, str]) -> None:
    assert complete_sessions(context(cli, **given), "") == []


def test_ids_that_would_disturb_a_shell_are_not_offered(cli: Command) -> None:
    cli.json("add", "text", "--session", "line\nbreak")
    assert complete_sessions(context(cli), "") == []


def test_completing_makes_no_home(cli: Command) -> None:
    assert complete_agents(context(cli), "") == []
    assert not cli.home.exists()


@pytest.mark.parametrize("name", ["--dir", "--project"])
@pytest.mark.parametrize("command", ["chat", "serve", "recall", "context", "mcp"])
def test_the_projects_folder_has_the_same_names_everywhere(cli: Command, command: str, name: str) -> None:
    result = cli(command, *(["walnut"] if command == "recall" else []), name, "/nowhere/at/all")
    assert result.exit_code == 2
    assert "/nowhere/at/all" in result.stderr
    assert "No such option" not in result.stderr


@pytest.mark.parametrize("words", [[], ["serve"], ["notes", "add"], ["mcp", "install"]])
def test_help_shows_no_value_for_a_flag(cli: Command, words: list[str]) -> None:
    shown = cli(*words, "--help").stdout
    assert "--help" in shown
    assert "bool" not in shown


def test_the_chat_continues_the_session_with_the_newest_message(
    cli: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from keepstone.cli import chat

    cli("add", "old", "--session", "first")
    cli("add", "new", "--session", "second")
    monkeypatch.setattr(chat, "_check_terminal", lambda: None)
    shown = []
    monkeypatch.setattr(
        "keepstone.tui.app.ChatApp.run", lambda app: shown.append(app.conversation.session.id)
    )
    assert cli("chat", "--continue").exit_code == 0
    assert shown == ["second"]
    assert cli.error("chat", "--continue", "--session", "first") == (2, "invalid_argument")
