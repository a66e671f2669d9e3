"""The same operations on a KeepstoneStore and on LangGraph's own InMemoryStore give the same answers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("langgraph.store")

from langgraph.store.base import (
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from keepstone.integrations.langgraph import KeepstoneStore

LABELS = st.sampled_from(["a", "ab", "A", "b", "a/b", "%", "%2F", "*", "_", "ü", "a\n", " ", "x" * 150])
NAMESPACES = st.lists(LABELS, min_size=1, max_size=3).map(tuple)
PREFIXES = st.lists(LABELS, max_size=2).map(tuple)
KEYS = st.sampled_from(["k", "K", "../x", "=", "==", "", "a b", "%_*", "ö", "x" * 300, "null"])
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.5, 1.0]) | st.sampled_from(["", "x"])
)
INNER = (
    SCALARS
    | st.lists(SCALARS, max_size=2)
    | st.dictionaries(st.sampled_from(["p", "q"]), SCALARS, max_size=2)
)
FIELDS = st.sampled_from(["n", "s", "$", "a.b", "x' OR 1"])
VALUES = st.dictionaries(FIELDS, INNER, max_size=3)
# The built-in takes a missing key for None, and fails where values have no order: here only keys that every
# value has are compared with None, and only numbers are ordered.
NUMBERED = VALUES.map(lambda value: {**value, "num": len(value)})
EQUALITY = st.dictionaries(FIELDS, INNER.filter(lambda value: value is not None), max_size=2)
ORDERS = st.fixed_dictionaries(
    {}, optional={operator: st.integers(0, 3) for operator in ("$gt", "$gte", "$lt", "$lte", "$eq", "$ne")}
)
FILTERS = (
    st.none() | EQUALITY.filter(lambda wanted: not _has_none(wanted)) | ORDERS.map(lambda one: {"num": one})
)

PUTS = st.tuples(NAMESPACES, KEYS, st.none() | NUMBERED).map(lambda given: PutOp(*given))
GETS = st.tuples(NAMESPACES, KEYS).map(lambda given: GetOp(*given))
SEARCHES = st.tuples(PREFIXES, FILTERS, st.just(1000)).map(lambda given: SearchOp(*given))
PATHS = st.lists(LABELS | st.just("*"), min_size=1, max_size=2).map(tuple)
CONDITIONS = st.lists(st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2)
LISTS = st.builds(
    ListNamespacesOp,
    CONDITIONS.map(tuple),
    st.none() | st.integers(1, 3),
    st.integers(0, 5),
    st.integers(0, 3),
)
BATCHES = st.lists(st.lists(PUTS | GETS | SEARCHES | LISTS, max_size=5), max_size=8)


def _has_none(wanted: Any) -> bool:
    """Return whether a filter compares a nested key with None, which the built-in takes for missing."""
    if isinstance(wanted, dict):
        return any(value is None or _has_none(value) for value in wanted.values())
    return False


def answer(op: Op, result: Any) -> Any:
    """What two stores must agree on; the order between the namespaces of a search differs."""
    if isinstance(op, SearchOp):
        return sorted(repr((item.namespace, item.key, item.value)) for item in result)
    if isinstance(op, GetOp) and result is not None:
        return result.namespace, result.key, result.value
    return result


def run_built_in(store: InMemoryStore, ops: list[Op]) -> list[Any]:
    """Run a batch; the built-in would list namespaces that were only read, or that have become empty."""
    results = dict[int, Any]()
    for place in sorted(range(len(ops)), key=lambda place: isinstance(ops[place], PutOp)):
        (results[place],) = store.batch([ops[place]])
        for space in [space for space, items in store._data.items() if not items]:  # noqa: SLF001
            del store._data[space]  # noqa: SLF001
    return [results[place] for place in range(len(ops))]


@given(BATCHES)
def test_the_same_operations_have_the_same_answers(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[Op]]
) -> None:
    ours, built_in = KeepstoneStore(tmp_path_factory.mktemp("home")), InMemoryStore()
    for ops in batches:
        wanted = [answer(op, result) for op, result in zip(ops, run_built_in(built_in, ops), strict=True)]
        assert [answer(op, result) for op, result in zip(ops, ours.batch(ops), strict=True)] == wanted


@given(st.lists(st.tuples(KEYS, st.none() | NUMBERED), max_size=12))
def test_items_of_one_namespace_come_in_the_same_order(
    tmp_path_factory: pytest.TempPathFactory, puts: list[tuple[str, dict[str, Any] | None]]
) -> None:
    ours, built_in = KeepstoneStore(tmp_path_factory.mktemp("home")), InMemoryStore()
    for key, value in puts:
        for store in (ours, built_in):
            store.batch([PutOp(("a",), key, value)])
    assert [item.key for item in ours.search(("a",), limit=99)] == [
        item.key for item in built_in.search(("a",), limit=99)
    ]
