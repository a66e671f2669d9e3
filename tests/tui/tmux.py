"""A real terminal: tmux types, and reads the screen."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path


class Tmux:
    """A terminal on a server of its own."""

    def __init__(self, socket: Path) -> None:
        self._words = ["tmux", "-S", str(socket), "-f", "/dev/null"]

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*self._words, *words], capture_output=True, text=True, check=True, timeout=30)
        return done.stdout

    def open(
        self, folder: Path, command: str, variables: dict[str, str], size: tuple[int, int] = (60, 24)
    ) -> None:
        """Run a command in a folder. The server outlives it: one that is about to end takes no other."""
        given = shlex.join(["env", *(f"{name}={value}" for name, value in variables.items())])
        columns, lines = map(str, size)
        self(
            "set",
            "-g",
            "exit-empty",
            "off",
            ";",
            "new-session",
            "-d",
            "-x",
            columns,
            "-y",
            lines,
            "-c",
            str(folder),
            f"{given} {command}",
        )

    def until(self, words: str) -> str:
        """Wait until words are on the screen, and return the screen."""
        for _ in range(600):
            screen = self("capture-pane", "-p")
            if words in " ".join(screen.split()):
                return screen
            time.sleep(0.05)
        raise AssertionError(f"{words!r} never came:\n{screen}")

    def type(self, text: str) -> None:
        """Type a line and press Enter."""
        self("send-keys", "-l", text)
        self.until(text[-20:])
        self("send-keys", "Enter")
