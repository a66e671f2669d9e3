import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.recall.query import MOST_TERMS, terms_of


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What did we decide about OAuth?", ["decide", "oauth"]),
        ("the who", ["the", "who"]),
        ("Apple apple APPLE", ["apple"]),
        ("don't", ["don", "t"]),
        ("東京 tower", ["東京", "tower"]),
        ("", []),
        (" ?! \0\ud800", []),
    ],
)
def test_the_words_that_say_something_are_looked_for(query: str, terms: list[str]) -> None:
    assert terms_of(query) == terms


def test_a_text_of_a_megabyte_is_cut_to_the_first_words() -> None:
    assert terms_of(" ".join(f"word{n}" for n in range(100_000))) == [f"word{n}" for n in range(MOST_TERMS)]


@given(st.text())
def test_terms_are_few_different_and_not_empty(query: str) -> None:
    terms = terms_of(query)
    assert len(terms) == len(set(terms)) <= MOST_TERMS
    assert all(terms)
