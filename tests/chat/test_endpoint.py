"""What people read when a model behind a network does not answer."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.chat.endpoint import NO_KEY, Endpoint, broken_off, check_package
from keepstone.errors import ModelError

KEYS = st.text("abcxyz0189", min_size=4).map("sk-{}".format)
STATUSES = (None, 400, 401, 403, 404, 429, 500)
ENDPOINT = Endpoint("m", "openai:m", "sk-secret", "OPENAI_API_KEY")


class RefusedError(Exception):
    """What the packages raise for an answer that is a refusal."""

    def __init__(self, words: str, status: int | None) -> None:
        super().__init__(words)
        self.status_code = status


class SomeTimeoutError(Exception):
    """The packages have several, which have this word in common."""


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "openai:m rejected the key (401): check OPENAI_API_KEY."),
        (403, "openai:m rejected the key (403): check OPENAI_API_KEY."),
        (404, "openai:m was not found (404): check the model's name and the address. It is so."),
        (429, "openai:m is over its rate limit or quota (429). It is so."),
        (400, "openai:m failed (400): It is so."),
        (None, "openai:m cannot be reached, or closed the connection (RefusedError): It is so."),
    ],
)
def test_each_refusal_is_reported_with_what_to_do(status: int | None, told: str) -> None:
    error = ENDPOINT.failure(RefusedError("It is so.", status))
    assert str(error) == f"{told} Your message is stored: /retry asks again."


def test_an_error_without_words_is_reported_as_such() -> None:
    told = str(ENDPOINT.failure(ConnectionResetError()))
    assert "closed the connection (ConnectionResetError): no reason given. Your message" in told


def test_a_silence_is_reported_in_seconds_and_not_in_its_own_words() -> None:
    told = str(ENDPOINT.failure(SomeTimeoutError("pool acquire")))
    assert "openai:m timed out after 60 s. " in told
    assert "pool" not in told


def test_a_refusal_for_want_of_time_is_still_a_refusal() -> None:
    error = SomeTimeoutError("slow")
    error.status_code = 429  # type: ignore[attr-defined]
    assert "is over its rate limit or quota (429)" in str(ENDPOINT.failure(error))


@given(st.text(), KEYS, st.text(), st.sampled_from(STATUSES))
def test_the_key_is_in_no_message_wherever_a_server_repeats_it(
    before: str, key: str, after: str, status: int | None
) -> None:
    endpoint = Endpoint("m", "openai:m", key, "OPENAI_API_KEY")
    error = endpoint.failure(RefusedError(f"{before}{key}{after}{key}", status))
    assert key not in f"{error}{error!r}{endpoint!r}"


def test_a_long_page_of_a_server_is_cut() -> None:
    told = str(ENDPOINT.failure(RefusedError("x" * 5000, 500)))
    assert told.count("x") == 300
    assert told.endswith("/retry asks again.")


def test_a_key_that_straddles_the_cut_is_left_out_whole() -> None:
    told = str(ENDPOINT.failure(RefusedError("." * 295 + "sk-secret", 500)))
    assert "sk-" not in told


@pytest.mark.parametrize(
    ("reason", "told"), [((), "the connection ended"), (("it sent nothing",), "it sent nothing")]
)
def test_an_answer_without_its_end_says_that_what_came_is_kept(reason: tuple[str, ...], told: str) -> None:
    error = ENDPOINT.cut(*reason)
    assert str(error) == f"openai:m did not finish: {told}. The partial answer is kept: /retry asks again."


def test_a_server_that_wants_no_key_is_told_of_like_any_other() -> None:
    endpoint = Endpoint("m", "m at h:1", NO_KEY, "KEEPSTONE_CHAT_KEY", "http://h:1/v1")
    assert "check KEEPSTONE_CHAT_KEY" in str(endpoint.failure(RefusedError("who are you", 401)))


def test_a_missing_package_is_named_with_the_extra() -> None:
    with pytest.raises(ModelError, match=r"package no_such_package .* pip install 'keepstone\[chat\]'"):
        check_package("no_such_package")


def test_a_package_is_looked_for_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    check_package("colorsys")
    assert "colorsys" not in sys.modules


def test_breaks_within_a_stream_are_known_once_their_package_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    httpx = pytest.importorskip("httpx")
    assert issubclass(httpx.ReadError, broken_off())
    for name in ("httpx", "httpx2"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert broken_off() == ()
