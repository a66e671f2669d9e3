"""The journal of new and deleted files, which a home publishes to other devices when it syncs.

The files themselves do not show that a file was deleted before it was written again, or before an older
backup restored it. A new file gets a mark, so that the deletion of an earlier file with the same text does
not delete it. Names and contents are recorded as digests. The next sync reads the journal and removes its
records. A home that never synced records only files of purged agents: all its files count as new at its first
sync, and no file needs a second synced write.
"""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import closing
from pathlib import Path
from time import time_ns
from typing import NamedTuple

from uuid_utils import uuid4

from keepstone.errors import KeepstoneError
from keepstone.files import AgentFiles
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import LOCK, SYNC
from keepstone.filesystem.lock import Lock
from keepstone.log.line import dump_read, parse
from keepstone.log.log_file import Log
from keepstone.model import Record
from keepstone.store.files.purge_digests import gone_name

VERSIONS = "versions.json"
"""Name of the file with the versions that a home exchanged. The first sync creates the file."""
_FILE = "deleted.ndjson"


class Deletion(NamedTuple):
    """A file that was deleted."""

    agent: str
    """The digest of the agent's name."""
    name: str
    """The digest of the path."""
    sha256: str
    """The digest of path and content."""
    time: int
    """Time of the deletion in nanoseconds since 1970."""


def name_digest(path: str) -> str:
    """Return the digest of a path, as the path itself may hold deleted text."""
    return hashlib.sha256(json.dumps([path]).encode()).hexdigest()


def packed(path: str, raw: bytes) -> bytes:
    """Return the published form of a file: a line with its path, then its bytes."""
    return json.dumps(path).encode() + b"\n" + raw


class Beginning(NamedTuple):
    """A file that was created."""

    agent: str
    name: str
    mark: str
    """A unique mark of the file, by which copies of this home recognize it."""


def begin(root: Path, agent: str, path: str, *, durable: bool = True) -> None:
    """Record a file that is about to be created, in a home that has synced."""
    if _has_synced(root):
        line = Beginning(gone_name(agent), name_digest(path), str(uuid4()))
        _append(root, line._asdict(), durable=durable)


def record(root: Path, agent: str, path: str, raw: bytes, *, durable: bool = True) -> None:
    """Record a file that is about to be deleted, in a home that has synced."""
    if _has_synced(root):
        _record(root, agent, path, raw, durable=durable)


def _record(root: Path, agent: str, path: str, raw: bytes, *, durable: bool = True) -> None:
    sha256 = hashlib.sha256(packed(path, raw)).hexdigest()
    line = Deletion(gone_name(agent), name_digest(path), sha256, time_ns())
    _append(root, line._asdict(), durable=durable)


def _append(root: Path, line: Record, *, durable: bool) -> None:
    with (
        Folder(root / SYNC, root=root, create=True, durable=durable) as folder,
        closing(_log(folder, durable=durable)) as log,
        log.locked(),
    ):
        log.append([dump_read(line)])


def _has_synced(root: Path) -> bool:
    try:
        with Folder(root / SYNC, root=root) as folder:
            folder.stat(VERSIONS)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def record_all(root: Path, agent: str, files: AgentFiles) -> None:
    """Record all files of an agent that is about to be purged, also in a home that never synced."""
    for path in files.list():
        try:
            raw = files.read_bytes(path)
        except KeepstoneError:  # It was removed.
            continue
        _record(root, agent, path, raw)


def read(root: Path) -> list[Beginning | Deletion]:
    """Return the records since the last sync; lines of another form are skipped."""
    try:
        with Folder(root / SYNC, root=root) as folder, closing(_log(folder)) as log, log.reading() as fd:
            raw = b"" if fd is None else os.pread(fd, os.fstat(fd).st_size, 0)
    except (FileNotFoundError, NotADirectoryError):
        return []
    found: list[Beginning | Deletion] = []
    for line in map(parse, raw.splitlines()):
        match line:
            case {"agent": str(agent), "name": str(name), "sha256": str(sha256), "time": int(time)}:
                found.append(Deletion(agent, name, sha256, time))
            case {"agent": str(agent), "name": str(name), "mark": str(mark)}:
                found.append(Beginning(agent, name, mark))
    return found


def forget(root: Path, taken: list[Beginning | Deletion]) -> None:
    """Remove the records that a sync has published."""
    if taken:
        with Folder(root / SYNC, root=root) as folder, closing(_log(folder)) as log, log.locked():
            # Read again under the lock, as other processes may have added records since the sync read the
            # file.
            log.replace(dump_read(record._asdict()) for record in read(root) if record not in taken)


def _log(folder: Folder, *, durable: bool = True) -> Log:
    return Log(folder, _FILE, Lock(folder, _FILE + LOCK), durable=durable)
