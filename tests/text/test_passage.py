"""The best passage of a long text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.passage import PASSAGE, marked, passage_of
from keepstone.text.tokenizer import Matcher

NOON, TEA = "We met at noon. ", "Then we had tea. "
LONG = NOON * 40 + "The door is made of walnut. " + TEA * 40


def test_a_short_text_is_its_own_passage() -> None:
    text = "x" * PASSAGE
    assert passage_of(text, Matcher(["walnut"])) == text


def test_a_passage_surrounds_the_words_with_whole_sentences() -> None:
    before, found, after = passage_of(LONG, Matcher(["walnut"])).partition("The door is made of walnut.")
    assert found
    assert before == NOON * (len(before) // len(NOON)) != ""
    assert f"{after.strip()} " == TEA * (len(after) // len(TEA)) != ""


def test_the_passage_with_most_of_the_words_is_taken() -> None:
    text = f"{TEA * 40}A walnut. {NOON * 40}A walnut door. {TEA * 40}"
    assert "walnut door" in passage_of(text, Matcher(["walnut", "door"]))


def test_a_word_of_one_sentence_counts_more_than_one_of_many() -> None:
    text = "Ada met Bob. " * 60 + "It was walnut. " + "Nobody came. " * 40
    assert "walnut" in passage_of(text, Matcher(["ada", "walnut"]))


def test_other_forms_of_a_word_are_found() -> None:
    assert "walnut" in passage_of(LONG, Matcher(["walnuts"]))
    german = f"{NOON * 40}Die Häuser am See. {NOON * 40}"
    assert "Häuser" in passage_of(german, Matcher(["haus"], "de"))


def test_without_a_word_of_the_query_it_is_the_beginning() -> None:
    assert LONG.startswith(passage_of(LONG, Matcher(["oak"])))


def test_a_passage_at_the_end_takes_in_what_is_before_it() -> None:
    text = f"{NOON * 100}Walnut."
    passage = passage_of(text, Matcher(["walnut"]))
    assert text.endswith(passage)
    assert len(passage) > PASSAGE - 2 * len(NOON)


def test_chinese_and_japanese_sentences_end_without_spaces() -> None:
    rain, sun = (
        "\u5927\u962a\u306f\u96e8\u3067\u3059\u3002",
        "\u6771\u4eac\u306f\u6674\u308c\u3067\u3059\u3002",
    )
    passage = passage_of(sun * 100 + rain + sun * 100, Matcher([rain[:2]]))
    assert rain in passage
    assert passage.endswith(sun)


def test_a_sentence_without_an_end_is_cut_between_words() -> None:
    passage = passage_of("walnut door " * 200, Matcher(["walnut"]))
    assert set(passage.split()) == {"walnut", "door"}


@given(st.text(st.sampled_from("a b.\n\u6771\u3002"), min_size=PASSAGE - 5, max_size=3 * PASSAGE))
def test_a_passage_is_a_bounded_part_of_its_text(text: str) -> None:
    passage = passage_of(text, Matcher(["a", "b"]))
    assert passage in text
    assert len(passage) <= PASSAGE


@pytest.mark.parametrize(
    ("passage", "text", "shown"),
    [
        ("a b", "a b", "a b"),
        ("b", "a b c", "[…] b […]"),
        ("a", " a b", "a […]"),
        ("c", "a b c\n", "[…] c"),
        ("", " ", ""),
    ],
)
def test_a_mark_shows_where_a_passage_is_cut_out(passage: str, text: str, shown: str) -> None:
    assert marked(passage, text) == shown
