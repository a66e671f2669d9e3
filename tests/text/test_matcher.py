import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.tokenizer import Matcher, is_unspaced, stem, words_of


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("It failed when we deployed", ["deploys", "walnut", "failing"], ("deploys", "failing")),
        ("我们在东京开会", ["东京", "北京"], ("东京",)),
        ("Café", ["cafe"], ("cafe",)),
        ("École", ["ecole"], ("ecole",)),
        ("an ecole", ["école"], ("école",)),
        ("", ["walnut"], ()),
        ("walnut", [], ()),
    ],
)
def test_the_words_that_an_entry_holds_in_any_form_are_named(
    text: str, terms: list[str], expected: tuple[str, ...]
) -> None:
    assert Matcher(terms).matched(text) == expected


def test_only_the_beginning_of_a_long_text_is_looked_through() -> None:
    assert Matcher(["walnut"]).matched("x " * 1_000_000 + "walnut") == ()


FEW_LETTERS = st.text("aàdegéinsy", min_size=1, max_size=6)
WORDS = FEW_LETTERS | st.text(
    st.characters(codec="utf-8", categories=["L", "M", "N"]), min_size=1, max_size=8
)


@given(WORDS, WORDS)
def test_two_words_match_when_they_are_forms_of_one(one: str, other: str) -> None:
    for term in words_of(one):
        stems = {stem(word) for word in words_of(other)}
        assert is_unspaced(term) or Matcher([term]).matched(other) == ((term,) if stem(term) in stems else ())


def test_several_texts_get_the_words_that_each_holds_and_where() -> None:
    assert Matcher(["walnut", "tea"]).matched_each([("tea", ""), ("", ""), ("walnuts and tea", "")]) == [
        (("tea",), [(0, "tea")]),
        ((), []),
        (("walnut", "tea"), [(0, "walnut"), (2, "tea")]),
    ]


def test_other_names_and_parts_of_names_have_no_place() -> None:
    [(words, places)] = Matcher(["kube", "user"]).matched_each([("call getUserName", "kube")])
    assert words == ("kube", "user")
    assert places == []
