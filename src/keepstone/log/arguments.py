"""Validation of callers' arguments, and their conversion to log lines.

Each function returns the valid value, or raises TypeError or ValueError with a message that names the value
and the remedy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import islice
from typing import Any, Literal, TypedDict

from uuid_utils import uuid7

from keepstone.log.line import DEFAULT_TYPE, NewId, format_time, instant, plain
from keepstone.log.merging import check_content
from keepstone.log.time_words import moment_of
from keepstone.log.where import conditions_of
from keepstone.model import Record, Scope, origin_of
from keepstone.vector import EmbeddingLike, embedding_of, embeddings_of

Clock = Callable[[], datetime]
"""Returns the time as an aware datetime. Tests inject their own."""

_LARGEST = sys.float_info.max
_HIGHEST_COUNT = 2**53  # Above every count, and within the integers of any store.

MOST_NAMES = 10_000
"""Maximum number of values of a filter's list."""

MOST_LINKS = 1_000
"""Maximum number of links of an entry."""

ADD_KEYS = ("id", "ts", "type", "text", "data")
"""Keys that ``add`` takes besides the reserved keys."""
_OF_BODY = ("text", "data", "data_merge")
_FOR_THE_LOG = {
    "deleted": "delete the entry instead",
    "batch": "add_many makes batches",
    "life": "it numbers the lives of an id; put such a key into data",
}


def new_id() -> str:
    """Return a new id: a UUIDv7, which sorts by time (RFC 9562)."""
    return NewId(uuid7())


def system_clock() -> datetime:
    """Return the system's time."""
    return datetime.now(UTC)


def now(clock: Clock) -> str:
    """Return the clock's time in the log's format.

    Raises:
        TypeError, ValueError: The clock does not return an aware datetime.
    """
    return format_time(instant(clock(), "the clock's time"))


def text_and_data(given: Mapping[str, Any] | str | None, text: str | None) -> tuple[Any, Any]:
    """Return the text and the payload of a call; a string in place of the payload is the text.

    Examples:
        >>> text_and_data("Ada likes tea", None)
        ('Ada likes tea', None)

    Raises:
        TypeError: The text is given twice.
        ValueError: The string is empty.
    """
    if not isinstance(given, str):
        return text, given
    if text is not None:
        raise TypeError(
            f"the text is given twice, as {given!r:.80} and as text={text!r:.80}: give one of them"
        )
    if not given:
        raise ValueError("the text must not be empty: give a text, or a payload as a mapping")
    return given, None


def item_of(given: Mapping[str, Any] | str) -> Mapping[str, Any]:
    """Return the item that a call is given; a string is its text."""
    if isinstance(given, str):
        return {"text": text_and_data(given, None)[0]}
    return _mapping(given, "an item")


def record_of(item: Mapping[str, Any], clock: Clock) -> Record:
    """Return a new entry's record from a mapping with a log line's keys; id and time have defaults."""
    given = dict(_mapping(item, "an item"))
    entry_id, ts, kind = given.pop("id", None), given.pop("ts", None), given.pop("type", None)
    if type(given.get("life")) is int:
        del given["life"]  # It is from a line that was read; the session decides which life begins.
    head = {
        "id": new_id() if entry_id is None else str(entry_id_of(entry_id)),
        "ts": now(clock) if ts is None else format_time(instant(ts)),
        "type": DEFAULT_TYPE if kind is None else name_of(kind, "type"),
    }
    return head | _body(given, clock, keep_none=False)


def new_record_of(item: Mapping[str, Any], clock: Clock) -> Record:
    """Return the record of an entry to add, which needs a type, and a text or a payload."""
    record = record_of(item, clock)
    if item.get("type") is None:
        raise ValueError(f"an item has no type: {dict(item)!r:.80}; add one, such as 'note'")
    check_content(record)
    return record


def new_records_of(items: Iterable[Any], clock: Clock) -> list[Record]:
    """Return the records of entries to add; all vectors are scaled to unit length together."""
    given = list(items)
    vectors = [item.get("embedding") for item in given if isinstance(item, Mapping)]
    made = embeddings_of(vectors) if len(vectors) == len(given) else None
    if made is not None:
        given = [{**item, "embedding": vector} for item, vector in zip(given, made, strict=True)]
    return [new_record_of(item, clock) for item in given]


def check_keys(keys: Iterable[str], known: Iterable[str]) -> None:
    """Raise TypeError for an unknown key, and name the nearest known one."""
    names = sorted({*known, *_CHECKS, *_TIMES})
    for key in keys:
        if key not in names and key not in _FOR_THE_LOG:
            nearest = get_close_matches(key, names, 1)
            remedy = f"did you mean {nearest[0]!r}? " if nearest else ""
            raise TypeError(f"unknown key {key!r:.80}: {remedy}A payload goes into data={{…}}")


def change_of(keys: Mapping[str, Any], clock: Clock) -> Record:
    """Return the checked keys of an update; None for ``type``, ``text`` or ``data`` means unchanged.

    Raises:
        TypeError: A key is unknown, or a value has the wrong type.
        ValueError: There is no key, or a value cannot be stored.
    """
    if not keys:
        raise ValueError("nothing to update: give keys such as text='…' or pinned=True")
    for key in _OF_NEW & keys.keys():
        raise ValueError(f"{key} of an entry cannot be updated; a person confirms an entry with vouch(id)")
    check_keys(keys, (*_OF_BODY, "type"))
    given = {key: value for key, value in keys.items() if value is not None or key not in (*_OF_BODY, "type")}
    if "data" in given and "data_merge" in given:
        raise ValueError("data replaces the payload and data_merge changes single keys: give one of them")
    kind = {"type": name_of(given.pop("type"), "type")} if "type" in given else {}
    return kind | _body(given, clock, keep_none=True)


def _body(given: Mapping[str, Any], clock: Clock, *, keep_none: bool) -> Record:
    """Return checked keys; without ``keep_none``, reserved keys that are None are left out."""
    for key, remedy in _FOR_THE_LOG.items():
        if key in given:
            raise ValueError(f"key {key!r} is reserved for the log: {remedy}")
    body: Record = {}
    for key, value in given.items():
        if not isinstance(key, str):
            raise TypeError(f"a key must be str, not {type(key).__name__}: {key!r:.80}")
        if value is not None and key in _TIMES:
            moment = instant(clock(), "the clock's time")
            body[key] = format_time(moment_of(value, moment, key, _TIMES[key]))
        elif value is not None:
            body[key] = _CHECKS.get(key, plain)(value) if key != "data_merge" else _data(value, key)
        # None in a payload is a value. A reserved key that is None is left out of a new entry; in an update
        # it stays in the line, where it removes the key.
        elif keep_none or (key not in _CHECKS and key not in _TIMES):
            body[key] = None
    return body


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a mapping, not {type(value).__name__}: {value!r:.80}")
    return value


def _data(value: Any, name: str = "data") -> Any:
    return plain(_mapping(value, name))


def _text(value: Any) -> str:
    return str(_instance_of(value, str, "text"))


def _instance_of(value: Any, kind: type, name: str) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}: {value!r:.80}")
    return value


def _names(value: Any, name: str) -> list[str]:
    return list(names_of(value, name) or ())


def _links(value: Any) -> list[Any]:
    links = list(plain(_instance_of(value, list, "links")))
    if len(links) > MOST_LINKS:
        raise ValueError(f"links has {len(links):,} values; use at most {MOST_LINKS:,}")
    return links


def _priority(value: Any) -> float:
    priority = number_of(value, "priority")
    if not 0 <= priority <= 1:
        raise ValueError(f"priority must be from 0 to 1, not {value}")
    return priority


_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "data": _data,
    "text": _text,
    "priority": _priority,
    "access": lambda value: count_of(value, "access"),
    "pinned": lambda value: _instance_of(value, bool, "pinned"),
    "tags": lambda value: _names(value, "tags"),
    "aliases": lambda value: _names(value, "aliases"),
    "links": _links,
    "summary": lambda value: _instance_of(value, str, "summary"),
    "modified": lambda value: format_time(instant(value, "modified")),
    "embedding": embedding_of,
    "origin": origin_of,
    "derived_from": lambda value: _names(value, "derived_from"),
    "cites": lambda value: _names(value, "cites"),
}
_OF_NEW = frozenset({"id", "ts", "origin", "derived_from", "cites"})
_TIMES: Mapping[str, Literal["future", "none"]] = {
    "valid_from": "none",
    "valid_to": "future",
    "expires": "future",
}
"""Keys that limit an entry's validity, and the meaning of a span such as ``7d`` in each of them."""


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
        # Only a text that is not ASCII can hold surrogates, and encoding it is the fastest check.
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
    # Reading one value more than allowed is enough to refuse: an iterator may be endless.
    if len(found) > MOST_NAMES:
        raise ValueError(f"{name} has more than {MOST_NAMES:,} values; use fewer")
    for item in found:
        _instance_of(item, str, f"each of {name}")
    return found


def limit_of(value: int | None, name: str = "limit") -> int | None:
    """Return a valid limit: a whole number from 0, or None."""
    return None if value is None else count_of(value, name)


def count_of(value: int, name: str, least: int = 0) -> int:
    """Return a valid count: a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}: {value!r:.80}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}, not {value}")
    return min(value, _HIGHEST_COUNT)


def number_of(value: float, name: str, least: float = -_LARGEST, most: float = _LARGEST) -> float:
    """Return a finite number of at least ``least`` and at most ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {type(value).__name__}: {value!r:.80}")
    if not least <= value <= most:  # False for NaN, too.
        remedy = "" if least == -_LARGEST else f", at least {least:g}"
        remedy += "" if most == _LARGEST else f" and at most {most:g}"
        raise ValueError(f"{name} must be a finite number{remedy}, not {value}")
    return value


def query_of(value: str | None) -> str:
    """Return the text of a query; empty for None."""
    return "" if value is None else str(_instance_of(value, str, "query"))


class Reserved(TypedDict, total=False):
    """Reserved keys of an entry that every call takes by name; None leaves a key out, or removes it."""

    priority: float | None
    """Importance of the entry, from 0 to 1."""
    access: int | None
    """Number of times that the entry was returned."""
    pinned: bool | None
    """Whether the entry is in every context."""
    tags: Iterable[str] | None
    aliases: Iterable[str] | None
    """Other names of the entry's subject, found like words of its text."""
    links: Sequence[Mapping[str, Any]] | None
    """Links to other entries: ``{"to": id, "rel": relation}``."""
    valid_from: datetime | str | None
    """The time from which the entry is valid."""
    valid_to: datetime | str | None
    """The time until which the entry is valid; ``7d`` is seven days from now."""
    expires: datetime | str | None
    """The time at which the entry expires; ``7d`` is seven days from now."""
    modified: datetime | str | None


class ChangedKeys(Reserved, total=False):
    """Reserved keys that an update takes by name."""

    summary: str | None
    embedding: EmbeddingLike | None


class AddedKeys(Reserved, total=False):
    """Keys that ``Session.add`` takes by name."""

    origin: str | Mapping[str, Any] | None
    """The origin of the entry, such as ``"tool"``, or a mapping with ``by``, ``via`` and ``from``."""
    derived_from: Iterable[str] | None
    """The ids of the entries that the entry was derived from."""
    cites: Iterable[str] | None
    """Files of the project that the entry is about, with lines, such as ``"src/auth.py#L10-L22"``."""


class NewKeys(AddedKeys, ChangedKeys, total=False):
    """Keys that ``Agent.add`` takes by name."""

    id: str | None
    ts: datetime | str | None


class UpdateKeys(ChangedKeys, total=False):
    """Keys that ``Agent.update`` takes by name."""

    text: str | None
    data_merge: Mapping[str, Any] | None
    type: str | None


class Filters(TypedDict, total=False):
    """Filters of a list of entries; an entry has to pass all that are given."""

    types: Iterable[str] | None
    """Entries of these types."""
    tags: Iterable[str] | None
    """Entries that carry all of these tags."""
    where: Mapping[str, Any] | None
    """Entries with these values, as for ``Agent.recall``."""
    since: datetime | str | None
    """Entries made at this time or later: an aware datetime, RFC 3339, a date, ``7d`` or ``"last week"``."""
    until: datetime | str | None
    """Entries made before this time."""
    ids: Iterable[str] | None
    """Entries with these ids."""
    include_superseded: bool
    """Whether to include entries that are not valid now: superseded, expired and future ones."""
    trust: str | None
    """Entries of at least this trust."""


def scope_of(
    agent: str,
    now: datetime,
    *,
    sessions: Iterable[str] | None = None,
    types: Iterable[str] | None = None,
    tags: Iterable[str] | None = None,
    where: Mapping[str, Any] | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    ids: Iterable[str] | None = None,
    include_superseded: bool = False,
) -> Scope:
    """Return the scope that filters describe; raise TypeError or ValueError for invalid ones."""
    return Scope(
        agent,
        names_of(sessions, "sessions"),
        names_of(types, "types"),
        names_of(tags, "tags") or None,
        () if where is None else conditions_of(where),
        None if since is None else moment_of(since, now, "since"),
        None if until is None else moment_of(until, now, "until"),
        names_of(ids, "ids"),
        None if include_superseded else now,
    )
