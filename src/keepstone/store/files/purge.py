"""Removing bytes: purge, clear, and removal of sessions and agents.

An erasure is recorded, synced, before it begins: its marks, which the next process to open the home finishes
and which are struck off at the end, and its lines in the journal, which stay. One that fails before it has
changed anything takes both back.
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
"""The file beside an agent's index that names the journal that was read; derived, so it may be missing."""

_DYING = re.compile(r"\.purge\.(.+)\.\d+?(?:-(\d+))?")
"""Name of a purged agent's folder. The suffix is the inode of the folder to rename next."""

logger = logging.getLogger("keepstone.store")


class Eraser:
    """Removes bytes below one root for good."""

    def __init__(self, root: Path, layout: Layout) -> None:
        self._root = root
        self._layout = layout
        self.erasures = Erasures(root, layout)
        """Counter that is changed before anything is erased, as a killed process cannot do it afterwards."""
        self._owned: list[int] = []

    def purge(self, logs: AgentLogs, session: str, ids: Sequence[str], scope: Scope | None = None) -> int:
        """Remove every byte of entries that a scope still selects, if given; return how many there were.

        Others that write to the session wait for the last steps only, which take little.
        """
        files = PurgedFiles(logs, session, ids, scope)
        if not files.gone:
            return 0
        with closing(PurgeMarks(logs.folder)) as marks, self._seen(logs):
            made = rewrite.overtaking(files.placing, lambda: self._purge(logs, session, files, marks))
            if made:
                files.placing.finish()
                self._checkpoint(logs, session)
                # Last, as until then the next call finishes a purge that was killed.
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
            # A kill after any of these steps loses nothing. The marks let the next process finish the purge.
            # The journal follows before a byte goes, as afterwards nothing could tell which ids were erased.
            # Files change only then.
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
        """Remove the derived data of other versions of keepstone; they make it again from the logs.

        Our own index is removed as well if it could not be opened, as it still has the purged entries.
        """
        ours = self._layout.index_folder(self._root, logs.agent, SCHEMA)
        for other in ours.parent.iterdir() if ours.parent.is_dir() else ():
            is_used = other == ours and not logs.index.in_memory
            if not is_used and other.is_dir() and not other.is_symlink():
                shutil.rmtree(other)

    def clear(self, logs: AgentLogs, session: str, check: SessionCheck | None = None) -> int | None:
        """Empty a session, its archive included, to zero bytes; return its size before, None if missing."""
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
        """Remove a session, marked as dropped at this time; return how many live entries it had."""
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
        logs.folder.sync()  # The name of the lock file has gone just now.
        if log.stat() is None:
            logs.forget_log(session)
        return count

    def finish(self, logs: AgentLogs) -> None:
        """Finish the purges of an agent that were begun and not ended."""
        with closing(PurgeMarks(logs.folder)) as marks:
            begun = marks.pending()
            if not begun and marks.are_there():
                marks.remove(())  # A killed process left a part of a mark: it had purged nothing yet.
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

        Git takes a file that only one side has as it is, and asks no driver.
        """
        if not self._is_seen(logs):
            self.erase_known(logs)
            with suppress(OSError, KeepstoneError):  # Without it the journal is read once more.
                self._see(logs)

    def _is_seen(self, logs: AgentLogs) -> bool:
        """Return whether all that the journal tells was erased here."""
        state = state_of(logs.folder)
        if state is None:
            return True
        # Whatever is in the file's place, or keeps it from being read, the journal is read once more then.
        with suppress(OSError, KeepstoneError), self._seen_folder(logs) as folder:
            fd = folder.open(_SEEN, os.O_RDONLY)
            try:
                # One byte more than the state, so that a longer record is another one.
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
        """Record that the block erases only lives that it adds to the journal itself."""
        is_seen = self._is_seen(logs)
        yield
        with suppress(OSError, KeepstoneError):
            if is_seen:
                self._see(logs)

    def erase_known(self, logs: AgentLogs) -> int:
        """Erase all lives that the journal says were erased; return of how many entries any line was left."""
        known = purge_digests.erased_of(self._root, self._layout, logs.agent)
        count = 0
        for session in [session for session, _, _ in logs.files()] if known.lives else []:
            purged = known.in_session(session)
            if not erased_ids(logs, session, purged):
                continue
            log = logs.log(session)
            with closing(PurgeMarks(logs.folder)) as marks, log.locked():
                # Read again under the lock: others may have written since the first look, which kept nobody
                # waiting.
                ids = erased_ids(logs, session, purged)
                # Marked as if only the index were left, since finishing by ids would take later lives as
                # well. If this process is killed, the journal still counts as unread, and the lines are found
                # again.
                made = marks.add(session, dict.fromkeys(ids, 1), left="index")
                erase_lives(logs, session, purged, ids)
                self._unindex(logs, session, ids)
                marks.remove(made)
            count += len(ids)
        return count

    def take(self, logs: AgentLogs, lines: Iterable[Record]) -> int:
        """Take in another home's journal: erase its lives here, and removed sessions that are empty then.

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
        # Taking the lock has finished log and archive, unless another process was still at it, and has ended.
        with logs.log(session).locked():
            left = marks.pending(session)
            if left:
                self._unindex(logs, session, [str(mark["id"]) for mark in left if "id" in mark])
                marks.remove(left)

    def _unindex(self, logs: AgentLogs, session: str, ids: Sequence[str]) -> None:
        """Remove these entries from the index, and all others that the log of a session does not hold."""
        log = logs.log(session)
        logs.leave_replaced()

        def forget(index: Index) -> None:
            stat = log.stat()
            if stat is None:
                index.drop(session, log)
            # An empty list says that the index holds the log in this state, and none of the ids.
            elif index.at(session, stat, ids) != []:
                index.forget(session, ids)
                index.reread(session, log)

        try:
            logs.query(forget)
        except UnavailableError as error:
            raise _pending(session) from error
        self._checkpoint(logs, session)

    def purge_agent(self, agent: str, *, in_journal: bool = True) -> None:
        """Remove every byte of an agent: first out of sight in one step, then from the disk.

        Without ``in_journal``, as for a purge that another device reported, the journal does not name the
        agent itself.
        """
        self.erasures.note(agent)
        # The journal comes first: once the folders are out of sight, nothing tells which entries there were.
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
        """Delete the folders of purged agents, which are out of sight; return the agents with bytes left."""
        left = self._put_rest_away()
        for folder in self._dying_folders():
            dying = _DYING.fullmatch(folder.name)
            if dying and not dying[2]:
                try:
                    # The index first: while the folder is there, a purge that was killed is taken up again.
                    self._remove_index(self._agent_of(dying[1]))
                    remove_tree(folder)
                    sync_folder(folder.parent)
                except OSError as error:
                    left.add(self._agent_of(dying[1]))
                    warn(dying[1], error)
        return left

    def _put_rest_away(self) -> set[str]:
        """Go on where a process was killed that had put but the first folder of an agent out of sight."""
        left: set[str] = set()
        for folder in self._dying_folders():
            dying = _DYING.fullmatch(folder.name)
            if dying and dying[2]:
                agent = self._agent_of(dying[1])
                rest = self._layout.agent_folders(self._root, agent)
                try:
                    # Only the folder that was meant: an agent of this name may have been created again since.
                    put_away([other for other in rest if number_of(other) == int(dying[2])])
                    rename(folder, folder.with_name(folder.name.removesuffix(f"-{dying[2]}")))
                except OSError as error:
                    left.add(agent)
                    warn(dying[1], error)
        return left

    def _dying_folders(self) -> list[Path]:
        """Return the folders that purges of agents put out of sight, where the system lets us look."""
        found: list[Path] = []
        for parent in {folder.parent for folder in self._layout.agent_folders(self._root, DEFAULT_AGENT)}:
            with suppress(OSError):
                found += parent.glob(".purge.*") if parent.is_dir() else []
        return [folder for folder in found if number_of(folder) is not None]

    def _agent_of(self, folder_name: str) -> str:
        return folder_name if "{agent}" in self._layout.sessions else DEFAULT_AGENT

    def remove_unowned_indexes(self) -> None:
        """Remove the indexes of agents that are not there, as after a person renamed an agent's folder.

        They are looked for again only once an agent's folder came or went.
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
            # Looked at again, as the removals have changed the folder of indexes.
            self._owned = [path.stat().st_mtime_ns for path in (derived, *sorted(parents)) if path.is_dir()]

    def _remove_index(self, agent: str) -> None:
        folder = self._root / INDEX / self._layout.check_agent(agent)
        if folder.is_dir() and not folder.is_symlink():
            remove_tree(folder)


@contextmanager
def _all_or_pending(
    folder: Folder, marks: PurgeMarks, made: Sequence[Record], session: str, logs: Sequence[Log]
) -> Iterator[list[Record]]:
    """Withdraw the marks and the journal's lines of an erasure that fails before it has changed anything.

    The block puts these lines into the list. An erasure that has changed something is finished later, and
    raises PurgePendingError: nothing brings its bytes back.
    """
    files: list[Log] = []
    before: list[Stat | None] = []
    journal_lines: list[Record] = []
    try:
        # Within the block, as reading the states may fail, too: nothing was changed then.
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
    """Write an erasure's lines to the journal; on failure the list holds those that may be written."""
    journal_lines.extend(purge_digests.dated(lines))
    try:
        purge_digests.record(folder, journal_lines)
    except (AccessDeniedError, LockTimeoutError):
        journal_lines.clear()  # The journal could not be opened: there is nothing to take back.
        raise


def _check(session: str, stat: Stat | None, check: SessionCheck | None) -> None:
    if check is not None and stat is not None:
        check(info_of(session, stat))


def _pending(session: str) -> PurgePendingError:
    return PurgePendingError(
        f"purged from session {session!r:.80}, but a reader elsewhere, or a full disk, still keeps old "
        "bytes: end it, or free space, then open the home again, which finishes the purge"
    )
