"""The unigram tokenizer: the most probable pieces of a text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.embed.unigram import SPACE, Unigram

PIECES = ["<s>", "?", SPACE, f"{SPACE}wal", "walnut", "nut", *"walnut", "\u6728", "s"]
SCORES = [0.0, 0.0, -2.0, -3.0, -9.0, -3.5, *[-2.5] * 6, -4.0, -3.0]
UNKNOWN = 1


@pytest.fixture
def unigram() -> Unigram:
    return Unigram(PIECES, SCORES, {0, UNKNOWN}, UNKNOWN, {ord("\t"): " ", ord("\uff57"): "w", 7: ""})


def pieces_of(unigram: Unigram, text: str) -> list[str]:
    return [PIECES[number] for number in unigram.encode(text)]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("walnut", [f"{SPACE}wal", "nut"]),
        (" walnut", [f"{SPACE}wal", "nut"]),
        ("walnut  nut", [f"{SPACE}wal", "nut", SPACE, "nut"]),
        ("\u6728walnut", [SPACE, "\u6728", "walnut"]),
        ("", [SPACE]),
    ],
)
def test_a_text_is_divided_into_its_most_probable_pieces(
    unigram: Unigram, text: str, pieces: list[str]
) -> None:
    assert pieces_of(unigram, text) == pieces


def test_characters_are_replaced_before(unigram: Unigram) -> None:
    assert unigram.encode("nut\t\uff57al\x07nut") == unigram.encode("nut walnut")


def test_neighbouring_unknown_characters_are_one_piece(unigram: Unigram) -> None:
    assert pieces_of(unigram, "xyz nut x") == [SPACE, "?", SPACE, "nut", SPACE, "?"]


def test_the_text_of_a_special_piece_is_ordinary_text(unigram: Unigram) -> None:
    assert 0 not in unigram.encode("a<s>n")
    assert pieces_of(unigram, "<s>") == [SPACE, "?", "s", "?"]


@given(st.text("walnut", min_size=1, max_size=7))
def test_no_division_is_more_probable(word: str) -> None:
    unigram = Unigram(PIECES, SCORES, {0, UNKNOWN}, UNKNOWN, {})
    numbers = {piece: number for number, piece in enumerate(PIECES)}
    marked = f"{SPACE}{word}"

    def scores(cuts: tuple[int, ...]) -> float:
        parts = [marked[begin:end] for begin, end in itertools.pairwise((0, *cuts, len(marked)))]
        return sum(SCORES[numbers[part]] if part in numbers else -99.0 for part in parts)

    places = range(1, len(marked))
    best = max(scores(cuts) for count in range(len(marked)) for cuts in itertools.combinations(places, count))
    assert sum(SCORES[number] for number in unigram.encode(word)) == pytest.approx(best)
