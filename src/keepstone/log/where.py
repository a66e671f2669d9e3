"""Filters on the values of entries: the meaning of ``where``, wherever it is accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import ge, gt, le, lt
from typing import Any

from keepstone.log.line import ENVELOPE, RESERVED, format_time, payload_of, plain, read_time
from keepstone.model import Record

_MISSING = object()
TIMES = frozenset({"ts", "valid_from", "valid_to", "expires", "modified"})
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"gt": gt, "gte": ge, "lt": lt, "lte": le}
MOST_KEYS = 100
"""Maximum number of keys in a ``where``."""
OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "exists")


@dataclass(frozen=True, slots=True)
class Condition:
    """One comparison with the value at a key, which is a key of the payload or a reserved key."""

    key: str
    operator: str
    value: Any
    """A plain JSON value; a tuple of such values for ``in`` and ``not_in``."""

    def matches(self, record: Record) -> bool:
        """Return whether an entry, in the shape of its log line, meets the condition."""
        found = value_at(record, self.key)
        if self.operator == "exists":
            return (found is not _MISSING) is self.value
        if found is _MISSING:
            return self.operator in ("ne", "not_in")
        if self.operator in ("eq", "ne"):
            return same(found, self.value) is (self.operator == "eq")
        if self.operator in ("in", "not_in"):
            return any(same(found, value) for value in self.value) is (self.operator == "in")
        return self._is_ordered(found)

    def _is_ordered(self, found: Any) -> bool:
        compare, value = _ORDERS[self.operator], self.value
        if self.key in TIMES and isinstance(found, str) and isinstance(value, str):
            moment, bound = read_time(found), read_time(value)
            return moment is not None and bound is not None and compare(moment, bound)
        # True is 1 in Python, but not in JSON.
        if isinstance(found, bool) or isinstance(value, bool):
            return False
        comparable = all(isinstance(operand, int | float) for operand in (found, value)) or all(
            isinstance(operand, str) for operand in (found, value)
        )
        return comparable and compare(found, value)


def conditions_of(where: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """Return the conditions that a ``where`` sets; all of them must be met.

    A key names a value of the payload, exactly or as a dotted path into objects, or a reserved key.
    A plain value means equality; a mapping has operators: ``eq ne gt gte lt lte in not_in exists``.
    A missing key meets only ``ne``, ``not_in`` and ``{"exists": False}``; None is a value like others.
    Values of different kinds are never smaller or larger than each other, and true is not 1.

    Raises:
        TypeError: ``where`` is not a mapping, or a value has no JSON form.
        ValueError: There are more than ``MOST_KEYS`` keys, an operator is unknown, or an operator's value has
            the wrong kind.

    Examples:
        >>> [(found.key, found.operator, found.value) for found in conditions_of({"user.city": "Zürich"})]
        [('user.city', 'eq', 'Zürich')]
        >>> conditions_of({"score": {"gte": 3}})[0].matches({"data": {"score": 4}})
        True
    """
    if where is None:
        return ()
    if not isinstance(where, Mapping):
        raise TypeError(f"where must be a mapping, not {type(where).__name__}: {where!r:.80}")
    if len(where) > MOST_KEYS:
        raise ValueError(f"where has {len(where):,} keys; at most {MOST_KEYS} are allowed")
    return tuple(
        Condition(_key(key), operator, _value(key, operator, value))
        for key, given in where.items()
        for operator, value in (given.items() if isinstance(given, Mapping) and given else (("eq", given),))
    )


def value_at(record: Record, key: str, missing: object = _MISSING) -> Any:
    """Return the value of an entry's key, or ``missing`` if it has none."""
    payload = payload_of(record)
    # A key that contains dots takes precedence over the path that it spells.
    if key in payload:
        return payload[key]
    value: Any = payload
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            return record.get(key, missing) if key in ENVELOPE or key in RESERVED else missing
        value = value[part]
    return value


def same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and isinstance(left, bool) is isinstance(right, bool)


def _key(key: object) -> str:
    if not isinstance(key, str) or not key:
        raise TypeError(f"a key of where must be a string that is not empty, not {key!r:.80}")
    return key


def _value(key: str, operator: object, value: Any) -> Any:
    if operator not in OPERATORS:
        raise ValueError(
            f"where[{key!r:.80}] has the unknown operator {operator!r:.80}; use {', '.join(OPERATORS)}, "
            'or {"eq": …} to compare with an object'
        )
    if operator == "exists" and not isinstance(value, bool):
        raise ValueError(f"where[{key!r:.80}]: exists takes true or false, not {value!r:.80}")
    if operator in ("in", "not_in"):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Sequence | set | frozenset):
            raise ValueError(f"where[{key!r:.80}]: {operator} takes a list of values, not {value!r:.80}")
        return tuple(_plain(item) for item in value)
    if operator in _ORDERS and (
        isinstance(value, bool) or not isinstance(value, int | float | str | datetime)
    ):
        raise ValueError(f"where[{key!r:.80}]: {operator} takes a number or a text, not {value!r:.80}")
    return _plain(value)


def _plain(value: Any) -> Any:
    return format_time(value) if isinstance(value, datetime) else plain(value)
