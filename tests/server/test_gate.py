"""The gate, with a clock of the test's own."""

from pathlib import Path

import pytest

from keepstone.server.gate import LINK_SECONDS, SESSION_SECONDS, Gate, cookies_of
from keepstone.server.problems import ProblemError
from keepstone.server.tokens import Tokens


class Watch:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_session_ends_after_its_time(tmp_path: Path) -> None:
    watch = Watch()
    gate = Gate(Tokens(tmp_path), clock=watch)
    cookie = gate.follow(gate.link(), "here")
    assert gate.cookie(cookie) is not None
    watch.now = SESSION_SECONDS
    assert gate.cookie(cookie) is None


def test_a_link_is_of_no_use_after_its_time(tmp_path: Path) -> None:
    watch = Watch()
    gate = Gate(Tokens(tmp_path), clock=watch)
    link = gate.link()
    watch.now = LINK_SECONDS
    with pytest.raises(ProblemError, match="too old"):
        gate.follow(link, "here")


def test_a_session_has_no_more_rights_than_its_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secret, _ = tokens.create(["coder"], read_only=True)
    gate = Gate(tokens)
    access = gate.cookie(gate.sign_in(secret, "here"))
    assert access is not None
    assert (access.sees("coder"), access.sees("other"), access.read_only) == (True, False, True)


def test_of_a_cookie_that_comes_twice_the_first_counts() -> None:
    assert cookies_of({"cookie": "a=1; b=2=3;a=4; odd"}) == {"a": "1", "b": "2=3"}
