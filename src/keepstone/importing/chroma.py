"""A Chroma folder: documents, metadata and vectors of its collections."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from keepstone.errors import KeepstoneError, SourceError
from keepstone.filesystem.confine import Folder
from keepstone.importing.inert import Object, read_pickle
from keepstone.importing.item import Item, Items, Options, Unread, named, time_of
from keepstone.importing.origin import Origin
from keepstone.importing.sqlite_file import ForeignDatabase, foreign_database, is_sqlite
from keepstone.model import Record

FILE = "chroma.sqlite3"
_DOCUMENT = "chroma:document"
_LISTS = "embedding_metadata_array"
"""The table with the values of lists in metadata, in order; since Chroma 1.5."""
_DATA = "data_level0.bin"
_LABELS = 4_000_000
"""Maximum number of vectors in a segment; larger segments are not read."""


def database_of(origin: Origin) -> Path | None:
    """Return the database in a folder or in one of its direct subfolders, None if there is none."""
    if not origin.is_folder:
        is_it = origin.path.name == FILE and is_sqlite(origin.path)
        return origin.path if is_it else None
    return next((path for path in origin.near(FILE) if is_sqlite(path)), None)


def is_chroma(origin: Origin) -> bool:
    """Return whether the source has a Chroma database."""
    return database_of(origin) is not None


def read_chroma(origin: Origin, _: Options) -> Items:
    """Yield the documents of all collections, a session for each collection."""
    for collection, record in chroma_records(origin):
        if isinstance(record, Unread):
            yield record
            continue
        # Chroma keeps the text of a document as metadata with a reserved key.
        data = {key: value for key, value in record.metadata.items() if key != _DOCUMENT}
        line: Record = {"id": record.id, "ts": _time_of(record), "type": "document"}
        if isinstance(text := record.metadata.get(_DOCUMENT), str):
            line["text"] = text
        if data:
            line["data"] = data
        if record.vector is not None:
            line["embedding"] = record.vector
        yield Item(collection, line, record.place)


def _time_of(record: ChromaRecord) -> str | None:
    given = (time_of(record.metadata.get(key)) for key in ("created_at", "timestamp", "date"))
    return next((moment for moment in given if moment), None) or time_of(record.created)


class ChromaRecord:
    """One document of a collection."""

    def __init__(self, name: str, created: Any, metadata: Record, vector: Any, place: str) -> None:
        self.id = name
        self.created = created
        self.metadata = metadata
        self.vector = vector
        self.place = place


def chroma_records(origin: Origin) -> Iterator[tuple[str, ChromaRecord | Unread]]:
    """Yield each document with the name of its collection."""
    with _database(origin) as (database, folder):
        for number, name in _collections(database):
            vectors = _Vectors(database, folder, number)
            if vectors.problem is not None:
                yield name, vectors.problem
            for record in _documents(database, number, name, vectors):
                yield name, record


def chroma_collections(origin: Origin) -> frozenset[str]:
    """Return the names of the collections, as ``chroma_records`` yields them."""
    with _database(origin) as (database, _):
        return frozenset(name for _, name in _collections(database))


@contextmanager
def _database(origin: Origin) -> Iterator[tuple[ForeignDatabase, Path]]:
    path = database_of(origin)
    if path is None:
        raise SourceError(f"{origin.path} has no {FILE}")
    with foreign_database(path) as database:
        needed = {"collections", "segments", "embeddings", "embedding_metadata"}
        if not needed <= database.tables:
            raise SourceError(f"{path} is not a Chroma database of a known version")
        yield database, path.parent


def _collections(database: ForeignDatabase) -> list[tuple[str, str]]:
    """Return the id and name of each collection.

    If there are several databases or tenants, the name includes them.
    """
    if "databases" not in database.tables or "database_id" not in database.columns("collections"):
        # Older versions of Chroma have neither databases nor tenants.
        found = database.rows("SELECT id, name FROM collections ORDER BY name, id")
        return [(str(number), str(name)) for number, name in found]
    rows = list(
        database.rows(
            "SELECT c.id, d.tenant_id, d.name, c.name FROM collections c "
            "LEFT JOIN databases d ON d.id = c.database_id ORDER BY d.tenant_id, d.name, c.name, c.id"
        )
    )
    has_tenants = len({tenant for _, tenant, _, _ in rows}) > 1
    has_databases = has_tenants or len({name for _, _, name, _ in rows}) > 1
    return [
        (str(number), "/".join([str(tenant)] * has_tenants + [str(owner)] * has_databases + [str(name)]))
        for number, tenant, owner, name in rows
    ]


def _documents(
    database: ForeignDatabase, number: str, name: str, vectors: _Vectors
) -> Iterator[ChromaRecord]:
    statement = (
        # Each collection has a metadata segment and a vector segment; the metadata segment holds the
        # documents.
        "SELECT e.id, e.embedding_id, e.created_at FROM embeddings e JOIN segments s ON s.id = e.segment_id "
        "WHERE s.collection = ? AND s.scope = 'METADATA' ORDER BY e.id"
    )
    for row, entry_id, created in database.rows(statement, (number,)):
        metadata = _metadata(database, row)
        place = f"{database.name}: {name}/{entry_id}"
        yield ChromaRecord(named(entry_id) or str(row), created, metadata, vectors.get(entry_id), place)


def _metadata(database: ForeignDatabase, row: Any) -> Record:
    values = (
        "SELECT key, string_value, int_value, float_value, bool_value FROM {} WHERE id = ? ORDER BY rowid"
    )
    found: Record = {}
    for key, *given in database.rows(values.format("embedding_metadata"), (row,)):
        found[str(key)] = _value(*given)
    if _LISTS in database.tables:
        lists: dict[str, list[Any]] = {}
        for key, *given in database.rows(values.format(_LISTS), (row,)):
            lists.setdefault(str(key), []).append(_value(*given))
        found |= lists
    return found


def _value(text: Any, whole: Any, real: Any, truth: Any) -> Any:
    """Return the value of the one typed column that is not null."""
    # SQLite has no Booleans: the column holds 0 or 1.
    if truth is not None:
        return bool(truth)
    return next((value for value in (text, whole, real) if value is not None), None)


class _Vectors:
    """The vectors of one collection, from the queue, else from the HNSW files.

    Attributes:
        problem: Why the HNSW files cannot be read, or None.
    """

    def __init__(self, database: ForeignDatabase, folder: Path, collection: str) -> None:
        self.problem: Unread | None = None
        self._database = database
        self._queued = _queued(database, collection) if "embeddings_queue" in database.tables else {}
        self._labels: Mapping[str, int] = {}
        self._data: _Level0 | None = None
        found = database.rows(
            "SELECT id FROM segments WHERE collection = ? AND scope = 'VECTOR'", (collection,)
        )
        # A document is still useful without its vector, so damaged vector files do not stop the import.
        for (segment,) in found:
            try:
                # The segment's name comes from an untrusted database: if it is a path, only its last part is
                # used.
                self._read(folder / Path(str(segment)).name)
            except (ValueError, OSError, KeepstoneError, struct.error) as error:
                self.problem = Unread(f"{segment}: vectors", f"its files cannot be read: {error}")

    def _read(self, files: Path) -> None:
        """Read where a segment's vectors are in its files.

        A segment that is not yet written to disk has no files.
        """
        # Chroma writes a segment to its files only after ``sync_threshold`` changes (1,000 by default); newer
        # vectors are only in the queue.
        if not files.is_dir():
            return
        with Folder(files, root=files.parent) as folder:
            if "index_metadata.pickle" not in (entry.name for entry in folder.scan()):
                return
            with _file(folder, "index_metadata.pickle") as file:
                self._labels = _labels(file.read())
            self._data = _Level0(folder)

    def get(self, entry_id: Any) -> Any:
        import numpy as np

        # The queue is newer than the files, which may hold an earlier vector of the same document.
        if (place := self._queued.get(str(entry_id))) is not None:
            for (blob,) in self._database.rows(
                "SELECT vector FROM embeddings_queue WHERE seq_id = ?", (place,)
            ):
                return np.frombuffer(blob, "<f4")
        label = self._labels.get(str(entry_id))
        return None if label is None or self._data is None else self._data.get(label)


def _queued(database: ForeignDatabase, collection: str) -> dict[str, int]:
    """Return the queue's sequence number of each id's newest vector in a collection."""
    # A topic is an address such as persistent://tenant/database/collection, which ends in the collection.
    statement = (
        "SELECT id, MAX(seq_id) FROM embeddings_queue WHERE substr(topic, -length(?1)) = ?1 "
        "AND encoding = 'FLOAT32' AND vector IS NOT NULL GROUP BY id"
    )
    return {str(name): place for name, place in database.rows(statement, (f"/{collection}",))}


def _file(folder: Folder, name: str) -> IO[bytes]:
    """Open a file of a segment without following links."""
    return os.fdopen(folder.open(name, os.O_RDONLY), "rb")


def _labels(raw: bytes) -> Mapping[str, int]:
    """Return the HNSW label of each id from Chroma's pickle, which is read as data only."""
    found = read_pickle(raw)
    # Some versions pickle an object of their own class, others a plain mapping.
    if isinstance(found, Object):
        found = found.state
    labels = found.get("id_to_label") if isinstance(found, dict) else None
    if not isinstance(labels, dict):
        raise ValueError("index_metadata.pickle has no id_to_label")  # noqa: TRY004  A fault of the file.
    return {str(key): label for key, label in labels.items() if isinstance(label, int)}


# Vectors are loaded one by one on request, as a segment may have gigabytes of them.
class _Level0:
    """The vectors in hnswlib's files.

    ``header.bin`` has the length of an element and the offsets of its parts.
    """

    _HEADER = struct.Struct("<iQQQQQQ")

    def __init__(self, folder: Folder) -> None:
        with _file(folder, "header.bin") as file:
            _, _, _, count, size, label_at, data_at = self._HEADER.unpack(file.read(self._HEADER.size))
        self._path = folder.path
        length = folder.stat(_DATA).st_size
        # A damaged or hostile header must not cause reads outside of the elements, nor exhaust the memory.
        if not (0 < count <= _LABELS and data_at < label_at <= size - 8 and count * size <= length):
            raise ValueError("header.bin does not fit data_level0.bin")
        self._size, self._data_at, self._dim = size, data_at, (label_at - data_at) // 4
        self._places: dict[int, int] = {}
        with _file(folder, _DATA) as file:
            for place in range(count):
                file.seek(place * size + label_at)
                # The file has the elements in order of insertion; hnswlib finds an element by its label.
                (label,) = struct.unpack("<Q", file.read(8))
                self._places[label] = place

    def get(self, label: int) -> Any:
        import numpy as np

        place = self._places.get(label)
        if place is None:
            return None
        with Folder(self._path) as folder, _file(folder, _DATA) as file:
            file.seek(place * self._size + self._data_at)
            return np.frombuffer(file.read(4 * self._dim), "<f4")
