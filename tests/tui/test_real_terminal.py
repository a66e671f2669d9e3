"""The app in a real terminal: tmux types, and reads the screen."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.chat.model_server import running
from tests.tui.tmux import Tmux
from typer.testing import CliRunner

from keepstone.cli.chat import app

PROGRAM = "from keepstone.cli.chat import app; app()"


@pytest.fixture
def start(tmux: Tmux, tmp_path: Path) -> Callable[..., None]:
    """Start the chat in a project's folder, with a home of its own."""

    def started(**variables: str) -> None:
        paths = {"PYTHONPATH": os.pathsep.join(sys.path), "KEEPSTONE_HOME": str(tmp_path / "home")}
        paths |= {"KEEPSTONE_USER_MEMORY": str(tmp_path / "user.md")}
        command = shlex.join([sys.executable, "-c", PROGRAM])
        tmux.open(tmp_path, f"{command}; echo left; cat", paths | variables)
        tmux.until("Enter send")

    return started


def test_a_note_is_saved_and_quoted_in_a_real_terminal(
    tmux: Tmux, start: Callable[..., None], tmp_path: Path
) -> None:
    start(LANG="C.UTF-8")
    tmux.type("# My name is Alice")
    tmux.until("Save this note")
    tmux("send-keys", "Down", "Enter")
    tmux.until("Saved as a User note")
    tmux.type("What is my name?")
    tmux.until("“My name is Alice”")
    tmux("send-keys", "C-q")
    tmux.until("left")
    assert (tmp_path / "user.md").read_text() == "- My name is Alice\n"


def test_the_printed_line_continues_the_session_wherever_it_is_pasted(tmux: Tmux, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    tmux.open(tmp_path, "sh", {"PATH": path, "LANG": "C.UTF-8", "KEEPSTONE_EMBEDDER": "none"}, size=(220, 24))
    tmux.type("keepstone chat --home 'my home' --agent ada --user-file 'my notes.md' --no-tools")
    tmux.until("Enter send")
    tmux.type("Walnuts are in the cellar.")
    tmux.until("Your message is stored.")
    tmux("send-keys", "C-c")
    tmux.until("Press Ctrl+C again to leave")
    tmux("send-keys", "C-c")
    tmux.until("Continue with: ")
    joined = tmux("capture-pane", "-p", "-J")
    line = joined.partition("Continue with: ")[2].splitlines()[0].strip()
    tmux.type(f"clear; cd elsewhere && {line}")
    screen = tmux.until("> Walnuts are in the cellar.")
    assert "keepstone · ada" in screen
    assert not (tmp_path / "elsewhere/my home").exists()
    options = shlex.split(line)
    assert options[options.index("--dir") + 1] == str(tmp_path)
    assert options[options.index("--user-file") + 1] == str(tmp_path / "my notes.md")
    assert "--no-tools" in options


def test_the_editor_gets_the_terminal_and_gives_it_back(
    tmux: Tmux, start: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "user.md").write_text("- written before\n")
    start(LANG="C.UTF-8", VISUAL="sed -i s/before/after/")
    tmux.type("/memory")
    tmux.until("written before")
    tmux("send-keys", "C-o")
    tmux.until("written after")


def test_a_chat_that_is_killed_in_mid_answer_has_lost_nothing_it_acknowledged(
    tmux: Tmux, start: Callable[..., None]
) -> None:
    pytest.importorskip("openai")
    with running() as server:
        start(LANG="C.UTF-8", KEEPSTONE_CHAT_MODEL=f"{server.url}/v1?model=m")
        tmux.type("The first question")
        tmux.until("> The first question Hello.")
        server.held.clear()
        tmux.type("# Use pnpm")
        tmux.until("Save this note")
        tmux("send-keys", "Enter")
        tmux.until("Saved as a Project note")
        tmux.type("The second question")
        tmux.until("> The second question Hello.")
        os.killpg(int(tmux("list-panes", "-F", "#{pane_pid}")), signal.SIGKILL)
        server.held.set()
        start(LANG="C.UTF-8", KEEPSTONE_CHAT_MODEL=f"{server.url}/v1?model=m")
        tmux.type("/sessions")
        tmux.until("user: The second question")
        tmux("send-keys", "Down", "Enter")
        tmux.until("> The first question Hello. > The second question")
        tmux.type("/retry")
        tmux.until("> The second question")
        tmux.until("Hello. ╭")
    assert "Use pnpm" in server.prompts[-1]


def test_two_chats_in_two_terminals_know_of_one_another(
    tmux: Tmux, start: Callable[..., None], tmp_path: Path
) -> None:
    start(LANG="C.UTF-8")
    other = Tmux(tmp_path / "other")
    paths = {"PYTHONPATH": os.pathsep.join(sys.path), "KEEPSTONE_HOME": str(tmp_path / "home")}
    paths |= {"KEEPSTONE_USER_MEMORY": str(tmp_path / "user.md"), "LANG": "C.UTF-8"}
    other.open(tmp_path, shlex.join([sys.executable, "-c", PROGRAM]), paths)
    try:
        other.until("Enter send")
        tmux.type("The walnut door is blue.")
        tmux.until("Your message is stored.")
        tmux.type("# Oil it twice")
        tmux.until("Save this note")
        tmux("send-keys", "Enter")
        tmux.until("Saved as a Project note")
        other.type("Which colour has the walnut door?")
        other.until("“user: The walnut door is blue.”")
        other.type("/memory")
        other.until("Oil it twice")
    finally:
        other("kill-server")


def test_without_a_terminal_the_chat_says_what_to_use(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--home", str(tmp_path)])
    assert isinstance(result.exception, ValueError)
    assert "the chat needs a terminal" in str(result.exception)


def test_the_help_of_the_command_loads_no_screen_and_no_model() -> None:
    code = f"{PROGRAM.partition(';')[0]}; import sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"textual", "openai", "anthropic", "apsw", "keepstone.chat"} & set(done.stdout.split())
