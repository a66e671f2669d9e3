"""Tokens, browser sessions, links and failures that all servers of a home share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.sign_in_rows import SignInRows
from keepstone.store.shared_rows import TokenRow

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


@pytest.fixture
def rows(connections: Connections) -> SignInRows:
    return SignInRows(connections)


def token(name: str, minutes: int = 0) -> TokenRow:
    made = NOW + timedelta(minutes=minutes)
    return TokenRow(*(name, f"digest of {name}", ["coder"], True, made, None, name, "user"))


def test_all_servers_have_the_key_that_the_first_one_made(rows: SignInRows, connections: Connections) -> None:
    key = rows.page_key()
    assert len(key) == 32
    assert SignInRows(connections).page_key() == key


def test_tokens_are_listed_with_the_oldest_first(rows: SignInRows) -> None:
    late, early = token("late", 5), token("early")
    rows.add_token(late)
    rows.add_token(early)
    assert [row.id for row in rows.tokens()] == ["early", "late"]
    assert rows.tokens()[0] == early


def test_a_token_that_is_kept_twice_is_there_once_and_removed_once(rows: SignInRows) -> None:
    rows.add_token(token("one"))
    rows.add_token(token("one"))
    assert len(rows.tokens()) == 1
    rows.remove_token("one")
    assert rows.tokens() == []


def test_a_session_knows_its_token_until_it_ends(rows: SignInRows) -> None:
    rows.begin("key", "digest", 60, 10)
    rows.begin("without token", None, 60, 10)
    assert rows.session("key") == ("digest",)
    assert rows.session("without token") == (None,)
    rows.end("key")
    assert rows.session("key") is None


def test_an_expired_session_is_none(rows: SignInRows) -> None:
    rows.begin("key", "digest", -1, 10)
    assert rows.session("key") is None


def test_the_oldest_sessions_of_a_token_end_for_a_new_one(rows: SignInRows) -> None:
    for number in range(4):
        rows.begin(f"key {number}", "digest", 60 + number, 3)
    rows.begin("of another token", "other", 60, 3)
    found = [rows.session(f"key {number}") for number in range(4)]
    assert found == [None, ("digest",), ("digest",), ("digest",)]
    assert rows.session("of another token") == ("other",)


def test_the_key_of_pages_is_no_session(rows: SignInRows) -> None:
    rows.page_key()
    rows.begin("key", None, 60, 10)
    assert rows.session("key") == (None,)
    assert rows.take_link("page key") is False


def test_a_link_is_used_up_by_the_first_who_takes_it(rows: SignInRows) -> None:
    rows.add_link("link", 60)
    assert [rows.take_link("link"), rows.take_link("link")] == [True, False]


def test_an_expired_link_opens_nothing(rows: SignInRows) -> None:
    rows.add_link("link", -1)
    assert rows.take_link("link") is False


def test_a_link_is_no_session_and_a_session_no_link(rows: SignInRows) -> None:
    rows.add_link("link", 60)
    rows.begin("session", None, 60, 10)
    assert (rows.session("link"), rows.take_link("session")) == (None, False)
    assert rows.session("session") == (None,)


def test_an_address_waits_once_it_failed_too_often(rows: SignInRows) -> None:
    for _ in range(2):
        rows.fail("10.0.0.1", 60)
    assert rows.wait("10.0.0.1", 3, 60) == 0.0
    rows.fail("10.0.0.1", 60)
    assert 0 < rows.wait("10.0.0.1", 3, 60) <= 60
    assert rows.wait("10.0.0.2", 3, 60) == 0.0


def test_failures_before_the_window_do_not_count(rows: SignInRows, connections: Connections) -> None:
    for _ in range(3):
        rows.fail("10.0.0.1", 60)
    connections.read("", "UPDATE failed_sign_ins SET at = at - make_interval(secs => 61)")
    assert rows.wait("10.0.0.1", 3, 60) == 0.0
    rows.fail("10.0.0.2", 60)
    assert connections.read("", "SELECT DISTINCT address FROM failed_sign_ins") == [("10.0.0.2",)]
