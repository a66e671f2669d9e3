"""What people see, and that it can do nothing to their terminal."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.cli.screen import print_view, table
from recollect.shown import clipped, counted, harmless, one_line, size


@given(st.text(st.characters()))
def test_harmless_text_holds_no_control_and_no_surrogate(text: str) -> None:
    shown = set(harmless(text)) - set("\n\t")
    assert not {letter for letter in shown if unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"}}


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_harmless_leaves_ordinary_text_alone(text: str) -> None:
    assert harmless(text) == text


@pytest.mark.parametrize("text", ["👩\u200d🚀", "می\u200cخواهم", "two\nlines\tand a tab", "été", "日本"])
def test_harmless_leaves_joiners_and_line_ends_alone(text: str) -> None:
    assert harmless(text) == text


def test_harmless_shows_direction_marks_and_hidden_tags() -> None:
    assert harmless("a\u202eb\U000e0041c\x7f") == "a\\u202eb\\U000e0041c\\x7f"


@given(st.text())
def test_one_line_is_one_line(text: str) -> None:
    assert len(one_line(text).splitlines()) <= 1


def test_a_clipped_text_has_the_length_that_was_asked() -> None:
    assert clipped("abcdef", 4) == "abc…"
    assert clipped("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3072.0 GiB")],
)
def test_sizes_have_the_unit_that_suits_them(count: int, text: str) -> None:
    assert size(count) == text


def test_counted_nouns_are_in_the_plural_where_needed() -> None:
    assert [counted(1, "entry"), counted(2, "entry"), counted(0, "hit")] == ["1 entry", "2 entries", "0 hits"]


def test_table_cells_are_taken_literally(capsys: pytest.CaptureFixture[str]) -> None:
    from recollect.cli.screen import console

    console().print(table(["name"], [["[red]x[/red] :smile:\x1b"]]))
    assert "[red]x[/red] :smile:\\x1b" in capsys.readouterr().out


def test_lines_that_go_to_a_file_end_where_their_text_ends(capsys: pytest.CaptureFixture[str]) -> None:
    print_view(table(["name", "size"], [["a", "1"], ["longer", "2"]]))
    lines = capsys.readouterr().out.splitlines()
    assert "longer" in "".join(lines)
    assert lines == [line.rstrip() for line in lines]
