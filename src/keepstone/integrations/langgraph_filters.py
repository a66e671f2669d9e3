"""The filters of LangGraph stores: for values by top-level key, and for namespaces by prefix and suffix."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from keepstone.importing.langgraph_names import Namespace
from keepstone.integrations.homes import needs

with needs("langgraph"):
    from langgraph.store.base import MatchCondition

_MISSING = object()
_EQUALITIES = ("$eq", "$ne")
_ORDERS = ("$gt", "$gte", "$lt", "$lte")


def check_filter(wanted: Mapping[str, Any] | None) -> None:
    """Raise ValueError for an unknown operator at any depth."""
    for value in (wanted or {}).values():
        _check_operators(value)


def _check_operators(wanted: Any) -> None:
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            for operator in wanted:
                if operator not in (*_EQUALITIES, *_ORDERS):
                    known = ", ".join((*_EQUALITIES, *_ORDERS))
                    raise ValueError(f"unsupported operator {operator!r:.80} in a filter; use {known}")
        else:
            for value in wanted.values():
                _check_operators(value)
    elif isinstance(wanted, list | tuple):
        for value in wanted:
            _check_operators(value)


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Return whether an item's value passes a filter that ``check_filter`` accepts."""
    return all(_matches(value.get(key, _MISSING), part) for key, part in (wanted or {}).items())


def _has_operators(wanted: Mapping[Any, Any]) -> bool:
    return any(isinstance(key, str) and key.startswith("$") for key in wanted)


def _matches(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if _has_operators(wanted):
            return all(_compares(value, operator, bound) for operator, bound in wanted.items())
        if not isinstance(value, dict):
            return False
        return all(_matches(value.get(key, _MISSING), part) for key, part in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_matches, value, wanted))
    return bool(value == wanted)


def _compares(value: Any, operator: str, bound: Any) -> bool:
    if operator in _EQUALITIES:
        same = value is not _MISSING and value == (list(bound) if isinstance(bound, tuple) else bound)
        return same == (operator == "$eq")
    sign = _sign(value, bound)
    if sign is None:
        return False
    return {"$gt": sign > 0, "$gte": sign >= 0, "$lt": sign < 0, "$lte": sign <= 0}[operator]


def _sign(value: Any, bound: Any) -> int | None:
    """Compare two values as numbers, also in strings, else as strings; None if they cannot be ordered."""
    # JSON integers are unbounded, and large ones overflow a float.
    try:
        # LangGraph's own stores compare with float(), too, so that "10" is greater than "9".
        numbers = float(value), float(bound)
    except (TypeError, ValueError, OverflowError):
        if isinstance(value, str) and isinstance(bound, str):
            return (value > bound) - (value < bound)
        return None
    if any(map(math.isnan, numbers)):
        return None
    return (numbers[0] > numbers[1]) - (numbers[0] < numbers[1])


def is_selected(namespace: Namespace, conditions: tuple[MatchCondition, ...] | None) -> bool:
    """Return whether a namespace meets all conditions; ``"*"`` stands for any one label."""
    return all(_meets(namespace, condition) for condition in conditions or ())


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"match type must be 'prefix' or 'suffix', not {condition.match_type!r:.80}")
    path = tuple(condition.path)
    if len(path) > len(namespace):
        return False
    labels = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for label, wanted in zip(labels, path, strict=True))
