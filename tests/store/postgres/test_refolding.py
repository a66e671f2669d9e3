"""Lines of a session are folded, and its entries' rows are made again from them."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime
from typing import Any

import numpy as np
import psycopg
import pytest
from tests.store.postgres.steps import note

from keepstone.log.scan import Line
from keepstone.store.postgres.connecting import Connections
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.postgres.refolding import fill, line_of, unfold
from keepstone.vector import encode, unit

NOW = datetime(2026, 3, 3, 12, tzinfo=UTC)


def line(record: dict[str, Any], seq: int = 1) -> Line:
    raw = json.dumps(record).encode()
    return line_of(seq, raw, record.get("id"), NOW)


def test_a_line_that_says_id_and_time_keeps_its_own() -> None:
    found = line_of(1, b'{"id": "x", "ts": "2026-01-01T00:00:00Z"}', "other", NOW)
    assert (found.record, found.derived) == ({"id": "x", "ts": "2026-01-01T00:00:00Z"}, False)


def test_an_id_and_a_time_that_a_line_does_not_say_are_those_of_its_row() -> None:
    found = line_of(1, b'{"text": "x"}', "a\1\1b", NOW)
    assert found.record == {"text": "x", "id": "a\0b", "ts": "2026-03-03T12:00:00.000000Z"}
    assert found.derived


@pytest.mark.parametrize(("raw", "name"), [(b"not json", "x"), (b'{"id": "x"}', None)])
def test_a_damaged_line_has_no_record(raw: bytes, name: str | None) -> None:
    assert line_of(1, raw, name, NOW).record is None


def given_after(*records: dict[str, Any]) -> list[str]:
    found = unfold(line(record, at) for at, record in enumerate(records))
    return [*found.given]


VECTOR = encode("given:2", unit([1, 0]))


def test_a_vector_that_was_given_for_the_present_text_stays() -> None:
    made = note("x", embedding=VECTOR)
    assert given_after(made) == ["x"]
    assert given_after(made, {"id": "x", "tags": ["a"], "ts": "2026-03-03T12:00:00Z"}) == ["x"]


def test_a_vector_of_an_earlier_text_is_none_of_the_entry() -> None:
    assert given_after(note("x", embedding=VECTOR), note("x", text="another")) == []


def test_a_vector_that_cannot_be_read_is_none() -> None:
    assert given_after(note("x", embedding={"space": "given:2", "f32": "?"})) == []


def refilled(connections: Connections, *, keep_made: bool) -> int:
    def work(held: LockedSession | None) -> int:
        assert held is not None
        return fill(held, keep_made=keep_made)

    return locked(connections, "a", "s", [], work)


def rows(dsn: str) -> tuple[Any, ...]:
    with psycopg.connect(dsn) as connection:
        entries = connection.execute(
            "SELECT id, type, tags, facts, head, sum, length, terms, times FROM entries ORDER BY id"
        ).fetchall()
        counts = connection.execute("SELECT entries, texts, words, size FROM sessions").fetchall()
    return entries, counts


def test_rows_are_made_again_as_they_were(dsn: str, connections: Connections) -> None:
    with closing(PostgresStore(dsn)) as store:
        store.append("a", "s", [note("x", tags=["b"], data={"votes": 3}), note("y"), note("z")])
        store.delete("a", "s", ["y"], "2026-03-03T12:00:00.000000Z")
    before = rows(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE entries SET tags = '{}', length = 99, head = ''")
        connection.execute("UPDATE sessions SET entries = 99, words = 0, size = 1")
    assert refilled(connections, keep_made=True) == 2
    assert rows(dsn) == before


@pytest.mark.parametrize("keep_made", [True, False])
def test_made_vectors_stay_only_if_asked(dsn: str, connections: Connections, *, keep_made: bool) -> None:
    with closing(PostgresStore(dsn)) as store:
        [entry] = store.append("a", "s", [note("x")])
        store.keep_vectors("a", "space", [(entry, np.array([1, 0], np.float32))])
    refilled(connections, keep_made=keep_made)
    with closing(PostgresStore(dsn)) as store:
        assert [*store.vectors("a", "s", "space", ["x"])] == (["x"] if keep_made else [])
