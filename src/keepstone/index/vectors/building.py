"""Building generations, erasing rows in them, and removing files that the index does not list.

SQLite lists the files that are valid. A file is written under a temporary name, synced,
and renamed inside the transaction that records it. That transaction does nothing if a
purge ran while the file was built, so that the file does not bring purged rows back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keepstone.errors import KeepstoneError, LockTimeoutError
from keepstone.filesystem.atomic import temporary_file
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import LOCK, TEMPORARY
from keepstone.filesystem.lock import Lock
from keepstone.index.database import Database, UnavailableError
from keepstone.index.vectors.buffer import BLOCK, matrix_of
from keepstone.index.vectors.segment import Generation, Header, create, load, quantized, seal, sums_of, zero
from keepstone.vector import Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FOLDER = "vectors"
_GUARD = "build" + LOCK


@contextmanager
def files(database: Database) -> Iterator[Folder]:
    """Yield the folder of an index's vector files; errors of the folder become UnavailableError."""
    if database.path is None:
        raise UnavailableError("an index in memory has no files")
    try:
        with _folder_beside(database.path) as folder:
            # After the agent is purged, nothing from its index may be written again.
            if database.replaced():
                raise UnavailableError("the index was removed or replaced")
            yield folder
    except (KeepstoneError, FileNotFoundError, NotADirectoryError, FileExistsError) as error:
        raise UnavailableError(str(error)) from error


def _folder_beside(index: Path) -> Folder:
    """Open the folder of the files; create it if it is missing, but not its parent."""
    with suppress(FileNotFoundError):
        return Folder(index.parent / _FOLDER, root=index.parent)
    with Folder(index.parent) as parent:
        parent.make_folder(_FOLDER)
    return Folder(index.parent / _FOLDER, root=index.parent)


def folder_of(database: Database) -> Path | None:
    """Return the path of the folder of an index's vector files, None for an index in memory."""
    return None if database.path is None else database.path.parent / _FOLDER


@contextmanager
def alone(folder: Folder) -> Iterator[bool]:
    """Keep other processes and threads from building; yields False if one of them is building."""
    lock = Lock(folder, _GUARD)
    try:
        with lock.hold(0):
            yield True
    except LockTimeoutError:
        yield False
    finally:
        lock.close()


def name_of(space: int, number: int) -> str:
    """Return the name of a generation's file."""
    return f"{space}-{number}.int8"


def name_of_graph(space: int, number: int, sid: int, mark: int) -> str:
    """Return the name of a graph's file; ``mark`` distinguishes graphs of the same rows."""
    return f"{space}-{number}-{sid}-{mark:x}.hnsw"


def value(database: Database, key: str) -> Any:
    """Return a value of the index's metadata, None if it is missing."""
    row = database.row("SELECT value FROM meta WHERE key=?", (key,))
    return None if row is None else row[0]


def open_generation(database: Database, folder: Folder, space: int, *, whole: bool) -> Generation | None:
    """Return the generation of a space, None if it is missing or damaged; ``whole`` checks each row."""
    row = database.row("SELECT number, checksum FROM generation WHERE space=?", (space,))
    if row is None:
        return None
    name = name_of(space, row[0])
    return load(folder, name, value(database, "identity"), row[1], whole=whole)


@dataclass(frozen=True, slots=True)
class _Begun:
    """The state of the index when a build began."""

    identity: str
    purges: int
    """The number of purges so far."""
    generation: int
    """The number of the generation that the new generation will replace, 0 if there is none."""
    upto: int
    """The highest number of a vector."""
    gone: int
    """The highest number in the list of removed vectors."""


def _begun(database: Database, space: int) -> _Begun:
    sql = (
        "SELECT (SELECT coalesce(max(number), 0) FROM generation WHERE space=?), "
        "(SELECT coalesce(max(vid), 0) FROM vector), (SELECT coalesce(max(number), 0) FROM gone)"
    )
    generation, upto, gone = database.row(sql, (space,)) or (0, 0, 0)
    return _Begun(value(database, "identity"), value(database, "purges"), generation, upto, gone)


def build(database: Database, folder: Folder, number: int, space: Space) -> bool:
    """Make and publish a new generation of a space; False if a purge ran during the build.

    The index is locked only briefly, so that adding goes on.
    """
    with database:
        # Every later change gets a higher vector number or is listed in ``gone``; queries read both.
        begun = _begun(database, number)
    columns = _read_columns(database, number, begun.upto)
    name = name_of(number, begun.generation + 1)
    types = json.dumps(columns.names).encode()
    header = Header(begun.identity, number, space.dim, len(columns.eids), begun.upto, len(types))
    generation = create(header)
    columns.write(generation, types)
    _fill(database, generation, columns)
    with temporary_file(folder, name + TEMPORARY) as fd:
        checksum = seal(generation, fd)
        with database, database.writing():
            now = _begun(database, number)
            if (now.identity, now.purges, now.generation) != (begun.identity, begun.purges, begun.generation):
                return False
            # If the commit fails after this, the file has a name that nothing refers to, and ``tidy`` removes
            # it.
            folder.replace(name + TEMPORARY, name)
            row = (number, begun.generation + 1, begun.upto, checksum)
            database.execute("INSERT OR REPLACE INTO generation VALUES(?, ?, ?, ?)", row)
            # Vectors removed before the build began are not in the new file. Vectors removed later may be in
            # the file, and stay listed in ``gone``.
            database.execute("DELETE FROM gone WHERE space=? AND number<=?", (number, begun.gone))
            database.execute("DELETE FROM graph WHERE space=?", (number,))
    with database:
        tidy(database, folder)
    return True


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a generation besides its rows; each array in the order of the entries' numbers."""

    eids: NDArray[np.int64]
    vids: NDArray[np.int64]
    times: NDArray[np.int64]
    sids: NDArray[np.int64]
    types: NDArray[np.int64]
    names: list[str]
    places: NDArray[np.intp]
    """The row of the file to which each vector is written."""

    def write(self, generation: Generation, types: bytes) -> None:
        import numpy as np

        generation.vids[self.places] = self.vids
        generation.times[self.places] = self.times
        generation.sids[self.places] = self.sids
        generation.types[self.places] = self.types
        generation.type_names[:] = np.frombuffer(types, np.uint8)


def _read_columns(database: Database, space: int, upto: int) -> _Columns:
    """Read a generation's columns besides vectors, without rows that are hidden until they are removed."""
    import numpy as np

    sql = (
        "SELECT v.eid, v.vid, e.ts, e.sid, e.type FROM vector v CROSS JOIN entry e ON e.eid=v.eid "
        # Each block is a separate query that continues after the last entry: the unique index on (space, eid)
        # has this order.
        f"WHERE v.space=? AND v.eid>? AND v.vid<={upto} AND +e.sid>0 ORDER BY v.eid LIMIT {BLOCK}"
    )
    codes: dict[str, int] = {}
    parts = [np.empty((5, 0), np.int64)]
    for rows in _chunks(database, sql, space):
        coded = [(*row[:4], codes.setdefault(row[4], len(codes))) for row in rows]
        parts.append(np.array(coded, np.int64).T)
    eids, vids, times, sids, types = np.concatenate(parts, axis=1)
    places = np.empty(len(eids), np.intp)
    # The last key of lexsort counts first: sessions, then times, then entries. The result is inverted, as
    # vectors are read in the order of entries and written to their rows in the file.
    places[np.lexsort((eids, times, sids))] = np.arange(len(eids))
    return _Columns(eids, vids, times, sids, types, list(codes), places)


def _fill(database: Database, generation: Generation, columns: _Columns) -> None:
    """Write the rows; a row whose vector has since been removed stays erased."""
    import numpy as np

    header = generation.header
    sql = f"SELECT eid, vid, f32 FROM vector WHERE space=? AND eid>? ORDER BY eid LIMIT {BLOCK}"
    for rows in _chunks(database, sql, header.space):
        eids, vids, raw = zip(*rows, strict=True)
        # A vector that was added or replaced since has a number that the columns lack. The row of a replaced
        # one keeps the zeros of an erased row.
        at = np.minimum(columns.eids.searchsorted(eids), max(len(columns.eids) - 1, 0))
        same = columns.vids[at] == vids if len(columns.eids) else np.zeros(len(rows), bool)
        vectors = matrix_of(raw, header.dim)[same]
        if len(vectors):
            places = columns.places[at[same]]
            packed, scales = quantized(vectors, header.stride)
            generation.rows[places], generation.scales[places] = packed, scales
            generation.sums[places] = sums_of(packed, scales)


def _chunks(database: Database, sql: str, space: int) -> Iterator[list[tuple[Any, ...]]]:
    """Yield rows in the order of their entries, in blocks, so that the index is never locked for long."""
    last = 0
    while True:
        with database:
            rows = database.rows(sql, (space, last))
        if not rows:
            return
        last = rows[-1][0]
        yield rows


def erase(database: Database) -> None:
    """Overwrite removed vectors with zeros, and drop all graphs. The caller holds a write transaction.

    Files that other processes are building are discarded, as they may hold purged rows.
    """
    database.execute("UPDATE meta SET value=value+1 WHERE key='purges'")
    folder = folder_of(database)
    if folder is None or not folder.is_dir():
        return
    database.execute("DELETE FROM graph")
    with files(database) as opened:
        for (space,) in database.rows("SELECT space FROM generation"):
            _erase(database, opened, space)
        tidy(database, opened)


def _erase(database: Database, folder: Folder, space: int) -> None:
    sql = "SELECT number, checksum FROM generation WHERE space=?"
    number, checksum = database.row(sql, (space,)) or (0, 0)
    gone = [vid for (vid,) in database.rows("SELECT vid FROM gone WHERE space=?", (space,))]
    if not zero(folder, name_of(space, number), value(database, "identity"), checksum, gone):
        database.execute("DELETE FROM generation WHERE space=?", (space,))


def tidy(database: Database, folder: Folder) -> None:
    """Remove all files that the index does not list."""
    named = {name_of(*row) for row in database.rows("SELECT space, number FROM generation")}
    named |= {name_of_graph(*row) for row in database.rows("SELECT space, number, sid, mark FROM graph")}
    for entry in list(folder.scan()):
        if entry.name not in named | {_GUARD} and not entry.is_dir(follow_symlinks=False):
            with suppress(FileNotFoundError):
                folder.unlink(entry.name)
