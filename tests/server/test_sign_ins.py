"""Browser sessions, sign-in links and failures of one process."""

from __future__ import annotations

import pytest

from keepstone.server.rate_limit import MOST, WINDOW
from keepstone.server.sign_ins import LocalSignIns


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sign_ins(clock: Clock) -> LocalSignIns:
    return LocalSignIns(clock)


def test_a_session_lasts_as_long_as_it_was_given(sign_ins: LocalSignIns, clock: Clock) -> None:
    sign_ins.begin("key", "token", 60, 5)
    clock.now += 59.9
    assert sign_ins.session("key") == ("token",)
    clock.now += 0.1
    assert sign_ins.session("key") is None


def test_a_session_by_a_link_has_no_token_and_is_one(sign_ins: LocalSignIns) -> None:
    sign_ins.begin("key", None, 60, 5)
    assert sign_ins.session("key") == (None,)
    assert sign_ins.session("other") is None


def test_a_session_that_was_ended_is_over(sign_ins: LocalSignIns) -> None:
    sign_ins.begin("key", "token", 60, 5)
    sign_ins.end("key")
    sign_ins.end("key")
    assert sign_ins.session("key") is None


def test_of_too_many_sessions_of_a_token_the_oldest_ends(sign_ins: LocalSignIns) -> None:
    for number in range(4):
        sign_ins.begin(f"key{number}", "token", 60, 2)
    sign_ins.begin("other", "another token", 60, 2)
    alive = [key for key in ("key0", "key1", "key2", "key3", "other") if sign_ins.session(key)]
    assert alive == ["key2", "key3", "other"]


def test_sessions_that_have_ended_leave_room(sign_ins: LocalSignIns, clock: Clock) -> None:
    sign_ins.begin("short", "token", 1, 2)
    sign_ins.begin("long", "token", 60, 2)
    clock.now += 1
    sign_ins.begin("new", "token", 60, 2)
    assert [key for key in ("short", "long", "new") if sign_ins.session(key)] == ["long", "new"]


def test_a_link_is_used_once(sign_ins: LocalSignIns) -> None:
    sign_ins.add_link("link", 60)
    assert [sign_ins.take_link("link") for _ in range(2)] == [True, False]
    assert not sign_ins.take_link("unknown")


def test_a_link_that_has_expired_opens_nothing_and_is_used_up(sign_ins: LocalSignIns, clock: Clock) -> None:
    sign_ins.add_link("link", 60)
    clock.now += 60
    assert not sign_ins.take_link("link")
    clock.now -= 60
    assert not sign_ins.take_link("link")


def test_an_address_waits_after_too_many_failures(sign_ins: LocalSignIns, clock: Clock) -> None:
    for _ in range(MOST - 1):
        sign_ins.fail("1.2.3.4", WINDOW)
    assert sign_ins.wait("1.2.3.4", MOST, WINDOW) == 0
    sign_ins.fail("1.2.3.4", WINDOW)
    assert sign_ins.wait("1.2.3.4", MOST, WINDOW) == WINDOW
    assert sign_ins.wait("5.6.7.8", MOST, WINDOW) == 0
    clock.now += WINDOW
    assert sign_ins.wait("1.2.3.4", MOST, WINDOW) == 0


def test_each_process_has_a_page_key_of_its_own(sign_ins: LocalSignIns, clock: Clock) -> None:
    assert sign_ins.page_key() == sign_ins.page_key()
    assert sign_ins.page_key() != LocalSignIns(clock).page_key()
    assert len(sign_ins.page_key()) == 32
    assert not sign_ins.is_shared
