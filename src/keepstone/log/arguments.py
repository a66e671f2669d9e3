"""Validation of callers' arguments, and their conversion to log lines.

Each function returns the valid value, or raises TypeError or ValueError with a message that names the value
and the remedy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from uuid_utils import uuid7

from keepstone.log.line import DEFAULT_TYPE, format_time, instant, plain
from keepstone.model import Record
from keepstone.vector import embedding_of

Clock = Callable[[], datetime]
"""Returns the time as an aware datetime. Tests inject their own."""

_LARGEST = sys.float_info.max
_HIGHEST_LIMIT = 2**31
"""Above the entries of any session, and within the integers of any store."""

MOST_NAMES = 10_000
"""Maximum number of values of a filter's list."""

MOST_LINKS = 1_000
"""Maximum number of links of an entry."""

_FOR_THE_LOG = {
    "deleted": "delete the entry instead",
    "batch": "add_many makes batches",
}


def new_id() -> str:
    """Return a new id: a UUIDv7, which sorts by time (RFC 9562)."""
    return str(uuid7())


def system_clock() -> datetime:
    """Return the system's time."""
    return datetime.now(UTC)


def now(clock: Clock) -> str:
    """Return the clock's time in the log's format.

    Raises:
        TypeError, ValueError: The clock does not return an aware datetime.
    """
    return format_time(instant(clock(), "the clock's time"))


def record_of(item: Mapping[str, Any], clock: Clock) -> Record:
    """Return a new entry's record from a mapping with a log line's keys; id and time have defaults."""
    given = dict(_mapping(item, "an item"))
    entry_id, ts, kind = given.pop("id", None), given.pop("ts", None), given.pop("type", None)
    head = {
        "id": new_id() if entry_id is None else entry_id_of(entry_id),
        "ts": now(clock) if ts is None else format_time(instant(ts)),
        "type": DEFAULT_TYPE if kind is None else name_of(kind, "type"),
    }
    rest = {key: value for key, value in _body(given).items() if value is not None or key not in _CHECKS}
    return head | rest


def change_of(keys: Mapping[str, Any]) -> Record:
    """Return the keys of a put or a patch; None removes a reserved key, but not ``data`` or ``text``."""
    if not keys:
        raise ValueError("nothing to update: give keys such as text='…' or pinned=True")
    for key in ("id", "ts"):
        if key in keys:
            raise ValueError(f"{key} of an entry cannot be updated")
    for key in ("data", "text"):
        if key in keys and keys[key] is None:
            raise TypeError(f"{key} must not be None: it would replace the whole payload")
    given = dict(keys)
    kind = {"type": name_of(given.pop("type"), "type")} if "type" in given else {}
    return kind | _body(given)


def _body(given: Mapping[str, Any]) -> Record:
    for key, remedy in _FOR_THE_LOG.items():
        if key in given:
            raise ValueError(f"key {key!r} is reserved for the log: {remedy}")
    return {_instance_of(key, str, "a key"): _value(key, value) for key, value in given.items()}


def _value(key: str, value: Any) -> Any:
    check = _CHECKS.get(key)
    if check is None:
        return plain(value)
    return None if value is None else check(value)


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(value).__name__}: {value!r:.80}")
    return value


def _text(value: Any) -> str:
    return str(_instance_of(value, str, "text"))


def _instance_of(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}: {value!r:.80}")
    return value


def _priority(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"priority must be a number, not {type(value).__name__}: {value!r:.80}")
    if not -_LARGEST <= value <= _LARGEST:  # False for NaN, too.
        raise ValueError(f"priority must be a finite number up to {_LARGEST:.1e}")
    return value


def _access(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"access must be a whole number, not {type(value).__name__}: {value!r:.80}")
    if value < 0:
        raise ValueError(f"access must not be negative: {value}")
    return value


def _tags(value: Any) -> list[str]:
    return list(names_of(value, "tags") or ())


def _links(value: Any) -> list[Any]:
    links = list(plain(_instance_of(value, list, "links")))
    if len(links) > MOST_LINKS:
        raise ValueError(f"links has {len(links):,} values; use at most {MOST_LINKS:,}")
    return links


def _time(value: Any) -> str:
    return format_time(instant(value, "a time"))


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "data": lambda value: plain(_mapping(value, "data")),
    "text": _text,
    "priority": _priority,
    "access": _access,
    "pinned": lambda value: _instance_of(value, bool, "pinned"),
    "tags": _tags,
    "links": _links,
    "summary": lambda value: _instance_of(value, str, "summary"),
    "valid_from": _time,
    "valid_to": _time,
    "expires": _time,
    "embedding": embedding_of,
}


def entry_id_of(value: Any) -> str:
    """Return a valid entry id: a non-empty string of valid Unicode."""
    return name_of(value, "id")


def name_of(value: Any, name: str) -> str:
    """Return a valid name: a non-empty string of valid Unicode."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}: {value!r:.80}")
    if not value:
        raise ValueError(f"{name} must not be empty")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ValueError(f"{name} has a lone surrogate, which cannot be stored: {value!r:.80}") from None
    return value


def names_of(value: Iterable[str] | None, name: str) -> tuple[str, ...] | None:
    """Return several names as a tuple; None, for no filter, stays None."""
    if value is None:
        return None
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list of strings, not {type(value).__name__}: {value!r:.80}")
    found = tuple(islice(value, MOST_NAMES + 1))
    if len(found) > MOST_NAMES:
        raise ValueError(f"{name} has more than {MOST_NAMES:,} values; use fewer")
    for item in found:
        _instance_of(item, str, f"each of {name}")
    return found


def limit_of(value: int | None, name: str = "limit") -> int | None:
    """Return a valid limit: a whole number from 0, or None."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}: {value!r:.80}")
    if value < 0:
        raise ValueError(f"{name} must not be negative: {value}")
    return min(value, _HIGHEST_LIMIT)


def count_of(value: int, name: str) -> int:
    """Return a valid count: a whole number from 0."""
    count = limit_of(value, name)
    if count is None:
        raise TypeError(f"{name} must be a whole number, not None")
    return count


def share_of(value: float, name: str) -> float:
    """Return a finite number from 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}: {value!r:.80}")
    if not 0 <= value <= _LARGEST:  # False for NaN, too.
        raise ValueError(f"{name} must be a finite number from 0, not {value}")
    return float(value)


def query_of(value: str | None) -> str:
    """Return the text of a query; empty for None."""
    return "" if value is None else str(_instance_of(value, str, "query"))


def where_of(value: Mapping[str, Any] | None) -> Record | None:
    """Return the payload values that entries must have."""
    return None if value is None else dict(plain(_mapping(value, "where")))
