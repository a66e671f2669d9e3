"""The tutorial of the chat, step by step as it is written, in a real terminal."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from tests.chat.model_server import running
from tests.tui.tmux import Tmux

PAGE = Path(__file__).parents[2] / "docs" / "chat.md"
_BLOCK = re.compile(r'^```(sh|text title="(?:You see|Type|Press)")\n(.*?)^```$', re.MULTILINE | re.DOTALL)
_KEYS = {"Ctrl+Q": "C-q"}
"""Keys that tmux calls otherwise."""


def test_the_steps_of_the_tutorial_do_what_it_says(tmux: Tmux, tmp_path: Path, user_folder: Path) -> None:
    pytest.importorskip("openai")
    with running() as server:
        # Nothing but the address is another: nobody can know what listens at that port.
        page = PAGE.read_text("utf-8").replace("localhost:11434", server.url.removeprefix("http://"))
        opened(tmux, tmp_path, user_folder)
        for kind, text in _BLOCK.findall(page):
            take(tmux, kind, text.splitlines())
            if text.startswith("Hi"):
                tmux.until("Hello.")  # The page cannot know what a model answers.
        tmux.until("Continue with")
        assert all(note in server.prompts[0] for note in ("Use pnpm instead of npm", "My name is Ada"))


def opened(tmux: Tmux, folder: Path, user: Path) -> None:
    """Open a shell in which the command is installed."""
    command = user / "bin" / "keepstone"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m keepstone "$@"\n')
    command.chmod(0o755)
    variables = {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": os.pathsep.join(sys.path)}
    variables |= {"HOME": str(user), "PS1": "$ ", "LANG": "C.UTF-8"}
    tmux.open(folder, "sh", variables, (80, 24))
    tmux.until("$")


def take(tmux: Tmux, kind: str, lines: list[str]) -> None:
    """Take one step."""
    if kind.endswith('see"'):
        for line in lines:
            tmux.until(line)
    elif kind.endswith('Press"'):
        for key in " ".join(lines).split():
            tmux("send-keys", _KEYS.get(key, key))
            # An Escape and what follows at once are one key to a terminal.
            tmux.until("") if key != "Escape" else tmux("run-shell", "sleep 0.3")
    else:
        for line in lines:
            tmux.type(line)
