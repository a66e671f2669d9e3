import pytest

from recollect.recall.explain import matched


@pytest.mark.parametrize(
    ("text", "terms", "expected"),
    [
        ("It failed when we deployed", ["deploys", "walnut", "failing"], ("deploys", "failing")),
        ("我们在东京开会", ["东京", "北京"], ("东京",)),
        ("Café", ["cafe"], ("cafe",)),
        ("", ["walnut"], ()),
        ("walnut", [], ()),
    ],
)
def test_the_words_that_an_entry_holds_in_any_form_are_named(
    text: str, terms: list[str], expected: tuple[str, ...]
) -> None:
    assert matched(text, terms) == expected


def test_only_the_beginning_of_a_long_text_is_looked_through() -> None:
    assert matched("x " * 1_000_000 + "walnut", ["walnut"]) == ()
