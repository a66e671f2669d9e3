"""An index in memory that answers while the index on disk cannot follow the logs or cannot be used."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from keepstone.errors import InvalidSessionIdError
from keepstone.index import Index
from keepstone.index.index import bound_of
from keepstone.log.log_file import Log
from keepstone.store.files.intake import AT_ONCE


class SpareIndex:
    """An index in memory, made from the logs on demand and kept until ``forget``."""

    def __init__(self, language: str) -> None:
        self._language = language
        self._guard = threading.Lock()
        self._index: Index | None = None

    def forget(self) -> None:
        """Drop the index in memory: the index on disk is up to date again, or the agent is being closed."""
        with self._guard:
            self._index = None

    def with_log(self, session: str, log: Log, within: float) -> Index | None:
        """Return the index after it has read a log; None if that takes more than ``within`` seconds."""
        index = self._opened()
        return index if index.catch_up(session, log, within=within) else None

    def holding(self, sessions: Sequence[str], log_of: Callable[[str], Log], *, is_all: bool) -> Index | None:
        """Return the index after it has read some sessions, and without others if ``is_all``.

        None if the logs are together longer than ``AT_ONCE``, or if others wait for a log that takes long.
        """
        logs: dict[str, Log] = {}
        size = 0
        for session in sessions:
            with suppress(InvalidSessionIdError):  # No session has such an id.
                logs[session] = log_of(session)
                stat = logs[session].stat()
                size += 0 if stat is None else stat.size
        if size > AT_ONCE:
            return None
        index = self._opened()
        if not all(index.catch_up(session, log, within=bound_of(log)) for session, log in logs.items()):
            return None
        for session in index.known().keys() - logs.keys() if is_all else ():
            index.drop(session, None)
        return index

    def _opened(self) -> Index:
        with self._guard:
            if self._index is None:
                self._index = Index(None, self._language)
            return self._index
