"""Items of LangGraph's stores as lines of entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("langgraph.store")

from keepstone.integrations.langgraph_items import Found, line_of, ranked, renewed
from keepstone.log.line import entry_of
from keepstone.model import Entry

NOW = datetime(2026, 1, 11, 12, tzinfo=UTC)
SPACE = ("users", "ada")


def put(
    key: str = "k",
    value: Any = None,
    ttl: float | None = None,
    vectors: Any = (),
    old: Entry | None = None,
    now: datetime = NOW,
) -> list[dict[str, Any]]:
    """Return the lines that put a value over an old entry."""
    return list(line_of(key, {"n": 1} if value is None else value, ttl, vectors, {}, now).records(old, now))


def entry(record: dict[str, Any]) -> Entry:
    return entry_of("a", "langgraph/users/ada", record)


def found(*vectors: list[float]) -> Found:
    (record,) = put(vectors=vectors)
    return Found(SPACE, "s", record)


def test_an_item_is_a_line_with_its_value() -> None:
    assert put() == [{"id": "k", "ts": "2026-01-11T12:00:00.000000Z", "type": "item", "data": {"n": 1}}]


def test_an_empty_value_has_a_text_as_entries_need_content() -> None:
    (line,) = put(value={})
    assert (line["data"], line["text"]) == ({}, "{}")


def test_no_value_deletes_the_item_there_is() -> None:
    (old,) = put()
    deletion = line_of("k", None, None, (), {}, NOW)
    assert list(deletion.records(entry(old), NOW)) == [
        {"id": "k", "ts": "2026-01-11T12:00:00.000000Z", "deleted": True}
    ]
    assert list(deletion.records(None, NOW)) == []


def test_an_item_that_expired_is_deleted_before_it_is_put_again() -> None:
    (old,) = put(ttl=1)
    later = NOW + timedelta(minutes=2)
    lines = put(old=entry(old), now=later)
    assert [line.get("deleted") for line in lines] == [True, None]


def test_a_put_without_an_end_takes_the_old_end_away() -> None:
    (old,) = put(ttl=60)
    (line,) = put(old=entry(old))
    assert line["expires"] is None


@pytest.mark.parametrize("value", ["x", [1], 7])
def test_a_value_that_is_no_mapping_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="a value must be a mapping, not"):
        put(value=value)


@pytest.mark.parametrize("vectors", [[[float("nan")]], [[float("inf")]], [1.0, 2.0]])
def test_vectors_that_cannot_be_compared_are_refused(vectors: Any) -> None:
    with pytest.raises(ValueError, match="the embeddings of 'k' are not finite vectors of one dimension"):
        put(vectors=vectors)


def test_a_time_to_live_without_an_end_on_the_calendar_is_refused() -> None:
    with pytest.raises(ValueError, match="ttl is too long: .* minutes; use None for ever"):
        put(ttl=1e12)


def test_a_read_renews_a_life_that_it_lengthens_by_a_hundredth() -> None:
    (record,) = put(ttl=100)
    assert renewed(record, NOW + timedelta(minutes=1)) is None
    later = renewed(record, NOW + timedelta(minutes=1, seconds=1))
    assert later == "2026-01-11T13:41:01.000000Z"


@pytest.mark.parametrize("record", [{}, {"ttl": "soon", "expires": "2026-01-11"}, {"ttl": 5, "expires": "x"}])
def test_an_item_without_a_life_of_its_own_is_not_renewed(record: dict[str, Any]) -> None:
    assert renewed(record, NOW) is None


def test_an_items_times_are_those_of_its_line() -> None:
    (record,) = put(ttl=60)
    item = Found(SPACE, "s", record | {"ts": "2026-01-01T00:00:00Z"}).item()
    assert (item.created_at.day, item.updated_at) == (1, NOW)
    bare = Found(SPACE, "s", {"id": "k", "ts": "2026-01-01T00:00:00Z", "data": {}}).item()
    assert bare.updated_at == bare.created_at


def test_a_change_of_an_item_changes_no_record() -> None:
    record = {"id": "k", "ts": "2026-01-01T00:00:00Z", "data": {"list": [1]}}
    Found(SPACE, "s", record).item().value["list"].append(2)
    assert record["data"] == {"list": [1]}


def test_items_are_ranked_by_the_best_of_their_paths_and_those_without_come_last() -> None:
    far, near, none = found([0, 1], [-1, 0]), found([0, 1], [1, 0.1]), found()
    assert [item for item, _ in ranked([none, far, near], [1, 0])] == [near, far, none]
    assert ranked([none], [1, 0]) == [(none, None)]
    assert ranked([], [1, 0]) == []


def test_a_vector_of_zeros_is_like_nothing() -> None:
    zero = found([0, 0])
    assert ranked([zero], [1, 0]) == [(zero, 0.0)]
    assert ranked([found([1, 0])], [0, 0])[0][1] == 0.0


@given(st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), min_size=1, max_size=6))
def test_scores_are_cosines_in_falling_order(vectors: list[list[float]]) -> None:
    scores = [
        score for _, score in ranked([found(vector) for vector in vectors], [1, 0]) if score is not None
    ]
    assert scores == sorted(scores, reverse=True)
    assert all(-1.000001 <= score <= 1.000001 for score in scores)


@pytest.mark.parametrize(
    "kept",
    [
        None,
        {},
        {"dim": 3, "f32": "AACAPwAAAAA="},
        {"dim": 2, "f32": "?"},
        {"dim": 2, "f32": "AACAPw=="},
        {"dim": 2},
    ],
)
def test_vectors_that_were_edited_by_hand_count_as_none(kept: Any) -> None:
    record = {"id": "k", "ts": "2026-01-01T00:00:00Z", "data": {}, "vectors": kept}
    assert Found(SPACE, "s", record).vectors(2) == b""
