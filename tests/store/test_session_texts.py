"""The title and the preview in a summary of a session."""

from __future__ import annotations

from typing import Any

import pytest

from keepstone.model import Record
from keepstone.store.session_texts import SessionTexts, texts_of


def said(role: str, content: Any, **keys: Any) -> Record:
    return {
        "id": "a",
        "ts": "2026-01-11T14:31:00Z",
        "type": "message",
        "data": {"role": role, "content": content},
    } | keys


@pytest.mark.parametrize("role", ["user", "human"])
def test_the_title_is_the_first_message_of_a_user(role: str) -> None:
    first = [said("system", "Be brief"), said(role, "Which walnut?"), said("user", "And pecans?")]
    assert texts_of(first, "the newest") == SessionTexts("Which walnut?", "the newest")


def test_without_a_message_of_a_user_there_is_no_title() -> None:
    assert texts_of([said("assistant", "Hi")], "Hi") == SessionTexts(preview="Hi")


def test_a_title_of_blocks_is_their_text() -> None:
    blocks = [{"type": "text", "text": "Which"}, {"type": "text", "text": "walnut?"}]
    assert texts_of([said("user", blocks)], "").title == "user: Which walnut?"


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ({"by": "user", "via": "page"}, True),
        ({"by": "user", "via": "terminal"}, True),
        ({"by": "user", "via": "mcp"}, False),
        ({"by": "model", "via": "page"}, False),
        ("page", False),
        (None, False),
    ],
)
def test_a_chat_is_a_session_that_a_person_began_in_keepstone(origin: Any, expected: bool) -> None:  # noqa: FBT001
    assert texts_of([said("user", "Hi", origin=origin)], "").is_chat is expected


def test_a_text_of_several_lines_is_shown_on_one() -> None:
    assert texts_of([], "  one\n\n\ttwo ").preview == "one two"


def test_a_long_text_is_cut_between_words() -> None:
    title = texts_of([said("user", "walnut " * 40)], "").title
    assert len(title) <= 80
    assert title.rstrip(" …").endswith("walnut")


def test_a_long_text_without_spaces_is_cut_at_its_limit() -> None:
    title, preview, _ = texts_of([said("user", "東" * 300)], "東" * 300)
    assert 75 <= len(title) <= 80
    assert 155 <= len(preview) <= 160
