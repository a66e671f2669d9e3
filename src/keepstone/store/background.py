"""Background work: one thread per home, which runs only while work is left."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from keepstone.errors import KeepstoneError
from keepstone.filesystem.fork import reset_in_child
from keepstone.text.display import frames_of

logger = logging.getLogger("keepstone.background")

_ENDING_SECONDS = 10.0
"""Seconds for which ``close`` waits for the running piece of work, which takes about one."""


class Background:
    """Calls ``work`` with each agent that ``wake`` names, again as long as it returns True.

    Agents take turns, one piece of work each, so that no agent waits until the work on another is done.
    An error of ``work`` ends the work on that agent until ``wake`` names it again.
    After a fork, the child begins without work.
    """

    def __init__(self, work: Callable[[str], bool]) -> None:
        self._work = work
        self._reported: set[str] = set()
        self.reset()
        reset_in_child(self)

    def reset(self) -> None:
        """Forget all work and the thread, which does not exist in a forked child."""
        self._guard = threading.Lock()
        self._waiting: list[str] = []
        self._thread: threading.Thread | None = None
        self._closing = False

    def wake(self, agent: str) -> None:
        """Schedule work on an agent."""
        with self._guard:
            if agent not in self._waiting:
                self._waiting.append(agent)
            if self._thread is None and not self._closing:
                thread = threading.Thread(target=self._run, name="keepstone", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # The next call tries again.
                    logger.warning("work on agent %s is put off: %s", agent, error)
                else:
                    self._thread = thread

    def close(self) -> None:
        """Stop after the running piece of work; ``wake`` starts again."""
        with self._guard:
            # Work may outlast the wait: its thread ends after it, as it is no longer the current thread.
            self._closing, thread, self._thread = True, self._thread, None
            self._waiting.clear()
        if thread is not None and thread is not threading.current_thread():
            thread.join(_ENDING_SECONDS)
        with self._guard:
            self._closing = False

    def _next(self) -> str | None:
        with self._guard:
            if not self._is_current():
                return None
            if not self._waiting:
                # Under the guard, so that the next ``wake`` starts a new thread.
                self._thread = None
                return None
            return self._waiting.pop(0)

    def _put_back(self, agent: str) -> None:
        with self._guard:
            if self._is_current() and agent not in self._waiting:
                self._waiting.append(agent)

    def _is_current(self) -> bool:
        return self._thread is threading.current_thread()

    def _run(self) -> None:
        while (agent := self._next()) is not None:
            try:
                if self._work(agent):
                    self._put_back(agent)
            except KeepstoneError as error:
                logger.warning("work on agent %s is put off: %s", agent, type(error).__name__)
            except BaseException as error:  # noqa: BLE001  No failure of one agent may end the thread.
                self._report(agent, error)

    def _report(self, agent: str, error: BaseException) -> None:
        """Log an unexpected error, with the traceback only if this traceback was not logged before.

        The text of the error is left out: it may quote an entry.
        """
        frames = frames_of(error)
        known = frames in self._reported
        self._reported.add(frames)
        where = "" if known else f" at\n{frames}"
        logger.error("work on agent %s failed: %s%s", agent, type(error).__name__, where)
