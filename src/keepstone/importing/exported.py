"""Exports of keepstone in Markdown or SQLite. Exports in other formats have their own sources."""

from __future__ import annotations

import json

from keepstone.importing.front_matter import split_front_matter
from keepstone.importing.item import Item, Items, Options, Unread
from keepstone.importing.markdown import exported_item
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import foreign_database, is_sqlite
from keepstone.operations.exporting.markdown_files import BEGIN, END, SESSION_MARK
from keepstone.operations.exporting.tables import APPLICATION_ID

_MARKDOWN = ".md"
_LOOKED_AT = 4096


def is_export(origin: Origin) -> bool:
    """Return whether the source is an exported SQLite file or has exported Markdown files."""
    if not origin.is_folder and is_sqlite(origin.path):
        with foreign_database(origin.path) as database:
            return next(database.rows("PRAGMA application_id"), (0,)) == (APPLICATION_ID,)
    # For a single file, ``names`` returns its name whatever the extension is.
    for name in [name for name in origin.names(_MARKDOWN) if name.endswith(_MARKDOWN)][:1]:
        with origin.open(name) as file:
            head, _ = split_front_matter(file.read(_LOOKED_AT).decode("utf-8", "replace"))
            return head is not None and SESSION_MARK in head.split("\n")
    return False


def read_export(origin: Origin, _: Options) -> Items:
    """Yield the entries of an export."""
    if not origin.is_folder and is_sqlite(origin.path):
        yield from _database(origin)
        return
    for name in origin.names(_MARKDOWN):
        yield from _sections(origin, name)
    yield from origin.refused


def _database(origin: Origin) -> Items:
    with foreign_database(origin.path) as database:
        for row, session, line in database.rows("SELECT rowid, session, line FROM entries ORDER BY rowid"):
            place = f"{database.name}: row {row}"
            try:
                found = json.loads(line)
            except (ValueError, TypeError, RecursionError) as error:
                yield Unread(place, f"its line is not JSON: {error}")
                continue
            if isinstance(found, dict):
                yield Item(str(session), found, place, exported=True)
            else:
                yield Unread(place, "its line is not an object")


def _sections(origin: Origin, name: str) -> Items:
    """Yield the sections of a file.

    A section is a heading, a comment, and the text up to the next section.
    """
    ours: str | None = None
    place, text = "", list[str]()
    with origin.open(name) as file:
        for number, raw in enumerate(file, 1):
            try:
                line = raw.decode().removesuffix("\n").removesuffix("\r")
            except UnicodeDecodeError:
                yield Unread(f"{name}:{number}", "the line is not UTF-8")
                continue
            # Only a comment with our JSON begins a section, as a text may contain other headings and
            # comments.
            if line.startswith(BEGIN + "{") and line.endswith(END):
                if ours is not None:
                    # Drop the two lines before the comment: the next section's heading and a blank line.
                    yield _item(ours, text[:-2], place)
                ours, place, text = line[len(BEGIN) : -len(END)], f"{name}:{number}", []
            else:
                text.append(line)
    if ours is not None:
        yield _item(ours, text, place)


def _item(ours: str, text: list[str], place: str) -> Item | Unread:
    try:
        found = json.loads(ours)
    except (ValueError, RecursionError) as error:
        return Unread(place, f"the comment is not JSON: {error}")
    return exported_item(found, "\n".join(text).removeprefix("\n"), place)
