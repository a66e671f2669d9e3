"""The row of an entry, derived from its record alone.

PostgreSQL does not allow NUL, so stored texts have U+0001 twice in its place. This keeps the order of code
points.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from keepstone.log.line import (
    ENVELOPE,
    RESERVED,
    create,
    dump_read,
    links_of,
    parse,
)
from keepstone.log.searched_text import searched_text
from keepstone.log.where import TIMES
from keepstone.model import Comparison, Entry, Record
from keepstone.text.tokenizer import is_unspaced, pairs, stem, stems_of

_HEAD = 64
"""Maximum number of characters of a head: enough for a speaker's name."""
_LONGEST_INDEXED = 1_000_000
"""Maximum number of characters of a text whose words are indexed."""
_MOST_FACTS = 500
_DEEPEST = 8
_UNKNOWN = frozenset({"access", "embedding"})
"""Keys that facts leave out; conditions on these keys are checked on the entry."""
_KNOWN = (ENVELOPE | RESERVED) - _UNKNOWN
_ESCAPED = str.maketrans({'"': '\\"', "\\": "\\\\"})


def stored(text: str) -> str:
    """Return a text as it is stored in a column.

    Examples:
        >>> shown(stored("a" + chr(0) + chr(1))) == "a" + chr(0) + chr(1)
        True
    """
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()  # Other programs may write lone surrogates.
    if "\1" in text or "\0" in text:
        # In this order, as replacing NUL adds further U+0001.
        return text.replace("\1", "\1\2").replace("\0", "\1\1")
    return text


def shown(text: str) -> str:
    """Return the original text of a stored text."""
    return text.replace("\1\1", "\0").replace("\1\2", "\1") if "\1" in text else text


def digest(*parts: str) -> int:
    """Return a signed 64-bit hash of some texts."""
    raw = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), signed=True)


class Columns(NamedTuple):
    """The columns of an entry that derive from its record; arrays are PostgreSQL literals."""

    ts: datetime
    type: str
    pinned: bool
    tags: str
    targets: str
    facts: str
    head: str
    sum: int | None
    length: int
    terms: str
    times: str


def columns_of(entry: Entry, language: str) -> Columns:
    """Return the columns of an entry."""
    record, text, tags, links = entry.line, entry.text, entry.line.get("tags"), links_of(entry.line)
    searched = searched_text(text, record)[:_LONGEST_INDEXED]
    found = stems_of(searched, language)
    times = Counter(found)
    if not searched.isascii():
        for token, count in [item for item in times.items() if is_unspaced(item[0])]:
            times[f"{token[0]}*"] += count  # One character alone finds every pair that begins with it.
    return Columns(
        entry.ts,
        stored(entry.type),
        record.get("pinned") is True,
        _names(tag for tag in tags if isinstance(tag, str)) if isinstance(tags, list) else "{}",
        _names(sorted({link["to"] for link in links})) if links else "{}",
        _array(facts_of(entry)),
        stored(text[:_HEAD]),
        digest(text) if text else None,
        len(found),
        f"{{{','.join([_term(entry.agent, token) for token in times])}}}",
        _array(times.values()),
    )


def _names(texts: Iterable[str]) -> str:
    """Return names as a PostgreSQL array literal."""
    quoted = (f'"{stored(text).translate(_ESCAPED)}"' for text in texts)
    return f"{{{','.join(quoted)}}}"


def _array(numbers: Iterable[int]) -> str:
    """Return numbers as a PostgreSQL array literal, which costs less than adapting each number."""
    return f"{{{repr([*numbers])[1:-1]}}}"


@lru_cache(maxsize=50_000)
def _term(agent: str, token: str) -> str:
    return str(digest(agent, token))


@lru_cache(maxsize=10_000)
def _key(agent: str, path: str) -> int:
    return digest(agent, path)


def tokens_of(agent: str, term: str, language: str) -> list[int]:
    """Return the terms of a query's word; an entry holds the word if it has all of them."""
    if is_unspaced(term):
        tokens = [f"{term}*"] if len(term) == 1 else [stem(pair, language) for pair in pairs(term)[:-1]]
    else:
        tokens = stem(term, language).split()
    return [digest(agent, token) for token in tokens]


# Values, for filters


def facts_of(entry: Entry) -> set[int]:
    """Return the digests of an entry's keys, and of their values except times."""
    agent, record, found = entry.agent, entry.line, set[int]()
    level = [*entry.data.items(), *[(key, record[key]) for key in record.keys() & _KNOWN]]
    for _ in range(_DEEPEST):
        deeper: list[tuple[str, Any]] = []
        for path, value in level:
            found.add(_key(agent, path))
            if isinstance(value, dict):
                deeper += [(f"{path}.{key}", item) for key, item in value.items()]
            elif path not in TIMES and not isinstance(value, list):
                found.add(digest(agent, path, _said(value)))
        if len(found) + len(deeper) > _MOST_FACTS:
            break
        level = deeper
    # Values left over are too many or too deep: the digest of the empty key marks such an entry.
    return {digest(agent, "")} if level else found


def _said(value: Any) -> str:
    if isinstance(value, str):
        return f"text {value}"
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        try:
            # Adding 0.0 turns -0.0 into 0.0, as both are equal in Python.
            return f"number {float(value) + 0.0!r}"
        except OverflowError:
            return "number"
    return f"text {value}"


def facts_of_keys(agent: str, keys: Iterable[str]) -> list[int]:
    """Return digests of which an entry with one of the keys has at least one."""
    return [digest(agent, key) for key in (*keys, "")]


def facts_wanted(agent: str, conditions: Iterable[Comparison]) -> list[list[int]]:
    """Return lists of digests; an entry that meets all conditions has at least one of each list.

    An entry with too many values has the digest of the empty key instead, which is in every list.
    """
    wanted = []
    for condition in conditions:
        key, operator, value = condition.key, condition.operator, condition.value
        # Digests cannot decide these conditions: entries without the key's digest may meet them.
        if (
            key in _UNKNOWN
            or operator in ("ne", "not_in", "trust")
            or (operator == "exists" and value is False)
        ):
            continue
        found = [digest(agent, key)]
        if operator in ("eq", "in") and key not in TIMES:
            values = value if operator == "in" else (value,)
            if not any(isinstance(item, dict | list) for item in values):
                found = [digest(agent, key, _said(item)) for item in values]
        wanted.append([*found, digest(agent, "")])
    return wanted


# Records


def record_of(raw: bytes | None) -> Record:
    """Return the record of an entry from its column ``record`` or, if that is null, from its line.

    Raises:
        ValueError: The bytes are damaged, which only another program can have caused.
    """
    found = parse(raw) if raw is not None else None
    if found is None:
        raise ValueError("the row of an entry holds no record")
    return create(found)


def kept_record(record: Record, *, pristine: bool) -> bytes | None:
    """Return the value of an entry's column ``record``: null if its line has the whole record."""
    return None if pristine else dump_read(record)
