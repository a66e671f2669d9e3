from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.log.where import OPERATORS, conditions_of

PAYLOAD = {
    "city": "Zürich",
    "score": 4,
    "done": True,
    "nothing": None,
    "a.b": "exact",
    "a": {"b": "path", "c": {"d": [1, {"e": True}]}},
}
RECORD = {"id": "1", "ts": "2026-01-01T00:00:00.000000Z", "type": "fact", "data": PAYLOAD, "tags": ["x"]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def matches(where: Any, record: dict[str, Any] | None = None) -> bool:
    return all(one.matches(record or RECORD) for one in conditions_of(where))


@pytest.mark.parametrize(
    "where",
    [
        None,
        {},
        {"city": "Zürich", "score": 4},
        {"a.b": "exact"},
        {"a.c.d": [1, {"e": True}]},
        {"a": {"eq": {"b": "path", "c": {"d": [1, {"e": True}]}}}},
        {"nothing": None},
        {"nothing": {"exists": True}},
        {"gone": {"exists": False}},
        {"gone": {"ne": 1}},
        {"gone": {"not_in": [1]}},
        {"score": {"gt": 3, "lt": 5}},
        {"score": {"gte": 4, "lte": 4.0}},
        {"city": {"gte": "Z", "in": ["Bern", "Zürich"]}},
        {"type": "fact"},
        {"tags": ["x"]},
        {"done": {"ne": 1}},
        {"ts": {"gte": "2026-01-01T01:00:00+01:00", "lt": datetime(2026, 1, 2, tzinfo=UTC)}},
    ],
)
def test_an_entry_matches(where: Any) -> None:
    assert matches(where)


@pytest.mark.parametrize(
    "where",
    [
        {"city": "Zürich", "score": 5},
        {"a.b": "path"},
        {"a.c.d": [1, {"e": 1}]},
        {"done": 1},
        {"nothing": {"exists": False}},
        {"gone": None},
        {"gone": {"exists": True}},
        {"gone": {"lt": 9}},
        {"gone": {"in": [None]}},
        {"score": {"gt": "3"}},
        {"city": {"gt": 3}},
        {"done": {"gte": 0}},
        {"nothing": {"lt": 1}},
        {"city.name": {"exists": True}},
        {"score": {"gt": 3, "lt": 4}},
    ],
)
def test_an_entry_does_not_match(where: Any) -> None:
    assert not matches(where)


@given(json_values, json_values)
def test_eq_and_ne_are_opposites(one: Any, other: Any) -> None:
    record = {"data": {"key": one}}
    assert matches({"key": {"eq": one}}, record)
    assert matches({"key": {"eq": other}}, record) is not matches({"key": {"ne": other}}, record)
    assert matches({"key": {"in": [other]}}, record) is matches({"key": {"eq": other}}, record)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"score": {"above": 3}}, "unknown operator 'above'.*eq, ne"),
        ({"score": {"exists": 1}}, "exists takes true or false"),
        ({"score": {"in": "abc"}}, "in takes a list"),
        ({"score": {"gt": True}}, "gt takes a number or a text"),
        ({"score": {"gt": None}}, "gt takes a number or a text"),
        ({"score": float("nan")}, "JSON"),
        ({f"k{number}": 1 for number in range(101)}, "101 keys; at most 100"),
    ],
)
def test_a_wrong_condition_is_refused_with_the_remedy(where: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        conditions_of(where)


@pytest.mark.parametrize("where", [[("a", 1)], "a=1", {1: 2}, {"": 2}, {"a": object()}])
def test_what_is_no_filter_is_a_type_error(where: Any) -> None:
    with pytest.raises(TypeError):
        conditions_of(where)


def test_every_operator_that_is_named_works() -> None:
    values = {"in": [1], "not_in": [1], "exists": True}
    for operator in OPERATORS:
        matches({"score": {operator: values.get(operator, 1)}})
