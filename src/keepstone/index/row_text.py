"""The record of a row, and the searched text made from the record.

A row stores id, time and type in columns, and the rest of its record as JSON. A vector that was given with
the entry is stored once, in the vector table. The searched text is not stored: one function of the record
makes it again whenever words are inserted, removed or compared.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from hashlib import sha256
from typing import Any

import apsw

from keepstone.log.line import EPOCH, MICROSECOND, dump_read, format_time, text_of
from keepstone.log.searched_text import searched_text
from keepstone.model import Record
from keepstone.text.tokenizer import spread

_KEYS = ("id", "ts", "type")


def rest_of(record: Record, ts: int) -> str:
    """Return the JSON of a record's keys that its row has no columns for.

    Returns the whole record if id, time and type do not come first, if the time has another format, or if a
    column cannot hold the type.
    """
    is_first = tuple(record)[:3] == _KEYS and storable(record["type"]) == record["type"]
    if is_first and format_time(EPOCH + ts * MICROSECOND) == record["ts"]:
        record = {key: value for key, value in record.items() if key not in _KEYS}
    # A row keeps the line without its newline.
    return dump_read(record)[:-1].decode()


def with_vector(*row: Any) -> str:
    """Return the JSON of a row with its vector put back: the arguments are JSON, space and bytes."""
    rest, space, raw = row
    return dump_read(json.loads(rest) | {"embedding": _embedding(space, raw)})[:-1].decode()


def _embedding(space: str, raw: bytes) -> dict[str, str]:
    return {"space": space, "f32": b2a_base64(raw, newline=False).decode("ascii")}


def record_in(
    entry_id: str, ts: int, kind: str, rest: Any, space: str | None = None, raw: bytes = b""
) -> Record:
    """Return the record of a row, with its vector if a space is given.

    Raises:
        apsw.CorruptError: The row has no record, which only happens in a damaged file.
    """
    try:
        said: Record = json.loads(rest)
        if space is not None:
            said["embedding"] = _embedding(space, raw)
        # Here ``rest_of`` had returned the whole record, with id, time and type.
        if "id" in said:
            return said
        return {"id": entry_id, "ts": format_time(EPOCH + ts * MICROSECOND), "type": kind, **said}
    except (OverflowError, RecursionError, TypeError, ValueError) as error:
        raise apsw.CorruptError("a row holds no record") from error


def text_in(record: Record) -> str:
    """Return the searched text of an entry, with its aliases and the parts of names in it."""
    text = searched_text(text_of(record), record)
    # ASCII text has no script to spread and no surrogates.
    return text if text.isascii() else storable(spread(text))


def digest_of(text: str) -> int | None:
    """Return the digest of a searched text, as a row stores it; None if the text is blank."""
    if not text.strip(" \t\n\r"):
        return None
    # Signed, as integers of SQLite are.
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big", signed=True)


def storable(text: str) -> str:
    """Return a text without the lone surrogates that another program's escapes may hold."""
    return text.encode("utf-8", "replace").decode()


class WaitingTexts(dict[int, str]):
    """Searched texts of rows that were just written, by digest, until their words are flushed."""

    def __init__(self) -> None:
        super().__init__()
        self._size = 0

    def keep(self, digest: int | None, text: str) -> None:
        """Keep a text unless ``_MOST`` characters are kept already."""
        if digest is not None and digest not in self and self._size < _MOST:
            self[digest] = text
            self._size += len(text)

    def take(self, digest: int | None, kind: str, rest: Any) -> str:
        """Return the text of a row, and stop keeping it."""
        text = None if digest is None else self.pop(digest, None)
        if text is None:
            return text_in(record_in("", 0, kind, rest))
        self._size -= len(text)
        return text


_MOST = 1 << 20
"""Number of characters from which an index keeps no more texts in memory until words are flushed."""
