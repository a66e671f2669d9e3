"""What readers make of foreign values: times, ids, messages and digests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.importing.item import content_digest, message, named, time_of

MOMENT = "2026-01-11T14:31:00.500000Z"
SECONDS = 1768141860.5


@pytest.mark.parametrize("factor", [1, 1e3, 1e6], ids=["seconds", "milliseconds", "microseconds"])
@pytest.mark.parametrize("form", [float, str], ids=["number", "text"])
def test_the_size_of_a_number_tells_its_unit(factor: float, form: Any) -> None:
    assert time_of(form(SECONDS * factor)) == MOMENT


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-11T14:31:00.5Z",
        " 2026-01-11T14:31:00.5Z ",
        "2026-01-11 14:31:00.5",
        "2026-01-11 14:31:00.5 UTC",
        "2026-01-11 14:31:00.5 Z",
        "2026-01-11 15:31:00.5 +01:00",
        "2026-01-11T09:31:00.5-05:00",
    ],
)
def test_texts_of_one_moment_are_one_time(text: str) -> None:
    assert time_of(text) == MOMENT


def test_a_datetime_without_a_time_zone_is_utc() -> None:
    naive = datetime(2026, 1, 11, 14, 31, 0, 500_000)  # noqa: DTZ001
    assert time_of(naive) == MOMENT
    assert time_of(naive.replace(tzinfo=timezone(timedelta(hours=1)))) == "2026-01-11T13:31:00.500000Z"


@pytest.mark.parametrize(
    "value",
    [None, True, False, "", "yesterday", "2026-13-01", "x +01:00", [], {}, float("inf"), float("nan")],
)
def test_what_is_not_a_time_has_none(value: object) -> None:
    assert time_of(value) is None


@given(st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(5000, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001
def test_a_time_and_its_text_are_read_alike(moment: datetime) -> None:
    written = time_of(moment)
    assert written is not None
    assert time_of(written) == time_of(moment.isoformat()) == written


@given(st.floats() | st.integers() | st.text())
def test_any_number_or_text_is_a_time_or_none(value: object) -> None:
    found = time_of(value)
    assert found is None or time_of(found) == found


@pytest.mark.parametrize(
    ("said", "role"),
    [
        ("human", "user"),
        ("ai", "assistant"),
        ("bot", "assistant"),
        ("model", "assistant"),
        ("tool", "tool"),
        (7, "user"),
    ],
)
def test_the_role_of_another_tool_becomes_ours(said: object, role: str) -> None:
    assert message(said, "Hi") == {"type": "message", "data": {"role": role, "content": "Hi"}}


def test_more_keys_of_a_message_are_kept_unless_they_are_none() -> None:
    assert message("user", "Hi", name="Ada", tool_calls=None)["data"] == {
        "role": "user",
        "content": "Hi",
        "name": "Ada",
    }


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("a", "a"),
        (7, "7"),
        (0, "0"),
        ("", None),
        (None, None),
        (True, None),
        (1.5, None),
        (["a"], None),
    ],
)
def test_texts_and_whole_numbers_are_names(value: object, name: str | None) -> None:
    assert named(value) == name


def test_a_digest_is_that_of_the_content_in_any_order_of_keys() -> None:
    line = {"text": "Tea", "data": {"n": 1, "at": datetime(2026, 1, 1, tzinfo=UTC)}}
    assert content_digest(line) == content_digest(dict(reversed(line.items())))
    assert content_digest(line) != content_digest(line | {"text": "tea"})
    assert len(content_digest(line)) == 32


def test_a_vector_does_not_change_the_digest() -> None:
    assert content_digest({"text": "Tea", "embedding": [1.0]}) == content_digest({"text": "Tea"})
