"""Export as lines and tables: NDJSON, CSV, and one SQLite file."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

import apsw

from keepstone.model import Entry
from keepstone.operations.documents import line_document
from keepstone.operations.exporting.parts import is_plain, split_text

CSV_HEADING = ("session", "id", "ts", "type", "role", "text", "keepstone")
APPLICATION_ID = 0x6B656570
"""The application id of the SQLite file, ``keep`` in ASCII."""
_SCHEMA = """
CREATE TABLE entries (
    session TEXT NOT NULL, id TEXT NOT NULL, ts TEXT NOT NULL, type TEXT NOT NULL,
    role TEXT, text TEXT NOT NULL, tags TEXT, data TEXT NOT NULL, line TEXT NOT NULL,
    PRIMARY KEY (session, id)
);
CREATE INDEX entries_by_time ON entries (ts);
"""
_INSERT = "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


_FORMULA = re.compile(r"'*+[=+\-@\t\r]")
"""Prefix of a cell that a spreadsheet would compute, or that is escaped already."""


def escaped_cell(text: str) -> str:
    """Return a cell's text, after an apostrophe if a spreadsheet would take the text for a formula.

    Examples:
        >>> escaped_cell("=1+1"), escaped_cell("plain"), escaped_cell("'=1")
        ("'=1+1", 'plain', "''=1")
    """
    return f"'{text}" if _FORMULA.match(text) else text


def unescaped_cell(text: str) -> str:
    """Undo ``escaped_cell``; a cell that it did not change stays as it is.

    Examples:
        >>> unescaped_cell("'=1+1"), unescaped_cell("=1+1"), unescaped_cell("'quoted'")
        ('=1+1', '=1+1', "'quoted'")
    """
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def write_ndjson(entries: Iterable[Entry], file: IO[bytes]) -> int:
    """Write a log line for each entry, with its agent and session, and return the number of entries."""
    count = 0
    for entry in entries:
        document = line_document(entry.agent, entry.session, entry.line)
        file.write(json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        count += 1
    return count


def write_csv(entries: Iterable[Entry], file: IO[bytes]) -> int:
    """Write a table with a heading; the last column has all keys that have no column, as JSON.

    Cells that a spreadsheet would compute are escaped, as memory is untrusted.
    """
    # The csv module writes its own line ends; Python must not change them.
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    rows = csv.writer(text)  # Its line ends are those of RFC 4180, so a lone CR in a cell is quoted.
    rows.writerow(CSV_HEADING)
    count = 0
    for entry in entries:
        rest, main = split_text(entry.line)
        if main is None or not is_plain(main):
            rest, main = {"line": entry.line}, entry.text.replace("\r", "\n").replace("\0", "")
        beside = {key: value for key, value in rest.items() if key not in ("id", "ts", "type")}
        role = entry.data.get("role")
        cells = (
            entry.session,
            entry.id,
            entry.line["ts"],
            entry.type,
            role if isinstance(role, str) else "",
            main,
            json.dumps(beside, ensure_ascii=False, separators=(",", ":")),
        )
        rows.writerow(map(escaped_cell, cells))
        count += 1
    text.flush()
    # The wrapper would close the caller's file, which may be standard output.
    text.detach()
    return count


def write_sqlite(entries: Iterable[Entry], path: Path) -> int:
    """Write one table of entries into a new SQLite file."""
    # SQLite would create the file with the umask's mode, but keeps the mode of an existing file.
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    connection = apsw.Connection(str(path))
    try:
        # No syncs: after a power cut the export is repeated, and the file gets its name only at the end.
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA synchronous = OFF; {_SCHEMA}")
        with connection:
            connection.executemany(_INSERT, _rows(entries))
        (count,) = next(connection.execute("SELECT count(*) FROM entries"))
    finally:
        connection.close()
    return int(count)


def _rows(entries: Iterable[Entry]) -> Iterator[tuple[str | None, ...]]:
    for entry in entries:
        role = entry.data.get("role")
        yield (
            entry.session,
            entry.id,
            entry.line["ts"],
            entry.type,
            role if isinstance(role, str) else None,
            entry.text,
            json.dumps(list(entry.tags), ensure_ascii=False) if entry.tags else None,
            json.dumps(entry.data, ensure_ascii=False),
            json.dumps(entry.line, ensure_ascii=False),
        )
