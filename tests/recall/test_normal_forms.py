"""A text is found by its words whatever the Unicode normal forms of text and query."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Literal

import pytest

import keepstone

Form = Literal["NFC", "NFD"]
TEXTS = {
    "Korean": ("\ud68c\uc758\ub294 \ub0b4\uc77c \uc5f4\ub9b0\ub2e4", "\ud68c\uc758"),
    "Japanese": ("\u30ac\u30e9\u30b9\u306e\u90e8\u5c4b\u3067\u4f1a\u8b70", "\u30ac\u30e9\u30b9"),
    "Vietnamese": ("Cu\u1ed9c h\u1ecdp \u1edf \u0110\u00e0 N\u1eb5ng", "n\u1eb5ng"),
    "French": ("Le caf\u00e9 est ferm\u00e9", "caf\u00e9"),
    "Russian": ("\u0401\u043b\u043a\u0430 \u0441\u0442\u043e\u0438\u0442 \u0434\u043e\u043c\u0430", "\u0451\u043b\u043a\u0430"),
    "Greek": ("\u0397 \u03c3\u03c5\u03bd\u03ac\u03bd\u03c4\u03b7\u03c3\u03b7 \u03b5\u03af\u03bd\u03b1\u03b9 \u03b1\u03cd\u03c1\u03b9\u03bf", "\u03c3\u03c5\u03bd\u03ac\u03bd\u03c4\u03b7\u03c3\u03b7"),
    "Hindi": ("\u092c\u0948\u0920\u0915 \u0915\u093c\u0932\u092e \u0915\u0947 \u0938\u093e\u0925", "\u0915\u093c\u0932\u092e"),
    "Arabic": ("\u0627\u0644\u0627\u062c\u062a\u0645\u0627\u0639 \u063a\u062f\u064b\u0627 \u0622\u0628", "\u0622\u0628"),
    "Tamil": ("\u0b95\u0bc2\u0b9f\u0bcd\u0b9f\u0bae\u0bcd \u0b95\u0bca\u0ba3\u0bcd\u0b9f\u0bc1", "\u0b95\u0bca\u0ba3\u0bcd\u0b9f\u0bc1"),
}  # fmt: skip


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize("asked", ["NFC", "NFD"])
@pytest.mark.parametrize("script", TEXTS)
def test_words_are_found_in_any_normal_form(tmp_path: Path, script: str, stored: Form, asked: Form) -> None:
    text, word = TEXTS[script]
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        home.agent("a").session("s").add("note", text=unicodedata.normalize(stored, text))
        (hit,) = home.agent("a").recall(unicodedata.normalize(asked, word))
        assert hit.why.words
        assert hit.entry.text == unicodedata.normalize(stored, text)
