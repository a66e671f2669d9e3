"""The language of a home: remembered, and the index rebuilt when it changes."""

from __future__ import annotations

from pathlib import Path

import pytest

import keepstone
from keepstone import Hits


def asked(root: Path, query: str, language: str | None = None, **given: str) -> Hits:
    with keepstone.open(root, embedder="none", language=language) as home:
        return home.agent("a").recall(query, **given)  # type: ignore[arg-type]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        home.agent("a").session("s").add("note", text="Unsere Häuser am See")
    return tmp_path / "home"


def test_a_named_language_finds_other_forms_and_is_remembered(root: Path) -> None:
    assert asked(root, "Haus") == []
    (hit,) = asked(root, "Haus", "de")
    assert hit.why.words == ("haus",)
    assert len(asked(root, "Haus")) == 1
    assert asked(root, "Haus", "en") == []
    assert asked(root, "Haus") == []


def test_a_changed_word_is_taken_out_of_the_index_with_its_stem(root: Path) -> None:
    for language, text, query in (("de", "Viele Bäume", "Baum"), ("en", "Большие дома", "большого дома")):
        with keepstone.open(root, embedder="none", language=language) as home:
            agent = home.agent("a")
            entry = agent.session(language).add("note", text=text)
            assert len(agent.recall(query)) == 1
            agent.update(entry.id, text="walnut")
            assert agent.recall(query) == []
            assert [one.message for one in home.doctor(deep=True) if one.level == "error"] == []


def test_entries_of_the_past_are_found_by_the_same_words(root: Path) -> None:
    assert len(asked(root, "Haus", "de", as_of="2100-01-01")) == 1


@pytest.mark.parametrize("vectors", [False, True])
def test_a_backup_has_the_language_of_its_home(root: Path, tmp_path: Path, vectors: bool) -> None:  # noqa: FBT001
    with keepstone.open(root, embedder="none", language="de") as home:
        home.backup(tmp_path / "copy", vectors=vectors)
    assert len(asked(tmp_path / "copy", "Haus")) == 1


@pytest.mark.parametrize("language", ["xx", "", "german"])
def test_a_language_without_a_stemmer_is_refused(root: Path, language: str) -> None:
    with pytest.raises(ValueError, match="language"):
        keepstone.open(root, language=language)


def test_a_record_that_cannot_be_read_counts_as_none(root: Path) -> None:
    (root / ".index" / ".language").write_bytes(b"\xff\xfe")
    assert asked(root, "Haus") == []
