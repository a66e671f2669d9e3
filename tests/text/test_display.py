"""Words and numbers as people see them, and text that can do nothing to their terminal."""

import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.display import clipped, counted, frames_of, harmless, moment, one_line, size


@given(st.text(st.characters()))
def test_harmless_text_holds_no_control_no_hidden_letter_and_no_surrogate(text: str) -> None:
    seen = set(harmless(text)) - set("\n\t\u00ad\u200c\u200d")
    assert not {letter for letter in seen if unicodedata.category(letter) in {"Cc", "Cf", "Cs", "Zl", "Zp"}}


@given(st.text(st.characters(categories=["L", "N", "P", "S"], exclude_characters="\u115f\u1160\u3164\uffa0")))
def test_harmless_leaves_ordinary_text_alone(text: str) -> None:
    assert harmless(text) == text


@given(st.text(st.characters()))
def test_harmless_text_stays_as_it_is_when_made_harmless_again(text: str) -> None:
    assert harmless(harmless(text)) == harmless(text)


@pytest.mark.parametrize(
    "text",
    [
        "👩\u200d🚀",
        "❤\ufe0f",
        "葛\U000e0100",
        "می\u200cخواهم",
        "hy\u00adphen",
        "two\nlines\tand a tab",
        "été",
        "日本",
    ],
)
def test_harmless_leaves_joiners_and_line_ends_alone(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\u202eb\U000e0041c\x7f", r"a\u202eb\U000e0041c\x7f"),
        ("\r\x00\x85", r"\r\x00\x85"),
        ("\u2028\u2029\ufeff\u200b", r"\u2028\u2029\ufeff\u200b"),
        ("\ud800", r"\ud800"),
        ("a\u3164b\u115f\uffa0", r"a\u3164b\u115f\uffa0"),
        ("a\u034f\u17b4\u180e", r"a\u034f\u17b4\u180e"),
        ("\ufe01a\ufe01\ufe02\U000e0101", "\\ufe01a\ufe01\\ufe02\\U000e0101"),
    ],
)
def test_harmless_shows_what_would_act_or_hide_as_its_escape(text: str, seen: str) -> None:
    assert harmless(text) == seen


@given(st.text(st.characters()))
def test_one_line_is_one_line_without_space_around(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    assert line == line.strip()


def test_one_line_keeps_its_words_apart() -> None:
    assert one_line(" two\n\n\tlines\u3000of  it ") == "two lines of it"


@given(st.text(), st.integers(1, 20))
def test_a_clipped_text_stays_within_its_limit(text: str, length: int) -> None:
    assert len(clipped(text, length)) <= length


def test_only_a_text_of_which_more_follows_ends_with_three_dots() -> None:
    assert clipped("abcdef", 4) == "abc…"
    assert clipped("abcd", 4) == "abcd"


def test_no_space_and_no_stop_precedes_the_three_dots() -> None:
    assert clipped("one two three", 9) == "one two…"
    assert clipped("It is so. Then it was not", 11) == "It is so…"


def test_a_text_is_clipped_at_600_letters_where_no_length_is_asked() -> None:
    assert clipped("x" * 600) == "x" * 600
    assert clipped("x" * 601) == "x" * 599 + "…"


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (5, "5 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (58_450, "57.1 KiB"),
        (5 << 20, "5.0 MiB"),
        (3 << 30, "3.0 GiB"),
        (3 << 40, "3072.0 GiB"),
    ],
)
def test_sizes_have_the_unit_that_suits_them(count: int, text: str) -> None:
    assert size(count) == text


def test_the_last_sizes_below_a_unit_are_reported_as_one_of_it() -> None:
    assert [size((1 << 20) - 1), size((1 << 30) - 1)] == ["1.0 MiB", "1.0 GiB"]


@pytest.mark.parametrize(
    ("word", "several"),
    [
        ("hit", "hits"),
        ("entry", "entries"),
        ("day", "days"),
        ("access", "accesses"),
        ("match", "matches"),
        ("box", "boxes"),
    ],
)
def test_a_counted_noun_is_in_the_plural_but_for_one(word: str, several: str) -> None:
    assert [counted(count, word) for count in (0, 1, 2)] == [f"0 {several}", f"1 {word}", f"2 {several}"]


def test_a_large_number_is_counted_by_thousands() -> None:
    assert counted(1_234_567, "entry") == "1,234,567 entries"


def test_a_moment_is_told_to_the_minute() -> None:
    assert moment(datetime(2026, 1, 2, 3, 4, 59, tzinfo=UTC)) == "2026-01-02 03:04"


def test_frames_of_an_error_leave_out_its_text() -> None:
    def fail(text: str) -> None:
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError) as raised:
        fail("an " + "entry")
    assert "in fail" in frames_of(raised.value)
    assert "an entry" not in frames_of(raised.value)
