"""Single keys from a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from keepstone.cli.keyboard import read_keys


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Return where to write what a person types; the other end is standard input."""
    keyboard, terminal = os.openpty()
    with open(terminal, encoding="utf-8") as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        yield keyboard
    os.close(keyboard)


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("p", ["p"]),
        ("ü", ["ü"]),
        ("no\n", ["n", "o", "\n"]),
        ("\x1b", ["\x1b"]),
        ("\x1b[Ap", ["\x1b[A", "p"]),
        ("\x1bOP\x1b[3~\x1b", ["\x1bOP", "\x1b[3~", "\x1b"]),
    ],
)
def test_a_key_that_types_no_character_comes_whole(keyboard: int, typed: str, keys: list[str]) -> None:
    os.write(keyboard, typed.encode())
    assert read_keys() == keys


def test_the_terminal_reads_whole_lines_again_afterwards(keyboard: int) -> None:
    os.write(keyboard, b"p")
    read_keys()
    os.write(keyboard, b"a line\n")
    assert sys.stdin.readline() == "a line\n"
