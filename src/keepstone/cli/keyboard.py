"""Reading single keys, without Enter, from the terminal."""

from __future__ import annotations

import os
import re
import sys
import termios
import tty

_MOST = 32
"""Maximum bytes of one read."""
_KEY = re.compile(r"\x1b(?:[\[O][\d;]*[A-Za-z~])?|.", re.DOTALL)
"""A character, Escape alone, or the escape sequence of an arrow or function key."""


def read_keys() -> list[str]:
    """Wait until a key is pressed, and return the keys typed: at least one, ``""`` for the end of input.

    Ctrl-C interrupts. ``typer.getchar`` would discard keys that were typed before the call, such as those
    that a program sends as soon as it sees the prompt.
    """
    keyboard = sys.stdin.fileno()
    lines = termios.tcgetattr(keyboard)
    try:
        # The default, TCSAFLUSH, would discard keys typed before the call. In cbreak mode, unlike raw mode,
        # Ctrl-C still interrupts.
        tty.setcbreak(keyboard, termios.TCSADRAIN)
        typed = os.read(keyboard, _MOST).decode("utf-8", "replace")
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, lines)
    # One read may bring several keys, and an arrow key is several bytes.
    return _KEY.findall(typed) or [""]
