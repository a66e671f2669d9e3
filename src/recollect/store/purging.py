"""The marks of purges under way: whoever opens the home next finishes what they name."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.confine import Folder
from recollect.layout import LOCK, PURGE
from recollect.line import dump_read, parse
from recollect.lock import Lock
from recollect.log import Log
from recollect.model import Record
from recollect.scan import Scan


class PurgeMarks:
    """The file ``.purge.ndjson`` of one sessions folder: ids only, one purge a line.

    A line without an id means the whole session.
    """

    def __init__(self, folder: Folder) -> None:
        self._log = Log(folder, PURGE, Lock(folder, PURGE + LOCK))

    def add(self, session: str, ids: Sequence[str] | None, dropped: str | None = None) -> list[Record]:
        """Record what is about to be purged, synced; return the marks for ``remove``.

        ``dropped`` is when a whole session was dropped, which whoever finishes the purge marks.
        """
        whole: Record = {"session": session} | ({"dropped": dropped} if dropped else {})
        marks: list[Record] = [whole] if ids is None else [{"session": session, "id": name} for name in ids]
        with self._log.locked():
            self._log.append([dump_read(mark) for mark in marks])
        return marks

    def remove(self, marks: Sequence[Record]) -> None:
        """Record that purges are done, and leave no file behind the last one."""
        with self._log.locked():
            left = [mark for mark in self.pending() if mark not in marks]
            if left:
                self._log.replace(dump_read(mark) for mark in left)
            else:
                self._log.remove()

    def pending(self) -> list[Record]:
        """Return the purges that were begun and not finished."""
        with self._log.reading() as fd:
            if fd is None:
                return []
            # Not the lines' records: a reader of logs would give a mark without an id one of its own.
            return [mark for line in Scan(fd) if (mark := parse(line.raw)) is not None and _is_mark(mark)]

    def close(self) -> None:
        """Close the descriptors."""
        self._log.close()


def _is_mark(line: Record) -> bool:
    return isinstance(line.get("session"), str) and isinstance(line.get("id", ""), str)
