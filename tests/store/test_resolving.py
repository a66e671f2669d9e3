"""What records come to beside the entries that are there, before a byte is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.damage import entry, patch

from keepstone.errors import EntryExistsError
from keepstone.log.line import apply, dump, parse
from keepstone.model import Record
from keepstone.store.resolving import (
    Written,
    counted,
    in_batch,
    refuse_other,
    resolve,
    without_old_vector,
)
from keepstone.vector import encode, unit

EMBEDDING = encode("given:2", unit([1, 0]))


class Known:
    """A session that has one entry."""

    met = False

    def get(self, entry_id: str) -> Record | None:
        self.met = self.met or entry_id == "a"
        return entry("a", "walnut") if entry_id == "a" else None

    def last_life(self, entry_id: str) -> int:
        return 1 if entry_id == "gone" else 0


@pytest.fixture
def known() -> Known:
    return Known()


def written(*records: Record) -> list[Written]:
    return [Written(record, dump(record)) for record in records]


def test_only_what_is_new_needs_writing(known: Known) -> None:
    again, new = entry("a", "walnut") | {"ts": "2026-02-02T00:00:00Z"}, entry("b", "pecan")
    results, needed = resolve(written(again, new), known, refuse_other)
    assert results == [entry("a", "walnut"), new]
    assert [one.record for one in needed] == [new]


def test_a_record_meets_those_before_it_in_its_batch(known: Known) -> None:
    results, needed = resolve(written(entry("b", "one"), entry("b", "two")), known, apply)
    assert [record["text"] for record in results] == ["one", "two"]
    assert len(needed) == 2
    assert known.met
    with pytest.raises(EntryExistsError, match="'b' exists with other content"):
        resolve(written(entry("b", "one"), entry("b", "two")), known, refuse_other)


def test_an_entry_that_would_outgrow_a_line_is_refused(known: Known) -> None:
    halves = [
        {"id": "a", "type": "note", "data": {"content": "x" * 9_000_000}},
        patch("a", tags=["x" * 9_000_000]),
    ]
    with pytest.raises(ValueError, match="the entry would have .* split it"):
        resolve(written(*halves), known, apply)


@pytest.mark.parametrize(
    ("there", "later", "named"),
    [
        ({}, {"text": "other"}, False),
        ({"embedding": EMBEDDING}, {"text": "other"}, True),
        ({"embedding": EMBEDDING}, {"text": "x"}, False),
        ({"embedding": EMBEDDING}, {"text": "other", "embedding": EMBEDDING}, False),
        ({"embedding": EMBEDDING}, {"text": "x", "speaker": "Ada"}, True),
    ],
)
def test_a_vector_is_given_up_where_it_would_answer_for_another_text(
    there: Record, later: Record, *, named: bool
) -> None:
    [one] = written({"id": "a", "type": "note", **later})
    new = without_old_vector(entry("a", "x", **there), one)
    assert (new.record == one.record | {"embedding": None}) is named
    assert (new is one) is not named
    assert parse(new.raw) == new.record


# The same again


@pytest.mark.parametrize(
    "changed", [{"access": 9}, {"pinned": True, "tags": ["x"]}, {"embedding": EMBEDDING}]
)
def test_what_patches_changed_since_does_not_make_a_record_another(changed: Record) -> None:
    there = entry("a", "x", **changed)
    assert refuse_other(there, entry("a", "x")) is refuse_other(there, entry("a", "x", **changed)) is there


@pytest.mark.parametrize(
    "other",
    [entry("a", "y"), entry("a", "x", type="fact"), entry("a", "x", pinned=False), entry("a", "x", more=1)],
)
def test_what_a_record_says_otherwise_is_refused(other: Record) -> None:
    with pytest.raises(EntryExistsError, match="update it, or choose another id"):
        refuse_other(entry("a", "x", pinned=True), other)


# Lines


@pytest.mark.parametrize(("access", "total"), [(None, 2), (3, 5), ("many", 2), (1.5, 2)])
def test_a_count_is_added_to_what_is_a_number(access: object, total: int) -> None:
    [line] = counted([entry("a", access=access), entry("b", access=4)], {"a": 2, "none": 7})
    assert parse(line) == {"id": "a", "access": total}


records = st.lists(
    st.builds(entry, st.uuids().map(str), st.text(st.characters(exclude_categories=["Cs"]))),
    min_size=1,
    max_size=6,
)


@given(records)
def test_the_lines_of_a_batch_say_their_place(some: list[Record]) -> None:
    lines = in_batch([dump(record) for record in some])
    places = [{"batch": [place, len(some)]} for place in range(1, len(some) + 1)]
    assert [parse(line) for line in lines] == [
        record | place for record, place in zip(some, places, strict=True)
    ]
