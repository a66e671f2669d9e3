"""A text is found by its words whatever the Unicode normal forms of text and query."""

from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Literal

import pytest

import keepstone

Form = Literal["NFC", "NFD"]
TEXTS = {
    "Korean": ("회의는 내일 열린다", "회의"),
    "Japanese": ("ガラスの部屋で会議", "ガラス"),
    "Vietnamese": ("Cuộc họp ở Đà Nẵng", "nẵng"),
    "French": ("Le café est fermé", "café"),
    "Russian": ("Ёлка стоит дома", "ёлка"),
    "Greek": ("Η συνάντηση είναι αύριο", "συνάντηση"),
    "Hindi": ("बैठक क़लम के साथ", "क़लम"),
    "Arabic": ("الاجتماع غدًا آب", "آب"),
    "Tamil": ("கூட்டம் கொண்டு", "கொண்டு"),
}


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
