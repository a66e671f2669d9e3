"""The app in a real terminal: tmux types, and reads the screen."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.tui.tmux import Tmux
from typer.testing import CliRunner

from recollect.cli.chat import app

PROGRAM = "from recollect.cli.chat import app; app()"


@pytest.fixture
def start(tmux: Tmux, tmp_path: Path) -> Callable[..., None]:
    """Start the chat in a project's folder, with a home of its own."""

    def started(**variables: str) -> None:
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "RECOLLECT_HOME": str(tmp_path / "home")}
        paths |= {"RECOLLECT_USER_MEMORY": str(tmp_path / "user.md")}
        command = shlex.join([sys.executable, "-c", PROGRAM])
        tmux.open(tmp_path, f"{command}; echo left; cat", paths | variables)
        tmux.until("Enter send")

    return started


def test_a_note_is_saved_and_quoted_in_a_real_terminal(
    tmux: Tmux, start: Callable[..., None], tmp_path: Path
) -> None:
    start(LANG="C.UTF-8")
    tmux.type("# My name is Alice")
    tmux.until("Remember this note")
    tmux("send-keys", "Down", "Enter")
    tmux.until("Saved as a User note")
    tmux.type("What is my name?")
    tmux.until("“My name is Alice”")
    tmux("send-keys", "C-q")
    tmux.until("left")
    assert (tmp_path / "user.md").read_text() == "- My name is Alice\n"


def test_the_editor_gets_the_terminal_and_gives_it_back(
    tmux: Tmux, start: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "user.md").write_text("- written before\n")
    start(LANG="C.UTF-8", VISUAL="sed -i s/before/after/")
    tmux.type("/memory")
    tmux.until("written before")
    tmux("send-keys", "C-o")
    tmux.until("written after")


def test_without_a_terminal_the_chat_says_what_to_use(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--home", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert "the chat needs a terminal" in str(result.exception)


def test_the_help_of_the_command_loads_no_screen_and_no_model() -> None:
    code = f"{PROGRAM.partition(';')[0]}; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"textual", "openai", "anthropic", "apsw", "recollect.chat"} & set(done.stdout.split())
