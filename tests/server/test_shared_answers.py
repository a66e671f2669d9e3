"""Requests with keys in the database of a home, as each of its servers records them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone.home import store_of
from keepstone.server.problems import ProblemError
from keepstone.server.retries import Answers, Kept
from keepstone.server.shared_answers import SharedAnswers, answers_of

NAME = ("holder", "key")


@pytest.fixture
def answers(dsn: str) -> Iterator[SharedAnswers]:
    with keepstone.open(dsn, embedder="none") as home:
        home.agent("a").add("x")  # Makes the schema.
        rows = store_of(home).answers
        assert rows is not None
        yield SharedAnswers(rows)


def claim(answers: SharedAnswers, request: bytes = b"request", name: tuple[str, str] = NAME) -> Kept:
    return asyncio.run(answers.claim(name, "a", request))


def end(answers: SharedAnswers, kept: Kept, body: bytes | None = b"{}", *, keep: bool = True) -> None:
    kept.status, kept.body, kept.headers = 201, body, [(b"location", b"/caf\xe9")]
    asyncio.run(answers.settle(NAME, kept, keep=keep))


def test_a_new_request_is_ones_own_and_has_not_ended(answers: SharedAnswers) -> None:
    assert not claim(answers).ended.is_set()


def test_a_request_that_has_ended_comes_back_with_its_response(answers: SharedAnswers) -> None:
    end(answers, claim(answers))
    found = claim(answers)
    assert found.ended.is_set()
    assert (found.status, found.body, found.headers) == (201, b"{}", [(b"location", b"/caf\xe9")])


def test_another_request_with_the_key_comes_back_at_once(answers: SharedAnswers) -> None:
    claim(answers, b"first")
    found = claim(answers, b"second")
    assert (found.request, found.ended.is_set()) == (b"first", False)


def test_another_key_is_another_request(answers: SharedAnswers) -> None:
    end(answers, claim(answers))
    assert not claim(answers, name=("holder", "other key")).ended.is_set()
    assert not claim(answers, name=("other holder", "key")).ended.is_set()


def test_a_forgotten_request_is_carried_out_again(answers: SharedAnswers) -> None:
    end(answers, claim(answers), keep=False)
    assert not claim(answers).ended.is_set()


def test_of_a_long_response_only_the_status_is_kept(answers: SharedAnswers) -> None:
    end(answers, claim(answers), bytes(256 * 1024))
    found = claim(answers)
    assert (found.ended.is_set(), found.status, found.body) == (True, 201, None)


def test_a_request_that_does_not_end_makes_its_retry_wait_and_come_again(
    answers: SharedAnswers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.server.shared_answers._WAIT", 0.05)
    claim(answers)
    with pytest.raises(ProblemError, match="an earlier request with this key has not ended") as refused:
        claim(answers)
    assert refused.value.status == 503


def test_a_key_is_no_text_in_the_database() -> None:
    asked: list[tuple[str, str]] = []

    class Watched:
        def claim(self, name: tuple[str, str], *_: object) -> None:
            asked.append(name)

    asyncio.run(SharedAnswers(Watched()).claim(("holder", "secret key"), "a", b""))  # type: ignore[arg-type]
    assert asked[0][0] == "holder"
    assert "secret" not in asked[0][1]


def test_a_home_in_a_folder_keeps_responses_in_its_process(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        assert isinstance(answers_of(home), Answers)


def test_a_home_in_a_database_keeps_them_there(dsn: str) -> None:
    with keepstone.open(dsn, embedder="none") as home:
        assert isinstance(answers_of(home), SharedAnswers)
