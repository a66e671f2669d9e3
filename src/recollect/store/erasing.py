"""Removing bytes: purge, clear, and removal of sessions and agents.

A purge is recorded, synced, before it begins and struck off after it ended, so
that whoever opens the home next finishes what a killed process left.
"""

from __future__ import annotations

import logging
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from recollect import rewrite
from recollect.errors import PurgePendingError, RecollectError
from recollect.index import UnavailableError
from recollect.index.database import SCHEMA
from recollect.layout import DEFAULT_AGENT, INDEX, Layout
from recollect.log import Log
from recollect.model import Record
from recollect.store.agent_logs import AgentLogs
from recollect.store.dropped import mark_dropped
from recollect.store.purging import PurgeMarks

TIMEOUT = 5.0
"""Seconds to wait for readers that keep purged bytes in the index's journal."""

_DYING = re.compile(r"\.purge\.(.+)\.\d+")

logger = logging.getLogger("recollect.store")


class Eraser:
    """Removes bytes below one root for good."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._root = root
        self._layout = layout

    def purge(self, logs: AgentLogs, session: str, ids: Sequence[str]) -> int:
        """Remove every byte of entries; return how many of them there were."""
        log, archive = logs.log(session), logs.archive(session)
        if not rewrite.mentioned(log, ids) | rewrite.mentioned(archive, ids):
            return 0
        with closing(PurgeMarks(logs.folder)) as marks, log.locked():
            there = sorted(rewrite.mentioned(log, ids) | rewrite.mentioned(archive, ids))
            made = marks.add(session, there)
            self._erase(logs, session, there)
            marks.remove(made)
        self.finish(logs)
        return len(there)

    def _erase(self, logs: AgentLogs, session: str, ids: Sequence[str]) -> None:
        log = logs.log(session)
        logs.follow(session, log, log.stat())
        rewrite.purge(logs.archive(session), ids)
        rewritten = rewrite.purge(log, ids)
        try:
            logs.asking(lambda index: index.forget(session, ids))
        except UnavailableError as error:
            raise _pending(session) from error
        if rewritten is not None:
            logs.relocate(session, log, rewritten, folded=False)
        self._checkpoint(logs, session)

    def _checkpoint(self, logs: AgentLogs, session: str) -> None:
        try:
            self._remove_other_versions(logs)
        except OSError as error:
            raise _pending(session) from error
        if not logs.index.checkpoint(TIMEOUT):
            raise _pending(session)

    def _remove_other_versions(self, logs: AgentLogs) -> None:
        """Remove what other versions of recollect derived; they make it again from the logs.

        Our own as well where it could not be opened, so that it forgot nothing.
        """
        ours = self._layout.index_folder(self._root, logs.agent, SCHEMA)
        for other in ours.parent.iterdir() if ours.parent.is_dir() else ():
            is_used = other == ours and not logs.index.in_memory
            if not is_used and other.is_dir() and not other.is_symlink():
                shutil.rmtree(other)

    def clear(self, logs: AgentLogs, session: str) -> int | None:
        """Empty a session, its archive included, to zero bytes; return its size before, None if missing."""
        log = logs.log(session)
        if log.stat() is None:
            return None
        with log.locked():
            stat = log.stat()
            self._remove_archive(logs, session)
            log.truncate()
            logs.follow(session, log, log.stat())
            with suppress(UnavailableError):
                logs.index.checkpoint(0)
        return stat.size if stat else None

    def remove(self, logs: AgentLogs, session: str) -> bool:
        """Remove a session with archive and lock file; False if it is missing."""
        return self._take_away(logs, session, None) is not None

    def drop(self, logs: AgentLogs, session: str, ts: str) -> int:
        """Remove a session, marked as dropped at this time; return how many live entries it had."""
        return self._take_away(logs, session, ts) or 0

    def _take_away(self, logs: AgentLogs, session: str, dropped: str | None) -> int | None:
        log = logs.log(session)
        if log.stat() is None:
            return None
        with closing(PurgeMarks(logs.folder)) as marks, log.locked():
            count = len(logs.records(session)) if dropped else 0
            made = marks.add(session, None, dropped)
            self._remove(logs, session, log, dropped)
            marks.remove(made)
        logs.forget_log(session)
        return count

    def _remove(self, logs: AgentLogs, session: str, log: Log, dropped: str | None) -> None:
        if dropped:
            mark_dropped(logs.folder, session, dropped)
        self._remove_archive(logs, session)
        log.remove()
        try:
            logs.asking(lambda index: index.drop(session))
        except UnavailableError as error:
            raise _pending(session) from error
        self._checkpoint(logs, session)

    def _remove_archive(self, logs: AgentLogs, session: str) -> None:
        archive = logs.archive(session)
        with suppress(FileNotFoundError):
            logs.folder.unlink(archive.name)

    def finish(self, logs: AgentLogs) -> None:
        """Finish the purges of an agent that were begun and not ended."""
        with closing(PurgeMarks(logs.folder)) as marks:
            for mark in marks.pending():
                try:
                    self._finish(logs, marks, mark)
                except RecollectError as error:
                    name = type(error).__name__
                    logger.warning("a purge of agent %s is still to be finished: %s", logs.agent, name)

    def _finish(self, logs: AgentLogs, marks: PurgeMarks, mark: Record) -> None:
        session = str(mark["session"])
        log = logs.log(session)
        with log.locked():
            if mark not in marks.pending():
                return  # Another process was still at it, and has ended.
            if "id" in mark:
                self._erase(logs, session, [str(mark["id"])])
            else:
                self._remove(logs, session, log, str(mark.get("dropped", "")))
            marks.remove([mark])

    def purge_agent(self, agent: str) -> None:
        """Remove every byte of an agent: first out of sight in one step, then from the disk."""
        for folder in self._layout.agent_folders(self._root, agent):
            with suppress(FileNotFoundError):
                folder.rename(folder.with_name(f".purge.{folder.name}.{time.time_ns()}"))
        left = self.finish_agents()
        try:
            self._remove_index(agent)
        except OSError:
            left.add(agent)
        if agent in left:
            raise PurgePendingError(
                f"agent {agent!r} is gone, but some of its bytes could not be removed: end the programs that "
                "use it, or mend the disk, then open the home again, which finishes the purge"
            )

    def finish_agents(self) -> set[str]:
        """Remove what purges of whole agents have put out of sight; return the agents of which bytes stay."""
        left: set[str] = set()
        for parent in {folder.parent for folder in self._layout.agent_folders(self._root, DEFAULT_AGENT)}:
            for folder in _dying(parent):
                dying = _DYING.fullmatch(folder.name)
                if dying and folder.is_dir() and not folder.is_symlink():
                    try:
                        self._remove_index(self._agent_of(dying[1]))
                        _remove_tree(folder)
                    except OSError as error:
                        left.add(self._agent_of(dying[1]))
                        logger.warning(
                            "a purge of agent %s is still to be finished: %s", dying[1], type(error).__name__
                        )
        return left

    def _agent_of(self, folder_name: str) -> str:
        return folder_name if "{agent}" in self._layout.sessions else DEFAULT_AGENT

    def _remove_index(self, agent: str) -> None:
        folder = self._root / INDEX / self._layout.check_agent(agent)
        if folder.is_dir() and not folder.is_symlink():
            _remove_tree(folder)


def _dying(parent: Path) -> list[Path]:
    """Return what purges have put out of sight; nothing where the system does not let us look."""
    try:
        return list(parent.glob(".purge.*")) if parent.is_dir() else []
    except OSError:
        return []


def _remove_tree(folder: Path) -> None:
    """Remove a folder, also while somebody who still has it open makes files in it."""
    deadline = time.monotonic() + TIMEOUT
    while folder.exists():
        try:
            shutil.rmtree(folder)
        except PermissionError:
            raise
        except OSError:
            if time.monotonic() >= deadline:
                raise


def _pending(session: str) -> PurgePendingError:
    return PurgePendingError(
        f"purged from session {session!r:.80}, but a reader elsewhere, or a full disk, still keeps old bytes "
        "of the index: end it, or free space, then open the home again, which finishes the purge"
    )
