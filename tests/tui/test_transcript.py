"""Answers grow on the screen as they come."""

from __future__ import annotations

import asyncio
import unicodedata
from pathlib import Path

import pytest
from tests.tui.terminal import words_on
from textual.app import App

from keepstone.tui import app as chat
from keepstone.tui.transcript import MarkdownText, PlainText, answer_of

STYLE = Path(chat.__file__).with_name("app.tcss")
MARKDOWN = """\
# Plan

Use **PostgreSQL**, and *not* `SQLite`,
because of its locks:

1. rows
   - of one table
   - of two
2. pages

> It was said
> in March.

Title
=====

```python
def f() -> int:
    return 1

```

| name | age |
|------|-----|
| Ada  | 36  |
| Bo   | 7   |

---
The end, ~~nearly~~.
"""


def shown(pieces: list[str], last: str = "") -> str:
    """Return the words on a screen after an answer has come in pieces, once the last of them are there."""

    async def whole() -> str:
        app = App[None](css_path=STYLE)
        async with app.run_test(size=(80, 60)) as pilot:
            answer = MarkdownText()
            await app.mount(answer)
            for piece in pieces:
                await answer.grow(piece)
            await answer.end()
            before = None
            async with asyncio.timeout(20):
                while (text := words_on(app.export_screenshot(simplify=True))) != before or last not in text:
                    before = text
                    await pilot.pause(0.01)
            return text

    return asyncio.run(whole())


@pytest.mark.parametrize("length", [1, 4, 9])
def test_an_answer_in_small_pieces_looks_like_the_whole(length: int) -> None:
    pieces = [MARKDOWN[at : at + length] for at in range(0, len(MARKDOWN), length)]
    assert shown(pieces, "The end") == shown([MARKDOWN], "The end")


def test_only_what_a_model_says_is_markdown() -> None:
    assert isinstance(answer_of("openai:m"), MarkdownText)
    assert isinstance(answer_of("offline"), PlainText)
    assert isinstance(answer_of(None), PlainText)


def test_a_long_line_of_code_wraps() -> None:
    line = " ".join(f"word{number}" for number in range(40))
    words = shown([f"```\n{line}\n```\n"], "word39")
    assert all(f"word{number}" in words for number in range(40))


@pytest.mark.parametrize("text", ["&#27;[31m", "&#x202e;abc", "&#0155;", "\x1b[31m", "&Tab;", "a\\&#7;b"])
def test_no_spelling_of_a_control_character_reaches_the_terminal(text: str) -> None:
    for where in ("{}", "`{}`", "# {}", "- {}", "|a|\n|-|\n|{}|", "```\n{}\n```", "```{}\nx\n```"):
        assert not {"Cc", "Cf"} & {unicodedata.category(letter) for letter in shown([where.format(text)])}
