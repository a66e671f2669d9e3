"""The gate, with a clock of the test's own."""

import logging
from pathlib import Path

import pytest

from keepstone.server.authentication import (
    LINK_SECONDS,
    SESSION_SECONDS,
    Gate,
    TokensUnusableError,
    cookies_of,
)
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
    with pytest.raises(ProblemError, match="was used or has expired"):
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


def test_sign_ins_with_one_token_sign_out_only_its_own_sessions(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    one, other = tokens.create(["coder"])[0], tokens.create()[0]
    gate = Gate(tokens)
    linked, first = gate.follow(gate.link(), "here"), gate.sign_in(other, "here")
    own = [gate.sign_in(one, "here") for _ in range(1_001)]
    assert None not in (gate.cookie(linked), gate.cookie(first), gate.cookie(own[-1]))
    assert sum(gate.cookie(value) is not None for value in own) == 50


def test_expired_sessions_do_not_count_toward_the_cap(tmp_path: Path) -> None:
    watch, tokens = Watch(), Tokens(tmp_path)
    secret, gate = tokens.create()[0], Gate(tokens, clock=watch)
    for _ in range(50):
        gate.sign_in(secret, "here")
    watch.now = SESSION_SECONDS
    values = [gate.sign_in(secret, "here") for _ in range(50)]
    assert all(gate.cookie(value) for value in values)


def test_all_sessions_of_one_token_are_one_reader(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secret, other = tokens.create(["team"], read_only=True)[0], tokens.create(["team"], read_only=True)[0]
    gate = Gate(tokens)
    signed_in = [gate.cookie(gate.sign_in(one, "here")) for one in (secret, secret, other)]
    by_links = [gate.cookie(gate.follow(gate.link(), "here")) for _ in range(2)]
    first, second, *others = [access.reader for access in [*signed_in, *by_links] if access]
    assert first == second == gate.bearer(f"Bearer {secret}", "here").reader
    assert len({first, *others}) == 4


def test_two_sessions_of_one_token_have_different_holders(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    secret, gate = tokens.create()[0], Gate(tokens)
    accesses = [gate.cookie(gate.sign_in(secret, "here")) for _ in range(2)]
    assert len({access.holder for access in accesses if access}) == 2


def test_a_damaged_tokens_file_is_logged_once_for_each_fault(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokens, file = Tokens(tmp_path), tmp_path / ".tokens.json"
    secret, _ = tokens.create()
    gate, whole = Gate(tokens), file.read_text()
    for _ in range(2):
        file.write_text("{")
        for _ in range(3):
            with pytest.raises(TokensUnusableError, match="keepstone token list"):
                gate.bearer(f"Bearer {secret}", "here")
        file.write_text(whole)
        assert gate.bearer(f"Bearer {secret}", "here").sees("coder")
    assert [record.levelno for record in caplog.records] == [logging.ERROR] * 2
