"""Cursors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.server.cursors import decode, encode, page_of


@given(st.text(), st.text())
def test_a_cursor_comes_back_as_the_place_it_was_made_of(one: str, other: str) -> None:
    assert decode("list", encode("list", one, other), (str, str)) == [one, other]


@given(st.text())
def test_no_text_is_taken_for_a_cursor_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="not a cursor of this list"):
        decode("list", text, (str,))


def test_a_cursor_serves_its_own_list_alone() -> None:
    with pytest.raises(ValueError, match="not a cursor of this list"):
        decode("other", encode("list", "x"), (str,))


def test_the_last_page_has_no_end_to_go_on_from() -> None:
    assert page_of([1, 2, 3], 2) == ([1, 2], 2)
    assert page_of([1, 2], 2) == ([1, 2], None)
    assert page_of([], 2) == ([], None)
