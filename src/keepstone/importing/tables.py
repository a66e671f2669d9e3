"""JSON lines and CSV, with columns that the caller maps to fields."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from keepstone.errors import SourceError
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.json_text import objects
from keepstone.importing.markdown import exported_item
from keepstone.importing.origin import Origin
from keepstone.log.line import MAX_LINE
from keepstone.model import Record
from keepstone.operations.exporting.tables import CSV_HEADING, unescaped_cell

_FIELDS = ("text", "ts", "role", "id", "session", "type", "tags")
_TIMES = ("timestamp", "created_at", "createdAt", "created", "date", "time", "datetime")
"""Names under which a record without ``ts`` often has its time."""
_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv")


def is_jsonl(origin: Origin) -> bool:
    """Return whether the source has files of JSON Lines."""
    names = origin.names(*_LINES) if origin.is_folder or origin.is_zip else [origin.path.name]
    return any(name.lower().endswith(_LINES) for name in names)


def is_csv(origin: Origin) -> bool:
    """Return whether a file's extension is that of a table."""
    return not origin.is_folder and origin.path.name.lower().endswith(_TABLES)


def read_jsonl(origin: Origin, options: Options) -> Items:
    """Yield the objects of JSON Lines. Without a mapping each object is read as a log line."""
    _check(options.mapping)
    for name in origin.names(*_LINES):
        with origin.open(name) as file:
            for number, found in objects(file):
                place = f"{name}:{number}"
                if found is None:
                    yield Unread(place, "the line is not a JSON object, is too long, or nests too deep")
                elif options.mapping:
                    yield _mapped(found, options.mapping, _stem(name), place)
                else:
                    yield _as_line(found, _stem(name), place)
    yield from origin.refused


def _stem(name: str) -> str:
    return name.rpartition("/")[2].rpartition(".")[0] or name


def _as_line(found: Record, session: str, place: str) -> Item | Unread:
    """Return an item for an object with the keys of a log line; further keys are its payload."""
    line = dict(found)
    # ``batch`` groups lines that were written together, and means nothing in another log.
    line.pop("batch", None)
    # An export of several agents has the agent in each line.
    if is_ours := {"id", "ts", "type"} <= line.keys():
        line.pop("agent", None)
    name = named(line.pop("session", None)) if is_ours or isinstance(line.get("session"), str) else None
    if (entry_id := line.pop("id", None)) is not None:
        line["id"] = named(entry_id)
        if line["id"] is None:
            return Unread(place, f"id is neither text nor number: {entry_id!r:.80}")
    if (moment := line.pop("ts", None)) is not None:
        line["ts"] = time_of(moment)
        if line["ts"] is None:
            return Unread(place, f"ts is not a time: {moment!r:.80}")
    else:
        line["ts"] = _time_in(line)
    if not isinstance(line.get("type"), str):
        kind = line.pop("type", None)
        line = (
            # A ``type`` that is not a string stays in the payload, under a key that is not reserved.
            {"type": "message" if "role" in line else "event"}
            | line
            | ({} if kind is None else {"kind": kind})
        )
    return Item(name or session, line, place, exported=is_ours)


def _time_in(record: Mapping[str, Any]) -> str | None:
    return next((found for key in _TIMES if (found := time_of(record.get(key)))), None)


def _check(mapping: Mapping[str, str]) -> None:
    for field in mapping:
        if field not in _FIELDS:
            raise ValueError(f"unknown field {field!r:.80} in --map; use {', '.join(_FIELDS)}")


def _mapped(found: Mapping[str, Any], mapping: Mapping[str, str], session: str, place: str) -> Item | Unread:
    """Return an item from mapped columns; the other columns are its payload."""
    columns = {field: mapping.get(field, field) for field in _FIELDS}
    # JSON objects may lack any key, but a record without its mapped text or id would be wrong.
    for field, column in mapping.items():
        if column not in found and field in ("text", "id"):
            return Unread(place, f"there is no column {column!r:.80} for {field}")
    values = {field: found.get(column) for field, column in columns.items()}
    rest = {
        key: value for key, value in found.items() if key not in columns.values() and value not in (None, "")
    }
    moment = time_of(values["ts"])
    if values["ts"] not in (None, "") and moment is None:
        return Unread(place, f"{columns['ts']} is not a time: {values['ts']!r:.80}")
    if values["ts"] in (None, ""):
        moment = _time_in(found)
    line: Record = {"id": named(values["id"]), "ts": moment}
    text, role = values["text"], named(values["role"])
    if role is not None:
        line |= {"type": "message", "data": {"role": role, "content": text, **rest}}
    else:
        line |= (
            {"type": "note"}
            | ({} if text is None else {"text": str(text)})
            | ({"data": rest} if rest else {})
        )
    line["type"] = named(values["type"]) or line["type"]
    if tags := _tags(values["tags"]):
        line["tags"] = tags
    return Item(named(values["session"]) or session, line, place)


def _tags(value: object) -> list[str]:
    if isinstance(value, str):
        return [tag.strip() for tag in value.split(",") if tag.strip()]
    return [str(tag) for tag in value] if isinstance(value, list) else []


def read_csv(origin: Origin, options: Options) -> Items:
    """Yield the rows of a table with a heading. Columns are mapped, or named like the fields."""
    _check(options.mapping)
    csv.field_size_limit(MAX_LINE)
    for name in origin.names(*_TABLES):
        with origin.open(name) as file:
            # Excel writes a byte order mark. The csv module needs unchanged line ends, as a quoted cell may
            # contain some.
            text = io.TextIOWrapper(file, "utf-8-sig", newline="")
            try:
                yield from _rows(text, name, options.mapping)
            except UnicodeDecodeError as error:
                raise SourceError(f"{name} is not UTF-8 (byte {error.start}): convert it first") from error
            finally:
                # Detach the wrapper, which would else close the file; the file's own ``with`` closes it.
                text.detach()
    yield from origin.refused


def _rows(text: io.TextIOWrapper, name: str, mapping: Mapping[str, str]) -> Items:
    first = text.readline(MAX_LINE)
    # Excel writes semicolons in locales with a decimal comma. csv.Sniffer is not used: it guesses from the
    # data, which may be prose.
    delimiter = max(",;\t", key=first.count)
    heading = next(csv.reader([first], delimiter=delimiter), [])
    if not any(column.strip() for column in heading):
        raise SourceError(f"{name} has no heading in its first line")
    missing = [column for column in mapping.values() if column not in heading]
    if missing:
        raise SourceError(f"{name} has no column {missing[0]!r:.80}; it has {', '.join(heading):.400}")
    # With ``strict``, text after a closing quotation mark is an error; otherwise cells would be split
    # wrongly.
    rows = csv.reader(text, delimiter=delimiter, strict=True)
    for row in _without_damage(rows, name):
        place = f"{name}:{rows.line_num + 1}"
        if isinstance(row, Unread):
            yield row
        elif len(row) > len(heading):
            yield Unread(place, f"the row has {len(row)} cells, the heading {len(heading)}")
        # This is the heading of our exports, whose cells are escaped so that spreadsheets run no formulas.
        elif heading == list(CSV_HEADING) and not mapping:
            yield _exported(dict(zip(heading, map(unescaped_cell, row), strict=False)), place)
        elif any(row):
            yield _mapped(dict(zip(heading, row, strict=False)), mapping, _stem(name), place)


def _without_damage(rows: Iterator[list[str]], name: str) -> Iterator[list[str] | Unread]:
    while True:
        try:
            row = next(rows, None)
        # The reader continues after an error, so a damaged row affects no other row.
        except csv.Error as error:
            yield Unread(f"{name}:{rows.line_num + 1}", str(error))  # type: ignore[attr-defined]
        else:
            if row is None:
                return
            yield row


def _exported(cells: Mapping[str, str], place: str) -> Item | Unread:
    """Return the entry of an exported row, with the text that the row has now."""
    try:
        rest = json.loads(cells["keepstone"])
    except (ValueError, KeyError, RecursionError) as error:
        return Unread(place, f"the column keepstone is not JSON: {error}")
    if not isinstance(rest, dict):
        return Unread(place, "the column keepstone is not an object")
    if "line" not in rest:
        rest |= {key: cells[key] for key in ("id", "ts", "type")}
    return exported_item(rest | {"session": cells["session"]}, cells["text"], place)
