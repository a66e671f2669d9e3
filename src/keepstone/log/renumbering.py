"""Continued numbers for the lives of ids, in a session that gets the id of an earlier session."""

from __future__ import annotations

from collections.abc import Mapping

from keepstone.log.line import dump_read, id_of, is_put, is_tombstone, life_of
from keepstone.log.rewrite import explicit
from keepstone.log.scan import Line


class Numbering:
    """Continues the numbers of lives in a new session, where ids may have had earlier lives.

    ``had`` gives the number of lives of each id that have ended under the new session's id.
    """

    def __init__(self, had: Mapping[str, int]) -> None:
        self._had = had
        self._lives: dict[str, int] = {}
        self._live: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._had)

    def numbered(self, line: Line) -> bytes:
        """Return a line as written to the new session; lines of the archive must be passed first."""
        record, entry_id = line.record or {}, id_of(line.record or {})
        had = self._had.get(entry_id or "", 0)
        if is_tombstone(record):
            self._live.discard(entry_id or "")
        if entry_id is None or not had or is_tombstone(record) or not is_put(record):
            return explicit(line)
        life = max(life_of(record), self._lives.get(entry_id, 0) + (entry_id not in self._live))
        self._lives[entry_id] = life
        self._live.add(entry_id)
        plain = {key: value for key, value in record.items() if key != "batch"}
        return dump_read(plain | {"life": life + had})
