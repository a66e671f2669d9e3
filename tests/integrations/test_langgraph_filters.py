"""The filters of LangGraph's stores, by value and by namespace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("langgraph.store")

from langgraph.store.base import MatchCondition

from keepstone.integrations.langgraph_filters import check_filter, is_selected, passes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def compares(value: Any, operator: str, bound: Any) -> bool:
    return passes({"k": value}, {"k": {operator: bound}})


@given(JSON, JSON)
def test_a_value_is_either_equal_or_not(value: Any, bound: Any) -> None:
    assert compares(value, "$eq", bound) != compares(value, "$ne", bound)


@given(st.integers() | st.floats(allow_nan=False), st.integers() | st.floats(allow_nan=False))
def test_two_numbers_have_an_order(value: float, bound: float) -> None:
    assert compares(value, "$gt", bound) + compares(value, "$lte", bound) == 1
    assert compares(value, "$lt", bound) + compares(value, "$gte", bound) == 1


@given(JSON, JSON)
def test_whatever_is_compared_is_an_answer(value: Any, bound: Any) -> None:
    orders = [compares(value, operator, bound) for operator in ("$gt", "$gte", "$lt", "$lte")]
    assert sum(orders) in (0, 2)


@pytest.mark.parametrize(
    ("value", "bound", "greater"),
    [
        ("10", "9", True),
        ("10", 9, True),
        (10, "9", True),
        ("b", "a", True),
        ("b", 1, False),
        (float("nan"), 1, False),
        ("nan", 1, False),
        (10**400, 1, False),
        ([1], 0, False),
        (None, 0, False),
    ],
)
def test_numbers_in_texts_are_numbers_and_what_has_no_order_passes_nothing(
    value: Any, bound: Any, *, greater: bool
) -> None:
    assert compares(value, "$gt", bound) == compares(value, "$gte", bound) == greater
    assert not compares(value, "$lt", bound)


def test_a_key_that_is_not_there_equals_nothing() -> None:
    assert not passes({}, {"k": None})
    assert not passes({}, {"k": {"$eq": None}})
    assert passes({}, {"k": {"$ne": None}})


def test_a_tuple_in_a_filter_is_a_list() -> None:
    assert passes({"k": [1, 2]}, {"k": (1, 2)})
    assert compares([1, 2], "$eq", (1, 2))


def test_lists_are_equal_only_as_a_whole() -> None:
    assert not passes({"k": [1, 2]}, {"k": [1]})
    assert not passes({"k": "12"}, {"k": ["1", "2"]})


def test_operators_apply_within_lists_and_mappings() -> None:
    assert passes({"k": [{"n": 2}]}, {"k": [{"n": {"$gt": 1}}]})
    assert not passes({"k": [{"n": 0}]}, {"k": [{"n": {"$gt": 1}}]})


@pytest.mark.parametrize("wanted", [{"k": [{"$in": [1]}]}, {"k": {"a": [{"b": {"$x": 1}}]}}, {"k": {"$": 1}}])
def test_an_operator_that_is_not_known_is_refused_at_any_depth(wanted: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"unsupported operator '\$.*' in a filter; use \$eq, \$ne, \$gt"):
        check_filter(wanted)


@pytest.mark.parametrize("wanted", [None, {}, {"$k": 1}, {"k": {"a": {"$gt": 1}}}])
def test_keys_at_the_top_are_keys_and_no_operators(wanted: dict[str, Any] | None) -> None:
    check_filter(wanted)


@pytest.mark.parametrize(
    ("kind", "path", "selected"),
    [
        ("prefix", ("a",), True),
        ("prefix", ("a", "b"), True),
        ("prefix", ("b",), False),
        ("prefix", ("*", "b"), True),
        ("prefix", ("a", "b", "c", "d"), False),
        ("prefix", (), True),
        ("suffix", ("c",), True),
        ("suffix", ("b", "*"), True),
        ("suffix", ("b",), False),
        ("suffix", (), True),
    ],
)
def test_a_namespace_is_selected_by_its_beginning_or_end(kind: Any, path: Any, *, selected: bool) -> None:
    assert is_selected(("a", "b", "c"), (MatchCondition(match_type=kind, path=path),)) == selected


def test_all_conditions_must_be_met_and_none_is_met_by_all() -> None:
    first, last = MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("z",))
    assert is_selected(("a", "b"), (first,))
    assert not is_selected(("a", "b"), (first, last))
    assert is_selected(("a", "b"), ())
    assert is_selected(("a", "b"), None)


def test_another_kind_of_condition_is_refused() -> None:
    with pytest.raises(ValueError, match="match type must be 'prefix' or 'suffix', not 'infix'"):
        is_selected(("a",), (MatchCondition("infix", ("a",)),))  # type: ignore[arg-type]
