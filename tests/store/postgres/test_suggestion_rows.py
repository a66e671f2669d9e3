"""Lines of suggestions as rows, changed by functions in one transaction."""

from __future__ import annotations

import pytest

from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.suggestion_rows import change, lines


def written(connections: Connections, *wanted: bytes) -> None:
    change(connections, "coder", lambda _: [*wanted])


def test_lines_are_read_in_the_order_of_writing(connections: Connections) -> None:
    written(connections, b"b", b"a\0\xff", b"b")
    assert lines(connections, "coder") == [b"b", b"a\0\xff", b"b"]


def test_a_change_is_given_the_lines_of_its_agent_alone(connections: Connections) -> None:
    change(connections, "team", lambda _: [b"theirs"])
    written(connections, b"a", b"b")
    change(connections, "coder", lambda old: [*old[1:], b"c"])
    assert lines(connections, "coder") == [b"b", b"c"]
    assert lines(connections, "team") == [b"theirs"]


def test_lines_that_are_appended_leave_the_others_in_their_rows(connections: Connections) -> None:
    written(connections, b"a", b"b")
    sql = "SELECT seq, xmin::text FROM suggestions WHERE agent = 'coder' ORDER BY seq LIMIT 2"
    before = connections.read("coder", sql)
    change(connections, "coder", lambda old: [*old, b"c"])
    assert connections.read("coder", sql) == before
    assert lines(connections, "coder") == [b"a", b"b", b"c"]


def test_a_change_to_no_lines_removes_them(connections: Connections) -> None:
    written(connections, b"a")
    written(connections)
    assert lines(connections, "coder") == []


def test_a_change_that_fails_changes_nothing(connections: Connections) -> None:
    written(connections, b"a")

    def fail(_: list[bytes]) -> list[bytes]:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        change(connections, "coder", fail)
    assert lines(connections, "coder") == [b"a"]


@pytest.mark.parametrize(("new", "body"), [([b"a", b"b"], b"body"), ([b"b"], None)])
def test_removed_lines_take_responses_that_may_quote_them(
    connections: Connections, new: list[bytes], body: bytes | None
) -> None:
    from keepstone.store.postgres.answer_rows import ALL_AGENTS, AnswerRows

    written(connections, b"a")
    rows = AnswerRows(connections)
    rows.claim(("h", "k"), "coder", b"digest", 1, 60)
    rows.keep(("h", "k"), 1, 200, (b"{}", b"body"), 60)
    change(connections, "coder", lambda _: new)
    assert connections.read(ALL_AGENTS, "SELECT body FROM answers") == [(body,)]
