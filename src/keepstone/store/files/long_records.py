"""The records of a long log, read when they are asked for."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import overload

from keepstone.index import Index, UnavailableError
from keepstone.model import Record
from keepstone.store.files.agent_logs import AgentLogs, unusable

WHOLE = 16 << 20
"""Bytes of the longest log that is held in memory whole, where it takes about eight times as many."""

_STEP = 1_000
"""Records that are read together."""


class LongRecords(Sequence[Record]):
    """The live entries of a session by (time, place), without holding more than a few.

    The entries are chosen once. One that was changed since is read as it is now; one that is gone since is
    left out. ``using`` leases the agent's logs.
    """

    def __init__(
        self, logs: AgentLogs, session: str, using: Callable[[], AbstractContextManager[AgentLogs | None]]
    ) -> None:
        """List the entries; raises UnavailableError if the index cannot."""
        self._session = session
        self._using = using
        self._list(logs)

    def _list(self, logs: AgentLogs) -> None:
        logs.reach((self._session,))
        self._epoch = logs.index.epoch
        self._rows = array("q", logs.asking(Index.in_order, self._session))

    def __len__(self) -> int:
        """Return how many entries there were."""
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> Record: ...

    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...

    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        """Read one entry, IndexError if it is gone, or a list of several."""
        places = range(len(self._rows))[at]
        return self._read(places) if isinstance(places, range) else self._read(range(places, places + 1))[0]

    def __iter__(self) -> Iterator[Record]:
        """Read all entries, some at a time."""
        for begin in range(0, len(self._rows), _STEP):
            yield from self._read(range(len(self._rows))[begin : begin + _STEP])

    def _read(self, places: range) -> list[Record]:
        with self._using() as logs:
            if logs is None:
                return []
            try:
                if logs.index.epoch != self._epoch:
                    self._list(logs)  # Its rows have other numbers now.
                eids = [self._rows[at] for at in places if at < len(self._rows)]
                loaded = self._loaded(logs, eids)
                if len(loaded) < len(eids):
                    logs.reach((self._session,))  # A rewrite of the log moves its lines.
                    loaded = self._loaded(logs, eids)
            except UnavailableError as error:
                raise unusable(logs.agent, error) from error
            return [loaded[eid] for eid in eids if eid in loaded]

    @staticmethod
    def _loaded(logs: AgentLogs, eids: Sequence[int]) -> dict[int, Record]:
        return logs.load(list(logs.asking(Index.rows, eids).values()))
