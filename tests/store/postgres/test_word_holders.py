"""Which entries hold an identifier, as PostgreSQL finds it: its parts follow one another."""

from __future__ import annotations

import pytest

import keepstone
from keepstone.store.postgres.word_holders import WordHolders

TEXTS = {
    "with its hyphen": "see main.py here",
    "as two words": "the main py",
    "turned around": "py of main",
    "with a word between": "main the py",
    "in part": "main",
}


def holders() -> WordHolders:
    """The holders that a reader of no entries knows."""
    return WordHolders("a", "en", lambda queries: [[] for _ in queries], {})


@pytest.mark.parametrize("word", ["walnut", "日本", "Ada"])
def test_a_word_of_one_part_is_no_phrase(word: str) -> None:
    assert not holders().is_phrase(word)


def test_an_identifier_of_several_parts_is_a_phrase() -> None:
    assert holders().is_phrase("main.py")


def test_an_identifier_is_found_where_its_parts_follow_one_another(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        agent = home.agent("a")
        agent.session("s").add_many(
            {"id": name, "type": "note", "text": text} for name, text in TEXTS.items()
        )
        hits = agent.recall("main.py", limit=len(TEXTS))
    assert {hit.entry.id for hit in hits if "exact" in hit.why.parts} == {"with its hyphen", "as two words"}
