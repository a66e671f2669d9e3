"""Whether a client's configuration starts a server that answers."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from keepstone.cli.app import app
from keepstone.mcp.clients import command_of
from keepstone.mcp.status import is_written_by_install, trouble_of

from .processes import command


def run(*words: str, status: int = 0, cwd: Path | None = None) -> str:
    """Run the command in this process, in a folder, and return what it printed."""
    with contextlib.chdir(cwd or Path.cwd()):
        done = CliRunner().invoke(app, ["mcp", *words])
    assert done.exit_code == status, done.output
    return done.output


def test_status_starts_each_server_and_says_what_is_wrong(user_folder: Path) -> None:
    run("install", "cursor", "codex", "--home", str(user_folder / "home"))
    (user_folder / ".gemini").mkdir()
    (user_folder / ".gemini/settings.json").write_text('{"mcpServers": {"keepstone": {"command": "/none"}}}')
    (user_folder / ".codeium/windsurf").mkdir(parents=True)
    (user_folder / ".codeium/windsurf/mcp_config.json").write_text("{")
    states = {row["client"]: row for row in json.loads(run("status", "--json", status=1))["clients"]}
    assert {name: row["state"] for name, row in states.items()} == {
        "claude-code": "not found",
        "claude-desktop": "not found",
        "cursor": "installed",
        "vscode": "not found",
        "codex": "installed",
        "gemini": "installed",
        "zed": "not found",
        "windsurf": "unreadable",
    }
    assert (states["cursor"]["trouble"], states["codex"]["trouble"]) == (None, None)
    assert "/none is missing" in states["gemini"]["trouble"]


def state_of_project(folder: Path, *options: str, **entry: object) -> dict[str, str | None]:
    """Return what the status says of a project whose file has this entry."""
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"keepstone": entry}}))
    done = subprocess.run(
        [*command(), "mcp", "status", "--project", "--json", *options],
        cwd=folder,
        capture_output=True,
        check=False,
    )
    rows: list[dict[str, str | None]] = json.loads(done.stdout)["clients"]
    return next(row for row in rows if row["client"] == "claude-code")


def test_status_shows_a_command_of_a_project_and_starts_it_only_if_asked(tmp_path: Path) -> None:
    command = {"command": "sh", "args": ["-c", "touch ran"]}
    trouble = state_of_project(tmp_path, **command)["trouble"]
    assert trouble is not None
    assert "not started" in trouble
    assert "sh -c 'touch ran'" in trouble
    assert not (tmp_path / "ran").exists()
    state_of_project(tmp_path, "--start", **command)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("line", ["mcp", "mcp --agent auto", "mcp --agent a --read-only"])
def test_what_install_writes_is_started(line: str) -> None:
    for words in (command_of(line.split()), command_of(line.split(), shared=True)):
        assert is_written_by_install(words, shared=True)


@pytest.mark.parametrize(
    "line",
    [
        "sh mcp",
        "keepstone",
        "keepstone hook",
        "keepstone mcp install --all",
        "keepstone mcp --agent",
        "keepstone mcp --agent a install",
        "keepstone mcp --home gift",
        "/elsewhere/keepstone mcp",
    ],
)
def test_what_install_does_not_write_for_a_project_is_not_started(line: str) -> None:
    assert not is_written_by_install(line.split(), shared=True)


def test_the_users_own_file_may_name_a_home() -> None:
    assert is_written_by_install(command_of(["mcp", "--home", "/srv/memory"]), shared=False)


@pytest.mark.parametrize("entry", [{}, {"command": 7}, {"command": "keepstone", "args": "mcp"}])
def test_an_entry_without_a_command_is_to_be_installed_again(entry: dict[str, Any]) -> None:
    assert trouble_of(entry) == "the entry has no command: run keepstone mcp install again"


def test_a_program_that_is_missing_is_named() -> None:
    assert trouble_of({"command": "no-such-program"}) == (
        "no-such-program is missing or not executable: run keepstone mcp install again"
    )


def test_a_command_that_ends_without_an_answer_is_shown_with_its_last_words() -> None:
    entry = {"command": "sh", "args": ["-c", "echo first >&2; echo last >&2; exit 3"]}
    assert trouble_of(entry, start=True) == "the server did not answer: last"


def test_a_command_that_ends_in_silence_is_shown_with_its_status() -> None:
    entry = {"command": "sh", "args": ["-c", "exit 3"]}
    assert trouble_of(entry, start=True) == "the server did not answer: it ended with status 3"


def test_a_command_that_answers_has_no_trouble() -> None:
    entry = {"command": "sh", "args": ["-c", 'echo \'{"result": {"serverInfo": {}}}\'']}
    assert trouble_of(entry, start=True) is None


def test_a_server_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.mcp.status._SECONDS", 0.05)
    entry = {"command": "sleep", "args": ["60"]}
    assert trouble_of(entry, start=True) == "the server did not answer and end within 0.05 s"
