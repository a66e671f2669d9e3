"""Removing bytes: purge, clear, and removal of sessions and agents.

Before an erasure changes anything, its marks and its journal lines are written and synced. With the marks,
the next process that opens the home can finish a killed erasure; they are removed at the end, while the
journal lines stay. An erasure that fails before it has changed anything withdraws both.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from keepstone.errors import AccessDeniedError, KeepstoneError, LockTimeoutError, PurgePendingError
from keepstone.filesystem.atomic import truncate, write_all
from keepstone.filesystem.confine import Folder, sync_folder
from keepstone.filesystem.layout import DEFAULT_AGENT, INDEX, Layout
from keepstone.index import Index, UnavailableError
from keepstone.index.database import SCHEMA
from keepstone.log import rewrite
from keepstone.log.log_file import Log, Stat
from keepstone.model import Record, Scope
from keepstone.store.files import purge_digests
from keepstone.store.files.agent_logs import AgentLogs
from keepstone.store.files.dying_folders import number_of, put_away, remove_tree, rename, warn
from keepstone.store.files.erased_lives import erase_lives, erased_ids, is_empty, state_of
from keepstone.store.files.erasures import Erasures
from keepstone.store.files.live_entries import LiveEntries, ready_unlocked
from keepstone.store.files.purge_marks import PurgeMarks, erase_session, lines_of_entries, lines_of_session
from keepstone.store.files.purged_files import PurgedFiles
from keepstone.store.files.session_files import info_of
from keepstone.store.files.spellings import parts
from keepstone.store.protocol import SessionCheck

TIMEOUT = 5.0
"""Seconds to wait for readers that keep purged bytes in the index's journal."""

_SEEN = "purged.seen"
"""Name of the file with the last processed state of the journal; it is derived and may be missing."""

_DYING = re.compile(r"\.purge\.(.+)\.\d+?(?:-(\d+))?")
"""Name of a purged agent's folder. A number after ``-`` is the inode of its second one, yet to be renamed."""

logger = logging.getLogger("keepstone.store")


class Eraser:
    """Removes bytes below one root for good."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._root = root
        self._layout = layout
        self.erasures = Erasures(root, layout)
        """Announces erasures before anything is erased, as a killed process could not do so afterwards."""
        self._owned: list[int] = []

    def purge(self, logs: AgentLogs, session: str, ids: Sequence[str], scope: Scope | None = None) -> int:
        """Remove every byte of the entries that a scope, if given, still selects; return how many.

        Other writers to the session wait only for the last steps, which are short.
        """
        files = PurgedFiles(logs, session, ids, scope)
        if not files.gone:
            return 0
        with closing(PurgeMarks(logs.folder)) as marks, self._seen(logs):
            made = rewrite.overtaking(files.placing, lambda: self._purge(logs, session, files, marks))
            if made:
                files.placing.finish()
                self._checkpoint(logs, session)
                # Remove the marks last: until then, the next call finishes a killed purge.
                marks.remove(made)
        self.finish(logs)
        self.remove_unowned_indexes()
        return len(made)

    def _purge(
        self, logs: AgentLogs, session: str, files: PurgedFiles, marks: PurgeMarks
    ) -> Sequence[Record]:
        """Remove entries from the files of a session; return the marks of the work left in the index."""
        with files.begun(), files.placing.locked():
            files.check()
            if not (gone := files.gone):
                return []
            self.erasures.note(logs.agent)
            # A kill after any of these steps loses nothing. First the marks are written, with which the next
            # process can finish the purge. Then the journal is written, since after the removal no file shows
            # which ids were erased. Only then do the files change.
            lives = dict.fromkeys(gone, 1) | logs.past_lives.with_unnamed(session, gone)
            made = marks.add(session, lives)
            with _all_or_pending(logs.folder, marks, made, session, files.logs) as journal_lines:
                _tell(logs.folder, journal_lines, lines_of_entries(session, made))
                logs.leave_replaced()  # An index that another process rebuilt has the text as well.
                files.put(gone)
                marks.leave_index(made)
        return made

    def _checkpoint(self, logs: AgentLogs, session: str) -> None:
        try:
            self._remove_other_versions(logs)
            logs.query(Index.erase)
            is_clean = logs.index.erase_journal(TIMEOUT) and not logs.index.replaced()
        except (OSError, UnavailableError) as error:
            raise _pending(session) from error
        if not is_clean:
            raise _pending(session)

    def _remove_other_versions(self, logs: AgentLogs) -> None:
        """Remove the indexes of other keepstone versions, which rebuild them from the logs.

        This version's index is removed as well if it could not be opened, since it still has the purged
        entries.
        """
        ours = self._layout.index_folder(self._root, logs.agent, SCHEMA)
        for other in ours.parent.iterdir() if ours.parent.is_dir() else ():
            is_used = other == ours and not logs.index.in_memory
            if not is_used and other.is_dir() and not other.is_symlink():
                shutil.rmtree(other)

    def clear(self, logs: AgentLogs, session: str, check: SessionCheck | None = None) -> int | None:
        """Empty a log and remove its archive; return the log's former size, None if it is missing."""
        stat = logs.log(session).stat()
        done = self._take_away(logs, session, {"cleared": True}, check)
        return stat.size if stat is not None and done is not None else None

    def remove(
        self, logs: AgentLogs, session: str, check: SessionCheck | None = None, *, in_journal: bool = True
    ) -> bool:
        """Remove a session with archive and lock file; False if it is missing.

        Without ``in_journal``, as for a removal that another device reported, the journal does not name the
        session itself.
        """
        return self._take_away(logs, session, {} if in_journal else {"told": False}, check) is not None

    def drop(self, logs: AgentLogs, session: str, ts: str, check: SessionCheck | None = None) -> int:
        """Remove a session and mark it as dropped at ``ts``; return how many live entries it had."""
        return self._take_away(logs, session, {"dropped": ts}, check) or 0

    def _take_away(
        self, logs: AgentLogs, session: str, how: Record, check: SessionCheck | None
    ) -> int | None:
        log = logs.log(session)
        if log.stat() is None:
            return None
        if "dropped" in how:
            ready_unlocked(logs, session, log)
        with closing(PurgeMarks(logs.folder)) as marks, self._seen(logs), log.locked():
            _check(session, log.stat(), check)
            count = LiveEntries(logs, log, session, log.stat()).count() if "dropped" in how else 0
            others = logs.spellings(session)
            self.erasures.note(logs.agent)
            made = marks.add_session(session, log, how)
            with _all_or_pending(logs.folder, marks, made, session, [log, *others]) as journal_lines:
                _tell(logs.folder, journal_lines, lines_of_session(logs.folder, [log, *others], made[0]))
                erase_session(logs.folder, log, others, made[0])
                self._unindex(logs, session, ())
                marks.remove(made)
        logs.folder.sync()  # Sync the removal of the lock file.
        if log.stat() is None:
            logs.forget_log(session)
        return count

    def finish(self, logs: AgentLogs) -> None:
        """Finish an agent's killed purges, and erase the lives that a merged journal names."""
        with closing(PurgeMarks(logs.folder)) as marks:
            begun = marks.pending()
            if not begun and marks.are_there():
                marks.remove(())  # A process was killed while it wrote its mark: nothing was purged.
            for session in dict.fromkeys(str(mark["session"]) for mark in begun):
                try:
                    self._finish(logs, marks, session)
                except KeepstoneError as error:
                    name = type(error).__name__
                    logger.warning("a purge of agent %s is still to be finished: %s", logs.agent, name)
        try:
            self._erase_merged(logs)
        except KeepstoneError as error:
            logger.warning(
                "purges of agent %s elsewhere are to be finished: %s", logs.agent, type(error).__name__
            )

    def _erase_merged(self, logs: AgentLogs) -> None:
        """Erase the lives that the journal names as erased on another branch or device.

        If only one side has a file, git takes it unchanged, without the merge driver.
        """
        if not self._is_seen(logs):
            self.erase_known(logs)
            with suppress(OSError, KeepstoneError):  # On failure the journal is read once more.
                self._see(logs)

    def _is_seen(self, logs: AgentLogs) -> bool:
        """Return whether every erasure in the journal has been applied here."""
        state = state_of(logs.folder)
        if state is None:
            return True
        # If the record is missing, unreadable or not a file, the journal is read once more.
        with suppress(OSError, KeepstoneError), self._seen_folder(logs) as folder:
            fd = folder.open(_SEEN, os.O_RDONLY)
            try:
                # Read one byte more than the state has, so that a longer record does not match.
                return os.read(fd, len(state) + 1) == state.encode()
            finally:
                os.close(fd)
        return False

    def _see(self, logs: AgentLogs) -> None:
        with self._seen_folder(logs, create=True) as folder:
            fd = folder.open(_SEEN, os.O_WRONLY | os.O_CREAT)
            try:
                truncate(fd, 0)
                write_all(fd, (state_of(logs.folder) or "").encode())
            finally:
                os.close(fd)

    def _seen_folder(self, logs: AgentLogs, *, create: bool = False) -> Folder:
        path = self._layout.index_folder(self._root, logs.agent, SCHEMA).parent
        return Folder(path, root=self._root, create=create, durable=False)

    @contextmanager
    def _seen(self, logs: AgentLogs) -> Iterator[None]:
        """Keep a processed journal recorded as processed, as the block erases the lives that it adds."""
        is_seen = self._is_seen(logs)
        yield
        with suppress(OSError, KeepstoneError):
            if is_seen:
                self._see(logs)

    def erase_known(self, logs: AgentLogs) -> int:
        """Erase all lives that the journal records as erased; return how many ids still had any."""
        known = purge_digests.erased_of(self._root, self._layout, logs.agent)
        count = 0
        for session in [session for session, _, _ in logs.files()] if known.lives else []:
            purged = known.in_session(session)
            if not erased_ids(logs, session, purged):
                continue
            log = logs.log(session)
            with closing(PurgeMarks(logs.folder)) as marks, log.locked():
                # Read again under the lock, as others may have written since the first reading, which was
                # done without the lock so that no writer waited.
                ids = erased_ids(logs, session, purged)
                # The marks state that only the index is left, since finishing the purge by ids would also
                # remove later lives. If this process is killed, the journal still counts as unread, and the
                # lines are found again.
                made = marks.add(session, dict.fromkeys(ids, 1), left="index")
                erase_lives(logs, session, purged, ids)
                self._unindex(logs, session, ids)
                marks.remove(made)
            count += len(ids)
        return count

    def take(self, logs: AgentLogs, lines: Iterable[Record]) -> int:
        """Apply another home's journal here: erase lives, and remove removed sessions if they are empty.

        Returns the number of entries with erased lives.
        """
        new = purge_digests.take(logs.folder, lines)
        count = self.erase_known(logs) if new else 0
        removed = {line["removed"] for line in new if "removed" in line}
        is_whole = purge_digests.gone_name("") in removed  # The line of a purged agent.
        for session in [session for session, _, _ in logs.files()] if removed else []:
            is_removed = is_whole or purge_digests.gone_name(session) in removed
            if is_removed and is_empty(logs, session):
                self.remove(logs, session, in_journal=False)
        return count

    def _finish(self, logs: AgentLogs, marks: PurgeMarks, session: str) -> None:
        # Taking the lock has finished log and archive. No marks are left if another process completed the
        # purge first.
        with logs.log(session).locked():
            left = marks.pending(session)
            if left:
                self._unindex(logs, session, [str(mark["id"]) for mark in left if "id" in mark])
                marks.remove(left)

    def _unindex(self, logs: AgentLogs, session: str, ids: Sequence[str]) -> None:
        """Remove these entries from the index, and all others that the session's log no longer holds."""
        log = logs.log(session)
        logs.leave_replaced()

        def forget(index: Index) -> None:
            stat = log.stat()
            if stat is None:
                index.drop(session, log)
            # An empty list means that the index is current with the log and holds none of the ids.
            elif index.at(session, stat, ids) != []:
                index.forget(session, ids)
                index.reread(session, log)

        try:
            logs.query(forget)
        except UnavailableError as error:
            raise _pending(session) from error
        self._checkpoint(logs, session)

    def purge_agent(self, agent: str, *, in_journal: bool = True) -> None:
        """Remove every byte of an agent: rename its folders so that it no longer exists, then delete them.

        Without ``in_journal``, as for a purge that another device reported, the journal does not name the
        agent itself.
        """
        self.erasures.note(agent)
        # The journal comes first: once the folders are renamed, nothing shows which entries existed.
        purge_digests.record_agent(self._root, self._layout, agent, in_journal=in_journal)
        put_away(self._layout.agent_folders(self._root, agent))
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
        """Delete the renamed folders of purged agents; return the agents that still have bytes on disk."""
        left = self._put_rest_away()
        for folder in self._dying_folders():
            dying = _DYING.fullmatch(folder.name)
            if dying and not dying[2]:
                try:
                    # The index is removed first: as long as the folder exists, a killed purge is resumed.
                    self._remove_index(self._agent_of(dying[1]))
                    remove_tree(folder)
                    sync_folder(folder.parent)
                except OSError as error:
                    left.add(self._agent_of(dying[1]))
                    warn(dying[1], error)
        return left

    def _put_rest_away(self) -> set[str]:
        """Rename the second folder of each agent whose purge was killed after it renamed the first folder."""
        left: set[str] = set()
        for folder in self._dying_folders():
            dying = _DYING.fullmatch(folder.name)
            if dying and dying[2]:
                agent = self._agent_of(dying[1])
                rest = self._layout.agent_folders(self._root, agent)
                try:
                    # Only the folder with the recorded inode: a new agent of this name may have been created.
                    put_away([other for other in rest if number_of(other) == int(dying[2])])
                    rename(folder, folder.with_name(folder.name.removesuffix(f"-{dying[2]}")))
                except OSError as error:
                    left.add(agent)
                    warn(dying[1], error)
        return left

    def _dying_folders(self) -> list[Path]:
        """Return the folders that agent purges have renamed; unreadable parent folders are skipped."""
        found: list[Path] = []
        for parent in {folder.parent for folder in self._layout.agent_folders(self._root, DEFAULT_AGENT)}:
            with suppress(OSError):
                found += parent.glob(".purge.*") if parent.is_dir() else []
        return [folder for folder in found if number_of(folder) is not None]

    def _agent_of(self, folder_name: str) -> str:
        return folder_name if "{agent}" in self._layout.sessions else DEFAULT_AGENT

    def remove_unowned_indexes(self) -> None:
        """Remove the indexes of agents that do not exist, as after a user renamed an agent's folder.

        Searches again only after an agent's folder or an index folder was added or removed.
        """
        derived = self._root / INDEX
        parents = {folder.parent for folder in self._layout.agent_folders(self._root, DEFAULT_AGENT)}
        with suppress(OSError, KeepstoneError):
            state = [path.stat().st_mtime_ns for path in (derived, *sorted(parents)) if path.is_dir()]
            if state == self._owned or not derived.is_dir():
                return
            agents = set(self._layout.agents(self._root))
            for path in derived.iterdir():
                is_index = path.is_dir() and not path.is_symlink() and not path.name.startswith(".")
                if is_index and path.name not in agents:
                    remove_tree(path)
            # Read the times again, as the removals have changed the time of the index folder.
            self._owned = [path.stat().st_mtime_ns for path in (derived, *sorted(parents)) if path.is_dir()]

    def _remove_index(self, agent: str) -> None:
        folder = self._root / INDEX / self._layout.check_agent(agent)
        if folder.is_dir() and not folder.is_symlink():
            remove_tree(folder)


@contextmanager
def _all_or_pending(
    folder: Folder, marks: PurgeMarks, made: Sequence[Record], session: str, logs: Sequence[Log]
) -> Iterator[list[Record]]:
    """Withdraw the marks and journal lines of an erasure that fails before it has changed anything.

    The block adds its journal lines to the yielded list. An erasure that has changed something cannot be
    undone: it raises PurgePendingError and is finished later.
    """
    files: list[Log] = []
    before: list[Stat | None] = []
    journal_lines: list[Record] = []
    try:
        # Inside the ``try``, as reading the states may fail, too, before anything was changed.
        files += [part for log in logs for part in parts(folder, log)]
        before += [file.stat() for file in files]
        yield journal_lines
    except (KeepstoneError, UnavailableError) as error:
        if before and (isinstance(error, PurgePendingError) or [file.stat() for file in files] != before):
            raise _pending(session) from error
        try:
            marks.remove(made)
            if journal_lines:
                purge_digests.withdraw(folder, journal_lines)
        except KeepstoneError:
            raise _pending(session) from error
        raise


def _tell(folder: Folder, journal_lines: list[Record], lines: Iterable[Record]) -> None:
    """Write an erasure's lines to the journal.

    On failure ``journal_lines`` holds the lines that the journal may already contain.
    """
    journal_lines.extend(purge_digests.dated(lines))
    try:
        purge_digests.record(folder, journal_lines)
    except (AccessDeniedError, LockTimeoutError):
        journal_lines.clear()  # The journal could not be opened, so there is nothing to withdraw.
        raise


def _check(session: str, stat: Stat | None, check: SessionCheck | None) -> None:
    if check is not None and stat is not None:
        check(info_of(session, stat))


def _pending(session: str) -> PurgePendingError:
    return PurgePendingError(
        f"purged from session {session!r:.80}, but a reader elsewhere, or a full disk, still keeps old "
        "bytes: end it, or free space, then open the home again, which finishes the purge"
    )
