"""Work that nobody waits for: one thread a home, which lives only as long as there is something to do."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from keepstone.errors import KeepstoneError
from keepstone.forking import reset_in_child

logger = logging.getLogger("keepstone.background")

_ENDING_SECONDS = 10.0
"""How long ``close`` waits for the piece of work at hand, which takes a second."""

_IN_TURN = 4
"""Agents that take turns."""


class Background:
    """Calls ``work`` with each agent that it is told of, again and again as long as that returns True.

    Four agents at a time take turns, one piece of work each, so that none waits until another has nothing
    left; with all at once, each would be closed between its turns to make room for the others.
    What ``work`` raises of ours ends the work on that agent until it is told of it again.
    After a fork the child begins with nothing to do.
    """

    def __init__(self, work: Callable[[str], bool]) -> None:
        self._work = work
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget all work, and the thread, which a fork does not take along."""
        self._guard = threading.Lock()
        self._waiting: list[str] = []
        self._thread: threading.Thread | None = None
        self._closing = False

    def wake(self, agent: str) -> None:
        """Let an agent be worked on soon."""
        with self._guard:
            if agent not in self._waiting:
                self._waiting.append(agent)
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(target=self._run, name="keepstone", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End after the piece of work at hand; waking starts again."""
        with self._guard:
            self._closing, thread = True, self._thread
            self._waiting.clear()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_ENDING_SECONDS)
        with self._guard:
            self._closing = False

    def _next(self) -> str | None:
        with self._guard:
            if not self._waiting or self._closing:
                self._thread = None
                return None
            return self._waiting.pop(0)

    def _put_back(self, agent: str) -> None:
        with self._guard:
            if not self._closing and agent not in self._waiting:
                self._waiting.insert(_IN_TURN - 1, agent)

    def _run(self) -> None:
        while (agent := self._next()) is not None:
            try:
                if self._work(agent):
                    self._put_back(agent)
            except KeepstoneError as error:
                logger.warning("work on agent %s is put off: %s", agent, type(error).__name__)
