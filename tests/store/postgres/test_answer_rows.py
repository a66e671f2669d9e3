"""Responses to requests with an idempotency key, shared by all servers of a home."""

from __future__ import annotations

import pytest

from keepstone.store.postgres import answer_rows
from keepstone.store.postgres.answer_rows import AnswerRows
from keepstone.store.postgres.connecting import Connections
from keepstone.store.shared_rows import AnswerRow

NAME = ("holder", "key")


@pytest.fixture
def rows(connections: Connections) -> AnswerRows:
    return AnswerRows(connections)


def claimed(
    rows: AnswerRows, token: int, name: tuple[str, str] = NAME, agent: str = "coder"
) -> AnswerRow | None:
    return rows.claim(name, agent, b"digest", token, 60)


def test_a_free_key_is_claimed(rows: AnswerRows) -> None:
    assert claimed(rows, 1) is None


def test_a_key_in_progress_shows_the_other_request_without_a_status(rows: AnswerRows) -> None:
    claimed(rows, 1)
    assert claimed(rows, 2) == AnswerRow(b"digest", None, None, None)


def test_a_claim_that_is_repeated_finds_itself(rows: AnswerRows) -> None:
    assert [claimed(rows, 1), claimed(rows, 1)] == [None, None]


def test_a_key_of_another_holder_is_another_one(rows: AnswerRows) -> None:
    claimed(rows, 1)
    assert claimed(rows, 2, ("other", "key")) is None


def test_a_key_is_free_again_when_its_time_is_over(rows: AnswerRows) -> None:
    rows.claim(NAME, "coder", b"digest", 1, -1)
    assert claimed(rows, 2) is None


def test_a_kept_response_is_returned_whole(rows: AnswerRows) -> None:
    claimed(rows, 1)
    rows.keep(NAME, 1, 201, (b"{}", b"body"), 60)
    assert claimed(rows, 2) == AnswerRow(b"digest", 201, b"{}", b"body")


def test_only_the_request_that_has_the_key_ends_it(rows: AnswerRows) -> None:
    claimed(rows, 1)
    rows.keep(NAME, 2, 201, (b"{}", b"body"), 60)
    rows.forget(NAME, 2)
    assert claimed(rows, 3) == AnswerRow(b"digest", None, None, None)


def test_a_forgotten_request_frees_its_key(rows: AnswerRows) -> None:
    claimed(rows, 1)
    rows.forget(NAME, 1)
    assert claimed(rows, 2) is None


@pytest.mark.parametrize(("status", "is_free"), [(200, False), (404, True)])
def test_a_refusal_without_a_body_frees_its_key(rows: AnswerRows, status: int, *, is_free: bool) -> None:
    claimed(rows, 1)
    rows.keep(NAME, 1, status, None, 60)
    assert (claimed(rows, 2) is None) is is_free


def test_a_refusal_with_a_body_is_returned_again(rows: AnswerRows) -> None:
    claimed(rows, 1)
    rows.keep(NAME, 1, 404, (b"{}", b"no such entry"), 60)
    assert claimed(rows, 2) == AnswerRow(b"digest", 404, b"{}", b"no such entry")


def test_of_many_responses_only_the_keys_of_the_oldest_stay(
    rows: AnswerRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_rows, "_MOST_BODIES", 2)
    for number in range(4):
        claimed(rows, number, ("holder", str(number)))
        rows.keep(("holder", str(number)), number, 200, (b"{}", b"body"), 60 + number)
    found = [claimed(rows, 9, ("holder", str(number))) for number in range(4)]
    assert [row and row.body for row in found] == [None, None, b"body", b"body"]
    assert [row and row.status for row in found] == [200] * 4


def purge(connections: Connections, agent: str) -> None:
    connections.read_all(agent, answer_rows.forgetting(connections, agent))


@pytest.mark.parametrize(("agent", "body"), [("coder", None), ("", None), ("team", b"body")])
def test_a_purge_removes_responses_that_may_quote_the_agent(
    rows: AnswerRows, connections: Connections, agent: str, body: bytes | None
) -> None:
    claimed(rows, 1, agent=agent)
    rows.keep(NAME, 1, 200, (b"{}", b"body"), 60)
    purge(connections, "coder")
    found = claimed(rows, 2)
    assert (found and found.status, found and found.body) == (200, body)


def test_a_response_that_was_made_before_a_purge_is_not_kept_after_it(
    rows: AnswerRows, connections: Connections
) -> None:
    claimed(rows, 1)
    purge(connections, "coder")
    rows.keep(NAME, 1, 200, (b"{}", b"body"), 60)
    assert claimed(rows, 2) == AnswerRow(b"digest", 200, None, None)


def test_expired_requests_are_removed(rows: AnswerRows, connections: Connections) -> None:
    rows.claim(NAME, "coder", b"digest", 1, -1)
    with connections.alone() as connection:
        answer_rows.expire(connections, connection)
    assert connections.read(answer_rows.ALL_AGENTS, "SELECT count(*) FROM answers") == [(0,)]
