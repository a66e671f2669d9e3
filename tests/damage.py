"""A session's files and what may happen to them, as verbs for tests."""

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE
from keepstone.filesystem.lock import Lock
from keepstone.log.fold import Fold
from keepstone.log.line import dump
from keepstone.log.log_file import Log
from keepstone.log.replacement import Placing, Replacement
from keepstone.log.rewrite import Rewritten, compact, overtaking, purge, without
from keepstone.log.scan import Line, Scan
from keepstone.model import Record

NAME = "s1.ndjson"
TS = "2026-01-11T14:31:00.000000Z"


def entry(entry_id: str, text: str = "x", **keys: Any) -> Record:
    """A creating line, or a put if the entry is there."""
    return {"id": entry_id, "ts": TS, "type": "note", "text": text, **keys}


def patch(entry_id: str, **keys: Any) -> Record:
    """A line that sets reserved keys."""
    return {"id": entry_id, "ts": TS, **keys}


def tombstone(entry_id: str) -> Record:
    """A line that deletes an entry."""
    return {"id": entry_id, "deleted": True, "ts": TS}


def batch(*records: Record, length: int | None = None) -> list[Record]:
    """Lines written together; with ``length``, only the first of this number."""
    return [record | {"batch": [place, length or len(records)]} for place, record in enumerate(records, 1)]


def lines(*items: Record | bytes) -> bytes:
    """The bytes of records and raw lines, each with its newline."""
    return b"".join(item + b"\n" if isinstance(item, bytes) else dump(item) for item in items)


@contextmanager
def opened(data: bytes) -> Iterator[int]:
    """A descriptor of a file that holds these bytes and has no name."""
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.fileno()


class _Beside(Placing):
    """A rewrite during which another writer writes, once."""

    def __init__(self, log: Log, write: Callable[[], object]) -> None:
        self._log = log
        self._write: Callable[[], object] | None = write
        self.is_held = False

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext() if self.is_held else self._log.locked()

    @contextmanager
    def locked_throughout(self) -> Iterator[None]:
        with self._log.locked():
            self.is_held = True
            yield

    def prepare(self, new: Replacement, *, folded: bool) -> None:  # noqa: ARG002  As for others.
        write, self._write = self._write, None
        if write is not None and not self.is_held:
            write()


class Damaged:
    """One session's log and archive in a folder, and what happens to them."""

    def __init__(self, path: Path) -> None:
        self.path = path / NAME
        self.archive_path = path / ARCHIVE / NAME
        self.folder = Folder(path, create=True)
        self.log = self._open()

    def _open(self) -> Log:
        return Log(self.folder, NAME, Lock(self.folder, "s1.lock"))

    @property
    def archive(self) -> Log:
        return Log(self.folder, f"{ARCHIVE}/{NAME}", self.log.lock)

    def reopen(self) -> None:
        """Go on as a process would that starts now."""
        self.log.close()
        self.log = self._open()

    def append(self, *records: Record) -> int:
        """Append as the product does; return where the lines begin."""
        with self.log.locked():
            begin, _ = self.log.append([dump(record) for record in records])
        return begin

    def write(self, *items: Record | bytes) -> None:
        """Append as a foreign program does."""
        with self.path.open("ab") as file:
            file.write(lines(*items))

    def write_raw(self, data: bytes) -> None:
        """Append bytes as they are."""
        with self.path.open("ab") as file:
            file.write(data)

    def cut(self, count: int) -> None:
        """Take bytes off the end, as a write that was killed."""
        data = self.path.read_bytes()
        self.path.write_bytes(data[: max(len(data) - count, 0)])

    def flip(self, position: int) -> None:
        """Let one byte rot."""
        data = bytearray(self.path.read_bytes())
        data[position] ^= 0x80
        self.path.write_bytes(bytes(data))

    def compact(self, aged: Callable[[Record], bool] | None = None) -> Rewritten | None:
        with self.log.locked():
            return compact(self.log, self.archive, aged)

    def purge(self, *ids: str) -> None:
        with self.log.locked():
            purge(self.archive, ids)
            purge(self.log, ids)

    def compact_beside(self, write: Callable[[], object]) -> Rewritten | None:
        """Compact while others write, unless the log has an end that a later write may change."""
        return compact(self.log, self.archive, None, _Beside(self.log, write))

    def purge_beside(self, entry_id: str, write: Callable[[], object]) -> None:
        """Purge from the log while others write; the archive comes first."""
        placing = _Beside(self.log, write)

        def act() -> None:
            with placing.locked():
                purge(self.archive, [entry_id])
                new = Replacement.begin(self.log, without({entry_id}))
            if new is None:
                return
            with new.closing(placing):
                new.follow()
                placing.prepare(new, folded=False)
                new.follow()
                with placing.locked():
                    new.check()
                    new.end()
                    new.put()

        overtaking(placing, act)

    def clear(self) -> None:
        """Empty the session, its archive included."""
        with self.log.locked():
            self.archive_path.unlink(missing_ok=True)
            self.log.truncate()

    def fold(self) -> Fold:
        return self.log.fold()

    def ids(self) -> list[str]:
        """The live entries, in the order of their places."""
        return list(self.fold().entries)

    def records(self) -> list[Record]:
        return [folded.record for folded in self.fold().entries.values()]

    def scan(self) -> list[Line]:
        """All lines that readers take in."""
        with self.log.reading() as fd:
            return [] if fd is None else list(Scan(fd, unfinished=True))

    def raw(self) -> list[Record]:
        """The log's lines as they are in the file."""
        return [json.loads(line) for line in self.path.read_bytes().splitlines()]

    def archived(self) -> list[Record]:
        """The archive's lines as they are in the file."""
        return [json.loads(line) for line in self.archive_path.read_bytes().splitlines()]

    def close(self) -> None:
        self.log.close()
        self.folder.close()
