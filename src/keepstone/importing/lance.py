"""LanceDB folders, read by the package ``lancedb``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from keepstone.errors import SourceError, install_command
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.origin import Origin
from keepstone.model import Record

_TEXTS = ("text", "content", "document", "page_content", "body")
_VECTORS = ("vector", "embedding", "embeddings")
_TIMES = ("ts", "timestamp", "created_at", "createdAt", "date", "time")
_BATCH = 500


def is_lance(origin: Origin) -> bool:
    """Return whether a folder is a LanceDB database, or one of its tables."""
    return origin.is_folder and bool(_tables(origin.path))


def _tables(path: Path) -> list[tuple[Path, str]]:
    if path.suffix == ".lance" and (path / "_versions").is_dir():
        return [(path.parent, path.stem)]
    # Links are left out: a link may lead anywhere, and the package would follow it.
    found = sorted(child for child in path.glob("*.lance") if child.is_dir() and not child.is_symlink())
    return [(path, child.stem) for child in found]


def read_lance(origin: Origin, _: Options) -> Items:
    """Yield the rows of all tables, with one session for each table.

    Raises:
        SourceError: The package ``lancedb`` is not installed, or cannot read the folder.
    """
    if find_spec("lancedb") is None:
        raise SourceError(f"the package lancedb reads Lance files: {install_command('lancedb')}")
    # Only LanceDB's own package can read the format, as its layout changes between versions.
    lancedb = import_module("lancedb")  # An optional dependency, and large.

    for folder, name in _tables(origin.path.resolve()):
        try:
            table = lancedb.connect(str(folder)).open_table(name)
            # Read in batches, as a table may be larger than the memory.
            batches = table.search().limit(None).to_batches(_BATCH)
            for number, row in enumerate((row for batch in batches for row in batch.to_pylist()), 1):
                yield _item(name, row, number)
        except (OSError, RuntimeError, ValueError) as error:
            raise SourceError(f"{folder / name}.lance cannot be read: {error}") from error


def _item(table: str, row: dict[str, Any], number: int) -> Item | Unread:
    place = f"{table}: row {number}"
    text_key = next((key for key in _TEXTS if isinstance(row.get(key), str)), None)
    vector_key = next((key for key in _VECTORS if isinstance(row.get(key), list)), None)
    moment = next((found for key in _TIMES if (found := time_of(row.get(key)))), None)
    data = {
        key: _plain(value)
        for key, value in row.items()
        if key not in (text_key, vector_key, "id") and value is not None
    }
    line: Record = {"id": named(row.get("id")), "ts": moment, "type": "document"}
    if text_key:
        line["text"] = row[text_key]
    if vector_key:
        line["embedding"] = row[vector_key]
    if data:
        line["data"] = data
    if not text_key and not data:
        return Unread(place, "the row has neither text nor other columns")
    return Item(named(row.get("session_id")) or table, line, place)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    # Arrow has types that JSON lacks, such as times, decimals and bytes.
    return value if isinstance(value, str | int | float | bool | None) else str(value)
