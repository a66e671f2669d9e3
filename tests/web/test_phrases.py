"""What the pages say, without a browser."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.text.display import harmless
from keepstone.web.phrases import ago, shown
from keepstone.web.site import address

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@given(st.text(alphabet=st.characters(codec=None)))
def test_what_is_shown_can_always_be_sent_as_utf8(text: str) -> None:
    shown(text).encode()


@given(st.characters())
def test_pages_and_terminals_hide_the_same_characters(letter: str) -> None:
    assert shown(letter) == harmless(letter)


@pytest.mark.parametrize("letter", ["\U000e0041", "\u180e", "\ufff9", "\U0001d173", "\u3164", "\u0600"])
def test_a_page_shows_an_invisible_character_as_its_escape(letter: str) -> None:
    assert shown(letter) == letter.encode("unicode_escape").decode()


def test_ordinary_text_of_any_script_is_shown_as_it_is() -> None:
    text = "Zeile\n\tקפה 咖啡 👩‍🚀 e\u0301"
    assert shown(text) == text


@pytest.mark.parametrize(
    ("past", "said"),
    [
        (timedelta(seconds=3), "just now"),
        (timedelta(minutes=1), "1 minute ago"),
        (timedelta(hours=5), "5 hours ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=400), "1 year ago"),
        (timedelta(seconds=-90), "just now"),
    ],
)
def test_a_time_is_reported_in_its_largest_unit(past: timedelta, said: str) -> None:
    assert ago(NOW - past, NOW) == said


def test_an_address_holds_any_id_of_a_session() -> None:
    assert address("coder", "session", id="a/b &c") == "/a/coder/session?id=a%2Fb+%26c"
