"""The picture in the documentation."""

from __future__ import annotations

from pathlib import Path

from tests.tui.terminal import words_on

from keepstone.tui.picture import picture


def test_the_picture_shows_a_quoted_answer_and_a_note() -> None:
    words = words_on(picture())
    assert "> Which database did we choose, and why?" in words
    assert "row locks" in words
    assert "2026-03-02, decision, session planning" in words
    assert "# Use pnpm instead of npm" in words


def test_the_picture_of_the_readme_shows_the_chat_as_it_is() -> None:
    kept = Path(__file__).parents[2] / "docs" / "chat.svg"
    assert words_on(kept.read_text("utf-8")) == words_on(picture()), "take it again: make snapshots"


def test_the_picture_says_the_same_each_time() -> None:
    assert words_on(picture()) == words_on(picture())
