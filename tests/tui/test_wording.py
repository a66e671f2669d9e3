"""What the app says is harmless, whatever memory holds."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from keepstone.chat.messages import Prompt
from keepstone.model import Hits
from keepstone.notes.notes import MemoryEntry
from keepstone.tui import wording


def is_harmless(text: str) -> bool:
    return not any(unicodedata.category(letter) in {"Cc", "Cs"} and letter != "\n" for letter in text)


@given(st.text())
def test_nothing_in_a_note_moves_the_cursor(content: str) -> None:
    entry = MemoryEntry(content, "Project", f"/tmp/{content}", 3)
    assert is_harmless(wording.note(entry))


@given(st.text(), st.text())
def test_nothing_in_a_tool_call_begins_a_new_line(name: str, arguments: str) -> None:
    shown = wording.tool(f"{name} {arguments}")
    assert is_harmless(shown)
    assert "\n" not in shown


def test_a_prompt_is_shown_whole_with_its_size() -> None:
    shown = wording.prompt(Prompt("stable ", "varying\x1b"))
    assert shown.endswith("stable varying\\x1b")
    assert "the first 7 of 15 characters stay the same" in shown


def test_hits_without_all_vectors_say_so() -> None:
    assert "1 entry not yet embedded" in wording.hits(Hits([], embedder="x", pending=1), {})
    assert "not yet embedded" not in wording.hits(Hits([], embedder="x"), {})
