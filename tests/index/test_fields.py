"""Values of entries by key: what the index knows of them, and which filters it can decide."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.index.rows import add

from keepstone.index import entries, fields
from keepstone.index.database import Database
from keepstone.index.fields import encoded, is_complete, is_indexed, values_of
from keepstone.index.table_schema import ALWAYS
from keepstone.log.where import Condition, conditions_of
from keepstone.testing.making import record


def matching(database: Database, condition: Condition) -> set[int]:
    """Return the rows that the index lets through, by looking values up and by checking each row."""
    (values,) = values_of(None, [condition])
    sql, bindings = values.rows()
    looked_up = {eid for (eid,) in database.rows(sql, bindings)}
    sql, bindings = values.check()
    sql = f"SELECT e.eid FROM entry e WHERE {sql}"  # noqa: S608  A condition of the module.
    checked = {eid for (eid,) in database.rows(sql, bindings)}
    assert looked_up == checked
    return looked_up


def filled(*found: Any, path: str = "n") -> Database:
    """Return an index of an entry for each value at a path, which is indexed."""
    database = Database(None)
    add(database, "s1", *(record(str(at), "", data={path: value}) for at, value in enumerate(found)))
    while not fields.index_some(database, path, 3):
        pass
    return database


# Values


@pytest.mark.parametrize(
    "value", [1 << 63, -(1 << 63) - 1, "\ud800", [1], {"a": 1}, None, True, False, 1.5, -(1 << 63), "é"]
)
def test_each_value_can_be_kept(value: Any) -> None:
    database = Database(None)
    database.execute("INSERT INTO field VALUES(1, ?, 1)", (encoded(value),))
    assert database.row("SELECT value FROM field") == (encoded(value),)


def test_numbers_sort_below_texts_and_texts_below_all_others() -> None:
    database = Database(None)
    odd: list[Any] = [True, False, None, [], 1 << 63]
    others = {encoded(value) for value in odd}
    values: list[Any] = [*others, encoded("a"), encoded(""), encoded(7), encoded(-1.5)]
    for place, value in enumerate(values):
        database.execute("INSERT INTO field VALUES(1, ?, ?)", (value, place))
    found = [value for (value,) in database.rows("SELECT value FROM field ORDER BY value")]
    assert found[:4] == [-1.5, 7, "", "a"]
    assert set(found[4:]) == others


def test_of_a_long_text_the_beginning_is_kept() -> None:
    assert encoded("x" * 999) == "x" * 200


# Which filters the index can decide


VALUES = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([1 << 53, (1 << 53) + 1, 1 << 63, -(1 << 70), 0.5, 1e300]),
    st.sampled_from(["", "a", "b", "x" * 200, "x" * 300, "é"]),
    st.booleans(),
    st.none(),
    st.sampled_from([[1], {"a": 1}]),
)
BOUNDS_OF = st.integers(-3, 3) | st.sampled_from([1 << 53, 1 << 63, 0.5, "", "a", "x" * 250])
CONDITIONS = st.one_of(
    st.tuples(st.just("eq"), VALUES),
    st.tuples(st.sampled_from(["gt", "gte", "lt", "lte"]), BOUNDS_OF),
    st.tuples(st.just("in"), st.lists(VALUES, max_size=3)),
    st.just(("exists", True)),
)


@given(st.lists(VALUES, max_size=8), CONDITIONS)
def test_no_entry_that_meets_a_condition_is_missed(found: list[Any], condition: tuple[str, Any]) -> None:
    (wanted,) = conditions_of({"n": dict([condition])})
    expected = {eid for eid, value in enumerate(found, 1) if wanted.matches({"data": {"n": value}})}
    assert expected <= matching(filled(*found), wanted)


PLAIN = (1, 2, 3, "a", "b", True, None)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"eq": 2}, {2}),
        ({"in": [1, "a"]}, {1, 4}),
        ({"gte": 2}, {2, 3}),
        ({"gt": "a"}, {4, 5}),
        ({"eq": True}, {6}),
        ({"eq": None}, {7}),
        ({"exists": True}, {1, 2, 3, 4, 5, 6, 7}),
    ],
)
def test_plain_values_are_told_apart_by_the_index_alone(
    condition: dict[str, Any], expected: set[int]
) -> None:
    (wanted,) = conditions_of({"n": condition})
    assert matching(filled(*PLAIN), wanted) == expected


def test_bounds_of_two_kinds_leave_nothing() -> None:
    (values,) = values_of(None, conditions_of({"n": {"gt": 0, "lt": "b"}}))
    assert filled(1, "a").rows(*values.rows()) == []


def test_bounds_of_one_key_are_one_filter() -> None:
    assert len(values_of(None, conditions_of({"n": {"gt": 0, "lt": 9}, "m": {"gt": 0}}))) == 2


@pytest.mark.parametrize(
    ("key", "condition"),
    [("n", {"ne": 1}), ("n", {"not_in": [1]}), ("n", {"exists": False}), ("access", {"gt": 1})],
)
def test_what_many_entries_meet_is_left_to_their_records(key: str, condition: dict[str, Any]) -> None:
    (wanted,) = conditions_of({key: condition})
    assert not is_indexed(wanted)
    assert values_of(None, [wanted]) == []


def test_false_is_a_value_like_others() -> None:
    (wanted,) = conditions_of({"n": False})
    assert matching(filled(False, True, 0), wanted) == {1}  # noqa: FBT003  The value of an entry.


def test_each_tag_is_a_filter_up_to_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MOST_TAGS", 2)
    assert [values.bindings for values in values_of(["a", "b", "c"], ())] == [("a",), ("b",)]


def test_types_and_ids_are_looked_up_in_their_columns() -> None:
    database = Database(None)
    add(database, "s1", record("a", ""), record("b", "", kind="fact"), record("c", ""))
    by_type, by_id = fields.of_column("type", ["note"]), fields.of_column("id", ["b", "none"])
    assert [database.rows(*by_type), database.rows(*by_id)] == [[(1,), (3,)], [(2,)]]


# When values are indexed


@pytest.mark.parametrize("name", ALWAYS)
def test_tags_and_validity_are_indexed_from_the_beginning(name: str) -> None:
    assert is_complete(Database(None), name)


def test_a_path_is_indexed_step_by_step_from_its_first_use() -> None:
    database = Database(None)
    add(database, "s1", *(record(str(at), "", data={"n": at}) for at in range(5)))
    assert [fields.index_some(database, "n", 2) for _ in range(4)] == [False, False, False, True]
    assert is_complete(database, "n")
    assert database.row("SELECT count(*) FROM field") == (5,)


def test_later_entries_are_indexed_by_who_adds_them() -> None:
    database = filled(1, 2)
    add(database, "s1", record("later", "", data={"n": 2}))
    (wanted,) = conditions_of({"n": 2})
    assert matching(database, wanted) == {2, 3}


def test_a_changed_entry_has_only_its_new_values() -> None:
    database = filled(1, 2)
    with database.writing():
        fields.save(database, [(1, record("0", "", data={"n": 9}, tags=["x"]))])
    assert database.rows("SELECT value FROM field WHERE eid=1 ORDER BY value") == [(9,), ("x",)]


def test_a_deleted_entry_has_no_values() -> None:
    database = filled(1, 2)
    with database.writing():
        entries.drop(database, [1])
    assert database.rows("SELECT eid FROM field") == [(2,)]


def test_the_path_that_was_indexed_first_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fields, "MOST_PATHS", 2)
    database = Database(None)
    for name in ("a", "b", "c"):
        while not fields.index_some(database, name, 9):
            pass
    assert [is_complete(database, name) for name in ("a", "b", "c", *ALWAYS)] == [False, *[True] * 6]
