import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.context.counting import Counter, estimate_tokens
from keepstone.context.cutting import LEAST, MARK, Placed, TokenRoom

COUNTERS: list[Counter] = [estimate_tokens, len, lambda text: len(text.split()), lambda text: len(text) // 7]


def placed(text: str, tokens: int, count: Counter = len) -> Placed | None:
    return TokenRoom(tokens, count, tokens).place(text, str)


def test_a_text_that_fits_is_placed_whole() -> None:
    room = TokenRoom(10, len, 10)
    assert room.place("walnut", str) == Placed("walnut", 6, is_cut=False)
    assert room.left == 4


def test_a_long_text_is_cut_after_its_last_sentence_that_fits() -> None:
    text = "We took walnut for the door. Then we oiled it twice. And waited for three days."
    assert placed(text, 60) == Placed(
        f"We took walnut for the door. Then we oiled it twice.{MARK}", 56, is_cut=True
    )


def test_a_long_text_is_cut_at_the_end_of_a_line() -> None:
    found = placed("milk and bread and cheese\nand the apples from the garden behind the house", 45)
    assert found is not None
    assert found.text == f"milk and bread and cheese{MARK}"


def test_without_sentences_the_cut_is_between_words() -> None:
    found = placed("walnut " * 20, 50)
    assert found is not None
    assert found.text == "walnut " * 5 + "walnut" + MARK


def test_without_words_the_cut_is_between_characters() -> None:
    assert placed("x" * 100, 50) == Placed("x" * 46 + MARK, 50, is_cut=True)


@pytest.mark.parametrize("end", ["。", "\uff01", "\uff1f"])
def test_sentences_of_other_scripts_end_as_well(end: str) -> None:
    found = placed("東" * 30 + end + "京" * 40, 50)
    assert found is not None
    assert found.text == "東" * 30 + end + MARK


def test_too_little_room_for_a_beginning_places_nothing() -> None:
    room = TokenRoom(LEAST - 1, len, LEAST - 1)
    assert room.place("walnut " * 20, str) is None
    assert room.left == LEAST - 1


def test_one_text_takes_no_more_than_the_longest_may() -> None:
    found = TokenRoom(1000, len, 50).place("walnut " * 100, str)
    assert found is not None
    assert found.tokens <= 50


def test_a_text_far_too_long_is_not_counted_as_a_whole() -> None:
    longest = 0

    def count(text: str) -> int:
        nonlocal longest
        longest = max(longest, len(text))
        return len(text)

    placed("walnut " * 1_000_000, 100, count)
    assert longest < 10_000


@given(
    st.text(max_size=400) | st.text("ab .\n", max_size=400), st.integers(0, 120), st.sampled_from(COUNTERS)
)
def test_what_is_placed_never_takes_more_than_the_room(text: str, tokens: int, count: Counter) -> None:
    found = TokenRoom(tokens, count, tokens).place(text, lambda shown: f"- {shown}\n")
    if found is not None:
        assert found.tokens == count(found.text) <= tokens
