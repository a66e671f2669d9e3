"""The grammar of a log line, and the effect of puts and patches.

docs/formats/log.md describes the format. Names and meanings of these keys are on disk and never change.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from keepstone.model import DERIVED, Entry, Record, parsed_time, sources_of
from keepstone.model import read_time as read_time  # noqa: PLC0414  Part of the grammar.
from keepstone.text.bounded import joined
from keepstone.vector import encoded

MAX_LINE = 16 * 1024 * 1024
"""Maximum bytes of a line, newline included; readers skip longer lines."""

ENVELOPE = frozenset({"id", "ts", "type"})
RESERVED = frozenset(
    "deleted priority access pinned tags links aliases summary "
    "valid_from valid_to expires modified embedding batch life origin".split()
)
DEFAULT_TYPE = "event"
_OF_MESSAGES = frozenset(
    "content parts tool_calls data call_id summary encrypted_content action arguments code input output "
    "queries result".split()
)
"""Keys of messages with content blocks and of conversation items, which have at least one of them."""

_HEAD = ENVELOPE | RESERVED
_OF_COUNTS = frozenset({"id", "ts", "access", "batch"})
"""Keys of a line that only counts accesses, which is not a modification."""
_MAX_DEPTH = 200
# Writers check values, which are some levels deeper in their line.
_LONGEST_READ_DEPTH = _MAX_DEPTH + 8
_ROOM = 1024
"""Bytes that writers leave free in a line, for a batch mark and later patches."""
_DIGITS_OF_ANY_DOUBLE = 308
"""An integer of at most 308 digits always fits into a double."""
_BEYOND_DOUBLES = 2**1024 - 2**970
"""The smallest integer that rounds to infinity as a double, the number type of JavaScript."""
_JSON_SPACE = " \t\n\r"
BOM = b"\xef\xbb\xbf"
"""The byte order mark that some editors put before the first line."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits:.80} is out of range")
    return number


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS_OF_ANY_DOUBLE:
        _finite(digits)
    return int(digits)


_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(
    parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer
).raw_decode
_lone_surrogate = re.compile("[\ud800-\udfff]")


def parse(raw: bytes) -> Record | None:
    """Return the JSON object of a line, or None if it is not one.

    Numbers beyond doubles, and nesting deeper than writers allow, are rejected, too.
    """
    if len(raw) > MAX_LINE:
        return None
    try:
        text = raw.removeprefix(BOM).decode().strip(_JSON_SPACE)
        record, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    if end != len(text) or not isinstance(record, dict):
        return None
    # The depth is at most the number of brackets, and hardly any line has enough of them to need the check.
    may_be_deep = raw.count(b"[") + raw.count(b"{") > _LONGEST_READ_DEPTH
    return None if may_be_deep and _is_too_deep(record) else record


def _is_too_deep(record: Record) -> bool:
    level: list[Any] = [record]
    for _ in range(_LONGEST_READ_DEPTH):
        level = [item for value in level for item in _items(value)]
    return any(isinstance(value, dict | list) for value in level)


def _items(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def dump(record: Record) -> bytes:
    """Return the line of a validated record, newline included.

    Raises:
        ValueError: The line could exceed ``MAX_LINE`` after a rewrite, text in it is not valid Unicode, or a
            number has too many digits.
    """
    try:
        raw = (encoded(record, _encode) if "embedding" in record else _encode(record)).encode() + b"\n"
    except UnicodeEncodeError as error:
        lone = error.object[error.start]
        raise ValueError(f"text has the lone surrogate {lone!r}, which cannot be stored: remove it") from None
    if len(raw) > MAX_LINE - _ROOM:
        raise ValueError(f"the entry has {len(raw):,} bytes; the maximum is {MAX_LINE - _ROOM:,}: split it")
    return raw


def check_size(record: Record) -> None:
    """Raise ValueError if the whole entry does not fit into one line."""
    length = len(dump_read(record))
    if length > MAX_LINE:
        raise ValueError(f"the entry would have {length:,} bytes; the maximum is {MAX_LINE:,}: split it")


def dump_read(record: Record) -> bytes:
    """Return the line of a record that was read from a log and is not validated."""
    text = _encode(record)
    try:
        return text.encode() + b"\n"
    # Another program's escape may encode a lone surrogate, which UTF-8 cannot hold: the surrogate stays an
    # escape.
    except UnicodeEncodeError:
        return _lone_surrogate.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode() + b"\n"


def plain(value: Any, depth: int = 0) -> Any:
    """Return a copy of a JSON value with plain dicts and lists.

    Raises:
        TypeError: A value has no JSON form, or a key is not a string.
        ValueError: A number is not finite or beyond 1.8e308, or the nesting is too deep.
    """
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float):
        return _number(value)
    if depth > _MAX_DEPTH:
        raise ValueError(f"values nest deeper than {_MAX_DEPTH} levels: flatten them")
    if isinstance(value, Mapping):
        copied = {}
        for key, item in value.items():
            if not isinstance(key, str):
                raise TypeError(f"keys must be strings, not {type(key).__name__}: {key!r:.80}")
            copied[key] = item if isinstance(item, str) else plain(item, depth + 1)
        return copied
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form: {value!r:.80}")


def _number(value: float) -> float:
    if isinstance(value, int):
        if not -_BEYOND_DOUBLES < value < _BEYOND_DOUBLES:
            raise ValueError("an integer exceeds 1.8e308, which some readers cannot hold: store a string")
    elif not math.isfinite(value):
        raise ValueError(f"{value} has no JSON form: store None or a string instead")
    return value


def payload_of(record: Record) -> Record:
    """Return the payload: ``data`` if that is an object, otherwise every other key."""
    data = record.get("data")
    if isinstance(data, dict):
        return data
    for key, value in record.items():
        if key not in _HEAD and not (key == "text" and isinstance(value, str)):
            return body_of(record)
    return {}


def body_of(record: Record) -> Record:
    """Return an entry's keys other than envelope and reserved keys: its text and payload."""
    return {key: value for key, value in record.items() if key not in _HEAD}


def links_of(record: Record) -> list[Record]:
    """Return an entry's links that name a target, and links to the entries it was derived from."""
    links = record.get("links")
    given = links if isinstance(links, list) else ()
    found = [link for link in given if isinstance(link, dict) and isinstance(link.get("to"), str)]
    if "origin" not in record:
        return found
    linked = {link["to"] for link in found if link.get("rel") == DERIVED}
    return found + [{"to": to, "rel": DERIVED} for to in sources_of(record) if to not in linked]


def type_of(record: Record) -> str | None:
    """Return the type in a line, or None."""
    value = record.get("type")
    return value if isinstance(value, str) and value else None


def id_of(record: Record) -> str | None:
    """Return the id in a line, or None if it has no id in valid Unicode."""
    value = record.get("id")
    return value if isinstance(value, str) and value and is_valid(value) else None


def is_valid(text: str) -> bool:
    """Return whether a text has no lone surrogate, which JSON escapes can produce but files cannot store."""
    return text.isascii() or _lone_surrogate.search(text) is None


def is_put(record: Record) -> bool:
    """Return whether a line is a put: it has a type or a payload; otherwise it is a patch."""
    return type_of(record) is not None or not record.keys() <= _HEAD


def is_tombstone(record: Record) -> bool:
    """Return whether a line is a tombstone."""
    return record.get("deleted") is True


class NewId(str):
    """An id that was made just now, so that no line can have it."""

    __slots__ = ()


def life_of(record: Record) -> int:
    """Return the number of the life of its id that a line begins, 1 if the line states none.

    Examples:
        >>> life_of({"id": "a", "text": "again", "life": 2}), life_of({"id": "a", "text": "first"})
        (2, 1)
    """
    life = record.get("life")
    return life if type(life) is int and life > 1 else 1


def create(record: Record) -> Record:
    """Return the entry that a first line creates; the record itself if nothing changes."""
    kind = record.get("type")
    has_type = isinstance(kind, str) and kind != ""
    if has_type and "batch" not in record and next(iter(record)) in ENVELOPE:
        return record
    entry = {"id": "", "ts": "", "type": ""} | record | {"type": kind if has_type else DEFAULT_TYPE}
    entry.pop("batch", None)
    return entry


def apply(entry: Record, later: Record) -> Record:
    """Return an entry after a put or a patch.

    A put replaces type, payload and origin; a put without an origin is the program's. A patch sets reserved
    keys.
    """
    changed = {key: value for key, value in later.items() if key in RESERVED and key != "batch"}
    # Any later line is a modification at the line's time, unless it states ``modified`` or only counts
    # accesses.
    if "modified" not in changed and not later.keys() <= _OF_COUNTS and read_time(later.get("ts")):
        changed["modified"] = later["ts"]
    kept = entry
    if is_put(later):
        kept = {key: value for key, value in entry.items() if key in _HEAD}
        kept["type"] = type_of(later) or entry["type"]
        # A missing origin becomes None, which is dropped below: a put without an origin is the program's,
        # even if a person wrote the entry before.
        changed |= {"origin": later.get("origin")} | body_of(later)
    merged = kept | changed
    return {key: value for key, value in merged.items() if value is not None or key not in RESERVED}


def head_of(entry: Record) -> Record:
    """Return an entry's envelope and reserved keys."""
    return {key: value for key, value in entry.items() if key in _HEAD}


def text_of(record: Record, payload: Record | None = None) -> str:
    """Return the text of an entry for indexing and display, with its speaker before it."""
    payload = payload_of(record) if payload is None else payload
    if not payload and isinstance(record.get("text"), str):
        return str(record["text"])
    speaker = None
    for key in ("speaker", "name", "role"):
        name = payload.get(key)
        if isinstance(name, str) and name.strip():
            speaker = key
            break
    text = record.get("text")
    if not isinstance(text, str):
        text = payload.get("content")
        if not isinstance(text, str) or "tool_calls" in payload or "parts" in payload:
            text = None if payload.keys().isdisjoint(_OF_MESSAGES) else _message_text(record, payload)
            if text is not None and "call_id" in payload:
                return text  # In a tool call, the name is the tool's and not a speaker's.
    if text is None:
        text = payload.get("content")
    if not isinstance(text, str):
        text = payload.get("text")
    if not isinstance(text, str):
        text = joined(_strings({key: value for key, value in payload.items() if key != speaker}, ""))
    return f"{payload[speaker]}: {text}" if speaker else text


def entry_of(agent: str, session: str, record: Record) -> Entry:
    """Return a record as an entry."""
    if (moment := read_time(record["ts"])) is None:
        raise ValueError(f"{record['ts']!r} is not a time")
    text = text_of(record, payload := payload_of(record))
    return Entry(agent, session, record["id"], moment, record["type"], text, payload, record)


def _message_text(record: Record, payload: Record) -> str | None:
    """Return the text of a message that consists of more than one string, None for any other payload."""
    from keepstone.text.messages.indexed import message_text  # Late, so that importing keepstone stays fast.

    return message_text(payload, None if payload is record.get("data") else record.get("type"))


def _strings(value: Any, label: str) -> Iterator[str]:
    if isinstance(value, str):
        yield f"{label}: {value}" if label else value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item, label)


_DATE_LENGTH = len("2026-01-11")
_ZONE = re.compile(r"[Tt _].*(?:[Zz]|[+-][\d:]+)$", re.ASCII)
"""The zone at the end of a time; the hyphens of a date come before it."""


def instant(value: datetime | str, name: str = "ts") -> datetime:
    """Return a caller's time as an aware datetime in UTC. A date alone means its midnight.

    Raises:
        TypeError: The value is neither a datetime nor a string.
        ValueError: The value is not an RFC 3339 time, or has no time zone.

    Examples:
        >>> instant("2026-01-11T14:31:00+01:00")
        datetime.datetime(2026, 1, 11, 13, 31, tzinfo=datetime.timezone.utc)
    """
    if isinstance(value, str):
        return _from_text(value, name)
    if not isinstance(value, datetime):
        raise TypeError(
            f"{name} must be a datetime or an RFC 3339 string, not {type(value).__name__}: {value!r:.80}"
        )
    if value.tzinfo is None:
        raise ValueError(f"{name} has no time zone: {value!s:.80}; add one, such as Z for UTC")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError(f"{name} is out of range: {value!s:.80}") from None


def _from_text(value: str, name: str) -> datetime:
    try:
        moment = parsed_time(value)
    except (ValueError, OverflowError):
        raise ValueError(
            f"{name} is not an RFC 3339 time: {value!r:.80}; use the form 2026-01-11T14:31:00Z"
        ) from None
    if len(value) != _DATE_LENGTH and not _ZONE.search(value):
        raise ValueError(f"{name} has no time zone: {value:.80}; add one, such as Z for UTC")
    return moment


def format_time(moment: datetime) -> str:
    """Return an aware datetime in the log's format: RFC 3339, UTC, microseconds."""
    # The log writes Z instead of "+00:00", which is cut off.
    return moment.astimezone(UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970 of an aware datetime, as stored in the index."""
    return (moment - EPOCH) // MICROSECOND


def from_microseconds(count: int) -> datetime:
    """Return the instant of a number of microseconds since 1970."""
    return EPOCH + count * MICROSECOND
