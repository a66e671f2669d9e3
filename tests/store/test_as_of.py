"""Entries as they were, searched like those of today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import pytest

from keepstone.log.line import read_time
from keepstone.model import Entry, Record, Scope
from keepstone.store.as_of import FindRecords, PastReader
from keepstone.store.reader import ExpiredError
from keepstone.vector import Vector, unit

EAST, NORTH = unit([1, 0]), unit([0, 1])
VECTORS = {"walnut": EAST, "walnut wood": unit([1, 1]), "pecan": NORTH}


def record(entry_id: str, text: str, **keys: object) -> Record:
    return {"id": entry_id, "ts": "2026-01-11T14:31:00.000000Z", "type": "note", "text": text, **keys}


class Today:
    """The vectors that there are today, and which sessions were asked for them."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def find(self, space: str, sessions: Mapping[str, Sequence[Entry]]) -> Mapping[str, Mapping[str, Vector]]:
        self.asked += [(session, space) for session in sessions]
        return {
            session: {entry.id: VECTORS[entry.text] for entry in entries if entry.text in VECTORS}
            for session, entries in sessions.items()
        }


def finding(held: Mapping[str, Sequence[Record]]) -> FindRecords:
    return lambda names: {name: held[name] for name in held if names is None or name in names}


@pytest.fixture
def today() -> Today:
    return Today()


@pytest.fixture
def past(today: Today) -> PastReader:
    sessions = {
        "one": [record("x", "walnut"), record("y", "pecan", type="fact"), record("z", "hazel")],
        "two": [record("x", "walnut wood")],
        "none": [],
    }
    return PastReader("a", finding(sessions), today.find, "en")


def loaded(past: PastReader, keys: Sequence[int]) -> list[tuple[str, str]]:
    entries = past.load(keys)
    return [(entries[key].session, entries[key].text) for key in keys]


def found(
    past: PastReader, terms: Sequence[str], sessions: tuple[str, ...] | None = None
) -> set[tuple[str, str]]:
    return set(loaded(past, [each.key for each in past.search(terms, Scope("a", sessions), 9)]))


def test_entries_of_one_id_are_kept_apart_by_their_sessions(past: PastReader) -> None:
    assert found(past, ["walnut"]) == {("one", "walnut"), ("two", "walnut wood")}
    assert found(past, ["walnut"], sessions=("two", "none")) == {("two", "walnut wood")}


def test_a_search_without_words_or_of_nothing_finds_nothing(past: PastReader, today: Today) -> None:
    assert found(past, []) == found(PastReader("a", finding({}), today.find, "en"), ["walnut"]) == set()
    assert past.neighbours([], 3, Scope("a")) == []


def test_the_nearest_come_first_and_only_those_in_scope(past: PastReader) -> None:
    near = past.similar(EAST, "letters", Scope("a"), 9)
    assert loaded(past, [each.key for each in near]) == [
        ("one", "walnut"),
        ("two", "walnut wood"),
        ("one", "pecan"),
    ]
    facts = past.similar(EAST, "letters", Scope("a", types=("fact",)), 9)
    assert loaded(past, [each.key for each in facts]) == [("one", "pecan")]


def test_vectors_are_asked_for_once_a_space_and_not_before(past: PastReader, today: Today) -> None:
    past.search(["walnut"], Scope("a"), 9)
    assert today.asked == []
    for space in ("letters", "letters", "others"):
        past.similar(EAST, space, Scope("a"), 9, 1)
    assert sorted(today.asked) == sorted(
        (session, space) for session in ("one", "two", "none") for space in ("letters", "others")
    )


def test_cosines_leave_out_what_has_no_vector(past: PastReader) -> None:
    keys = [each.key for each in past.search(["pecan", "hazel"], Scope("a"), 9)]
    past.similar(EAST, "letters", Scope("a"), 1)
    cosines = past.cosines(NORTH, "letters", keys)
    assert [(past.load([key])[key].text, cosine) for key, cosine in cosines.items()] == [("pecan", 1.0)]


def test_neighbours_are_those_of_that_time_and_in_scope(past: PastReader) -> None:
    [key] = [each.key for each in past.search(["hazel"], Scope("a"), 9)]
    distances = {
        loaded(past, [other])[0]: distance for _, other, distance in past.neighbours([key], 2, Scope("a"))
    }
    assert distances == {("one", "pecan"): 1, ("one", "walnut"): 2}
    assert len(past.neighbours([key], 2, Scope("a", types=("fact",)))) == 1


def test_heads_say_how_texts_begin_and_when_they_were_made(past: PastReader) -> None:
    [key] = [each.key for each in past.search(["hazel"], Scope("a"), 9)]
    moment: datetime | None = read_time("2026-01-11T14:31:00Z")
    assert past.heads([key]) == {key: ("hazel", moment)}


def test_a_key_that_stands_for_nothing_is_left_out(past: PastReader) -> None:
    [key, *_] = [each.key for each in past.search(["walnut"], Scope("a"), 9)]
    assert past.load([key + 999]) == {}
    with pytest.raises(ExpiredError):
        past.load([999])


def test_a_session_is_read_when_a_scope_first_names_it() -> None:
    read: list[Sequence[str] | None] = []

    def find(names: Sequence[str] | None) -> Mapping[str, Sequence[Record]]:
        read.append(names)
        return {name: [record("x", "walnut")] for name in names or ("one", "two")}

    past = PastReader("a", find, Today().find, "en")
    assert found(past, ["walnut"], ("one",)) == found(past, ["walnut"], ("one",)) == {("one", "walnut")}
    assert found(past, ["walnut"]) == {("one", "walnut"), ("two", "walnut")}
    assert read == [["one"], None]


def test_pending_are_entries_whose_text_has_no_vector_today(past: PastReader) -> None:
    assert loaded(past, past.pending("letters", Scope("a"))) == [("one", "hazel")]
