"""The picture in the documentation."""

from __future__ import annotations

from tests.tui.terminal import words_on

from recollect.tui.picture import picture


def test_the_picture_shows_a_quoted_answer_and_a_note() -> None:
    words = words_on(picture())
    assert "> Which database did we choose, and why?" in words
    assert "row locks" in words
    assert "2026-03-02, decision, session planning" in words
    assert "# Use pnpm instead of npm" in words


def test_the_picture_says_the_same_each_time() -> None:
    assert words_on(picture()) == words_on(picture())
