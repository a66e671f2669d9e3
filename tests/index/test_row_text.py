"""The record of a row, and the text that is made of it for searching."""

from __future__ import annotations

import json
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.index import row_text
from keepstone.index.row_text import (
    WaitingTexts,
    digest_of,
    record_in,
    rest_of,
    storable,
    text_in,
    with_vector,
)
from keepstone.log.line import format_time, from_microseconds, microseconds, read_time
from keepstone.model import Record
from keepstone.vector import encode, unit

TS = "2026-01-11T14:31:00.000000Z"
PLAIN: Record = {"id": "a", "ts": TS, "type": "note", "text": "walnut", "tags": ["x"]}


def micros(record: Record) -> int:
    moment = read_time(record["ts"])
    assert moment is not None
    return microseconds(moment)


def kept(record: Record) -> Record:
    """Return a record as it comes back from its row."""
    return record_in(record["id"], micros(record), record["type"], rest_of(record, micros(record)))


def test_a_row_keeps_only_what_has_no_column() -> None:
    assert json.loads(rest_of(PLAIN, micros(PLAIN))) == {"text": "walnut", "tags": ["x"]}


@pytest.mark.parametrize(
    "record",
    [
        {"type": "note", "id": "a", "ts": TS, "text": "other order"},
        {**PLAIN, "ts": "2026-01-11T15:31:00+01:00"},
        {**PLAIN, "ts": "2026-01-11T14:31:00Z"},
        {**PLAIN, "type": "lone \ud800"},
    ],
)
def test_a_record_that_columns_cannot_give_back_is_kept_whole(record: Record) -> None:
    assert json.loads(rest_of(record, micros(record))) == record


@given(
    st.integers(-(10**15), 4 * 10**15),
    st.text(min_size=1),
    st.dictionaries(st.text(), st.none() | st.booleans() | st.integers() | st.text(), max_size=4),
    st.booleans(),
)
def test_a_record_comes_back_from_its_row_as_it_was(
    ts: int,
    kind: str,
    more: dict[str, Any],
    is_turned: bool,  # noqa: FBT001
) -> None:
    head = {"id": "a", "ts": format_time(from_microseconds(ts)), "type": kind}
    record = {**more, **head} if is_turned else {**head, **{k: v for k, v in more.items() if k not in head}}
    assert list(kept(record).items()) == list(record.items())


@pytest.mark.parametrize("rest", ["", "[]", "{", "7", None, b"\xff"])
def test_a_row_of_a_damaged_file_is_named_as_damage(rest: Any) -> None:
    with pytest.raises(apsw.CorruptError, match="a row holds no record"):
        record_in("a", 0, "note", rest)


def test_a_time_beyond_all_years_is_damage() -> None:
    with pytest.raises(apsw.CorruptError):
        record_in("a", 1 << 62, "note", "{}")


def test_a_vector_that_lies_in_its_table_comes_back_into_the_record() -> None:
    vector = unit([3, 4])
    embedding = encode("letters", vector)
    rest = rest_of(PLAIN, micros(PLAIN))
    record = record_in("a", micros(PLAIN), "note", rest, "letters", vector.tobytes())
    assert record == PLAIN | {"embedding": embedding}
    assert json.loads(with_vector(rest, "letters", vector.tobytes()))["embedding"] == embedding


# The searched text


def test_the_searched_text_has_aliases_and_the_pieces_of_unspaced_words() -> None:
    assert text_in({**PLAIN, "aliases": ["nut"]}) == "walnut\nnut"
    assert text_in({**PLAIN, "text": "東京"}).split() == ["東京", "京"]


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_a_text_without_words_has_no_digest(text: str) -> None:
    assert digest_of(text) is None


def test_digests_tell_texts_apart_and_fit_a_column() -> None:
    digests = {digest_of(str(number)) for number in range(100)}
    assert len(digests) == 100
    assert all(digest is not None and -(1 << 63) <= digest < 1 << 63 for digest in digests)


@given(st.text(st.characters(codec=None)))
def test_any_text_can_be_stored_and_a_valid_one_stays(text: str) -> None:
    stored = storable(text)
    stored.encode()
    assert stored == text or any("\ud800" <= character <= "\udfff" for character in text)


# Texts that wait until their words are entered


def rest(text: str) -> str:
    return json.dumps({"text": text})


def test_a_waiting_text_is_taken_once_and_made_again_later() -> None:
    waiting = WaitingTexts()
    waiting.keep(7, "as it was kept")
    assert waiting.take(7, "note", rest("made")) == "as it was kept"
    assert waiting.take(7, "note", rest("made")) == "made"


def test_a_row_without_words_has_no_waiting_text() -> None:
    waiting = WaitingTexts()
    waiting.keep(None, "")
    assert (dict(waiting), waiting.take(None, "note", rest(""))) == ({}, "")


def test_no_more_texts_wait_than_fit_until_some_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_text, "_MOST", 5)
    waiting = WaitingTexts()
    for digest in (1, 1, 2, 3):
        waiting.keep(digest, "1234")
    assert list(waiting) == [1, 2]
    waiting.take(1, "note", rest("x"))
    waiting.keep(3, "1234")
    assert list(waiting) == [2, 3]
