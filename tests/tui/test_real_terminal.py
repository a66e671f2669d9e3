"""The app in a real terminal: tmux types, and reads the screen."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.cli.chat import app

PROGRAM = "from recollect.cli.chat import app; app()"


class Tmux:
    """A terminal of 60 columns and 24 lines on a server of its own."""

    def __init__(self, socket: Path) -> None:
        self._words = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*self._words, *words], capture_output=True, text=True, check=True, timeout=30)
        return done.stdout

    def start(self, folder: Path, *words: str, **variables: str) -> None:
        given = [f"{name}={value}" for name, value in variables.items()]
        command = shlex.join(["env", *given, sys.executable, "-c", PROGRAM, *words])
        self("new-session", "-d", "-x", "60", "-y", "24", "-c", str(folder), f"{command}; echo left; cat")

    def until(self, words: str) -> str:
        """Wait until words stand on the screen, and return the screen."""
        for _ in range(600):
            screen = self("capture-pane", "-p")
            if words in " ".join(screen.split()):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{words!r} never came:\n{screen}")

    def type(self, text: str) -> None:
        self("send-keys", "-l", text)
        self.until(text[-20:])
        self("send-keys", "Enter")


@pytest.fixture
def tmux(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tmux]:
    if not shutil.which("tmux"):
        pytest.skip("tmux is not installed")
    terminal = Tmux(tmp_path_factory.mktemp("t") / "s")
    yield terminal
    terminal("kill-server")


@pytest.fixture
def start(tmux: Tmux, tmp_path: Path) -> Callable[..., None]:
    """Start the chat in a project's folder, with a home of its own."""

    def started(**variables: str) -> None:
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "RECOLLECT_HOME": str(tmp_path / "home")}
        tmux.start(tmp_path, **paths, RECOLLECT_USER_MEMORY=str(tmp_path / "user.md"), **variables)
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
