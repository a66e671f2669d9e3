"""The store on plain files: logs are the source of truth, and one index per agent makes queries fast.

``FileStore`` implements ``Store``, whose docstrings describe each method.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from keepstone.errors import (
    AgentNotFoundError,
    EntryNotFoundError,
    KeepstoneError,
    SessionNotFoundError,
)
from keepstone.files import AgentFiles
from keepstone.filesystem.confine import MovedError
from keepstone.filesystem.layout import SUGGESTIONS, Layout
from keepstone.index import Index, UnavailableError
from keepstone.log.line import apply, dump
from keepstone.log.titles import TITLE_ID
from keepstone.model import Entry, Record, Scope, SessionInfo, SessionSummary, Version
from keepstone.store.as_of import KeptReaders, PastReader, vectors_today
from keepstone.store.background import Background
from keepstone.store.changes import Change
from keepstone.store.decay import Decay
from keepstone.store.files import (
    deletion,
    file_deletions,
    filtering,
    lists,
    lookup,
    purge_digests,
    raw_files,
    renaming,
    suggestion_file,
    summaries,
    writing,
)
from keepstone.store.files.agent_logs import AgentLogs, unusable
from keepstone.store.files.agent_pool import OpenAgents
from keepstone.store.files.dropped import dropped_at, dropped_marks, take_dropped
from keepstone.store.files.history import gone, state
from keepstone.store.files.home_language import language_of, record_language
from keepstone.store.files.home_space import HomeSpace
from keepstone.store.files.home_state import take_over
from keepstone.store.files.intake import Patience, take_in_some
from keepstone.store.files.live_entries import ready_unlocked
from keepstone.store.files.log_changes import Changes
from keepstone.store.files.log_reader import LogReader
from keepstone.store.files.maintenance.file_maintenance import FileMaintenance
from keepstone.store.files.past_states import PastStates
from keepstone.store.files.purge import Eraser
from keepstone.store.files.session_files import info_of
from keepstone.store.paging import Page
from keepstone.store.protocol import Compacted, Ids, Modification, Revision, SessionCheck, ids_and_scope
from keepstone.store.reader import Reader
from keepstone.store.removal_marks import DroppedMark, GoneIds, PurgedIds
from keepstone.store.resolving import (
    NoEntries,
    OnConflict,
    Written,
    no_deleted_entry,
    no_entry,
    refuse_other,
    resolve,
)
from keepstone.store.sharing.grants import Grant
from keepstone.store.sharing.grants_file import GrantsFile, forget_grants_to
from keepstone.store.suggestion_lines import without
from keepstone.store.transfer import RawLine, are_same
from keepstone.vector import Space, Vector

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("keepstone.store")


_TRIES = 5
"""Maximum number of tries of a change while the agent's folder is being replaced."""


def again_if_moved(change: Callable[P, T]) -> Callable[P, T]:
    """Repeat a change whose folder was renamed, replaced or removed before anything was written.

    The next try opens the present target of the path.
    """

    @wraps(change)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> T:
        for _ in range(_TRIES - 1):
            with suppress(MovedError):
                return change(*args, **kwargs)
        return change(*args, **kwargs)

    return repeated


class FileStore:
    """A ``Store`` on a folder."""

    def __init__(
        self, root: Path, layout: Layout, *, durable: bool = True, language: str | None = None
    ) -> None:
        self.root = root
        take_over(root)
        recorded = language_of(root)
        self.language = language or recorded
        self._records_language = self.language != recorded
        self._layout = layout
        self._durable = durable
        self._agents = OpenAgents(self._open)
        self._pasts = KeptReaders[PastStates]()
        self._intake = Background(self._take_in_some)
        self._eraser = Eraser(root, layout)
        self._space = HomeSpace(root)
        self.maintenance = FileMaintenance(
            self, root, layout, self._using, lambda folder: FileStore(folder, layout)
        )
        self.sign_ins = None
        self.answers = None
        self.erased_state = self._eraser.erasures.state
        self._erased: list[Callable[[str], None]] = [self._pasts.forget]
        self.on_erased = self._erased.append
        self._eraser.finish_agents()
        self._eraser.remove_unowned_indexes()

    def _open(self, agent: str, create: bool) -> AgentLogs:  # noqa: FBT001  A callback, called by place.
        self._layout.refuse_twin(self.root, agent)
        logs = AgentLogs(
            self.root,
            self._layout,
            agent,
            durable=self._durable,
            create=create,
            most_logs=self._agents.logs_each,
            finish=self._eraser.finish,
            language=self.language,
            leave=self._intake.wake,
        )
        if self._records_language:
            record_language(self.root, self.language)
            self._records_language = False
        try:
            self._layout.refuse_twin(self.root, agent)  # Another process may just have created a twin.
        except KeepstoneError:
            logs.close()
            raise
        return logs

    def _using(self, agent: str) -> AbstractContextManager[AgentLogs | None]:
        return self._agents.using(agent, create=False)

    def check_agent(self, agent: object) -> str:
        return self._layout.check_agent(agent)

    def check_session(self, session: object) -> str:
        self._layout.session_file(session)
        return str(session)

    def agents(self) -> list[str]:
        return self._layout.agents(self.root)

    def files(self, agent: str) -> AgentFiles:
        return AgentFiles(
            self._layout.files_folder(self.root, agent),
            root=self.root,
            durable=self._durable,
            refuse=partial(self._layout.refuse_twin, self.root, agent),
            creating=partial(file_deletions.begin, self.root, agent, durable=self._durable),
            deleting=partial(file_deletions.record, self.root, agent, durable=self._durable),
        )

    def sessions(self, agent: str, limit: int | None = None, cursor: str | None = None) -> Page[SessionInfo]:
        with self._using(agent) as logs:
            return lists.sessions(logs, limit, cursor) if logs else Page()

    def session(self, agent: str, session: str) -> SessionInfo | None:
        with self._using(agent) as logs:
            stat = logs.log(session).stat() if logs else None
            return None if stat is None else info_of(session, stat)

    def sessions_state(self, agent: str) -> tuple[int, int] | None:
        try:
            status = self._layout.sessions_folder(self.root, agent).stat()
        except OSError:
            return None
        return status.st_ino, status.st_mtime_ns

    @again_if_moved
    def summaries(
        self, agent: str, sessions: Sequence[str] | None = None, *, texts: bool = True
    ) -> list[SessionSummary]:
        with self._using(agent) as logs:
            return summaries.summaries(logs, sessions, texts=texts) if logs else []

    # Writing

    @again_if_moved
    def set_title(self, agent: str, session: str, title: str | None, ts: str) -> None:
        with self._using(agent) as logs:
            if logs is None or logs.log(session).stat() is None:
                raise SessionNotFoundError(agent, session)
            summaries.set_title(logs, session, {"id": TITLE_ID, "ts": ts, "summary": title})

    @again_if_moved
    def create(self, agent: str, session: str) -> None:
        with self._agents.using(agent, create=True) as logs:
            log = logs.log(session)
            with log.locked():
                log.create()

    def append(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        return self._write(agent, session, records, refuse_other)

    def put(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        return self._write(agent, session, records, apply)

    @again_if_moved
    def _write(
        self, agent: str, session: str, records: Sequence[Record], on_conflict: OnConflict
    ) -> list[Entry]:
        # Serialize before anything is opened, so that an invalid record does not leave an empty session
        # behind.
        written = list(map(Written, records, map(dump, records)))
        if not written:
            return []
        are_repeated = len({line.record["id"] for line in written}) < len(written)
        if are_repeated and self.session(agent, session) is None:
            resolve(written, NoEntries(), on_conflict)  # Raises before anything is created.
        with self._agents.using(agent, create=True) as logs:
            return writing.write(logs, session, written, on_conflict)

    @again_if_moved
    def modify(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        with self._using(agent) as logs:
            if logs is None:
                raise no_entry(entry_id, session)
            return writing.modify(logs, session, entry_id, change)

    @again_if_moved
    def restore(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        with self._using(agent) as logs:
            if logs is None:
                raise no_deleted_entry(entry_id, session)
            return writing.restore(logs, session, entry_id, change)

    @again_if_moved
    def copy(self, agent: str, session: str, new: str, until: str | None = None) -> None:
        with self._using(agent) as logs:
            if logs is None:
                raise SessionNotFoundError(agent, session)
            renaming.copy(logs, session, new, until)

    @again_if_moved
    def rename(self, agent: str, session: str, new: str) -> None:
        with self._using(agent) as logs:
            if logs is None:
                raise SessionNotFoundError(agent, session)
            renaming.rename(logs, session, new)

    @again_if_moved
    def revise(self, agent: str, session: str, revision: Revision, ids: Sequence[str] = ()) -> list[Entry]:
        with self._using(agent) as logs:
            if logs is None:
                raise EntryNotFoundError(f"there is no agent {agent!r:.80}")
            return writing.revise(logs, session, revision, ids)

    @again_if_moved
    def delete(self, agent: str, session: str, ids: Ids, ts: str) -> int:
        with self._using(agent) as logs:
            return deletion.delete(logs, session, *ids_and_scope(ids), ts) if logs else 0

    @again_if_moved
    def count(self, agent: str, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
        with self._using(agent) as logs:
            return logs is None or writing.count(logs, session, increments, wait=wait)

    @again_if_moved
    def compact(
        self, agent: str, session: str, decay: Decay | None = None, *, wait: bool = True
    ) -> Compacted:
        with self._using(agent) as logs:
            return writing.compact(logs, session, decay, wait=wait) if logs else Compacted()

    def compacted_size(self, agent: str, session: str) -> int:
        with self._using(agent) as logs, suppress(UnavailableError):
            return max(0, logs.query(Index.compacted, session)) if logs else 0
        return 0

    # Erasing

    @contextmanager
    def _erasing(self, agent: str) -> Iterator[AgentLogs | None]:
        """Lease an agent's logs to erase something, and notify processes that cache its memory."""
        with self._using(agent) as logs:
            if logs is None:
                yield None
                return
            with self._told(agent):
                yield logs

    @contextmanager
    def _told(self, agent: str) -> Iterator[None]:
        before = self._eraser.erasures.state(agent)
        # Notify after a failure, too, as a part of the erasure may be done.
        try:
            yield
        finally:
            if self._eraser.erasures.state(agent) != before:  # Else nothing was erased.
                self._eraser.erasures.note(agent)
            for tell in self._erased:
                tell(agent)

    @contextmanager
    def _forgetting(self, agent: str, session: str, ids: Sequence[str] | None = None) -> Iterator[None]:
        """Remove suggestions about erased entries before the block, so that a kill leaves none, and after."""
        if ids is not None:
            self._forget(agent, session, ids)
        yield
        self._forget(agent, session, ids)

    def _forget(self, agent: str, session: str, ids: Sequence[str] | None) -> None:
        wanted = None if ids is None else frozenset(ids)
        if self.keeps_suggestions and self.suggestion_lines(agent):
            self.change_suggestions(agent, lambda lines: without(lines, session, wanted))

    @again_if_moved
    def purge(self, agent: str, session: str, ids: Ids) -> int:
        with self._erasing(agent) as logs:
            if logs is None:
                return 0
            ready_unlocked(logs, session, logs.log(session))
            wanted, scope = ids_and_scope(ids)
            # If an entry no longer matches the scope, a suggestion about it is outdated and may be removed,
            # too.
            with self._forgetting(agent, session, wanted):
                return self._eraser.purge(logs, session, wanted, scope)

    @again_if_moved
    def clear(self, agent: str, session: str, *, check: SessionCheck | None = None) -> int | None:
        with self._erasing(agent) as logs, self._forgetting(agent, session):
            return self._eraser.clear(logs, session, check) if logs else None

    @again_if_moved
    def remove(self, agent: str, session: str, *, check: SessionCheck | None = None) -> bool:
        with self._erasing(agent) as logs, self._forgetting(agent, session):
            return self._eraser.remove(logs, session, check) if logs else False

    @again_if_moved
    def drop(self, agent: str, session: str, ts: str, *, check: SessionCheck | None = None) -> int:
        with self._erasing(agent) as logs, self._forgetting(agent, session):
            return self._eraser.drop(logs, session, ts, check) if logs else 0

    def dropped(self, agent: str) -> list[str]:
        with self._using(agent) as logs:
            return sorted(dropped_at(logs.folder)) if logs else []

    def purge_agent(self, agent: str) -> None:
        if agent not in self.agents():
            raise AgentNotFoundError(
                f"there is no agent {agent!r} in {self.root}: see home.agents(), or keepstone agents list"
            )
        file_deletions.record_all(self.root, agent, self.files(agent))
        self._purge_agent(agent, in_journal=True)

    def remove_purged(self, agent: str) -> None:
        """Remove the rest of an agent that was purged on another device."""
        self._purge_agent(agent, in_journal=False)

    def _purge_agent(self, agent: str, *, in_journal: bool) -> None:
        forget_grants_to(self.root, self._layout, agent)  # First: a later agent of this name has no access.
        self._agents.drop(agent)
        with self._told(agent):
            self._eraser.purge_agent(agent, in_journal=in_journal)
        self._agents.drop(agent)  # Another thread may have opened it before the rename.

    def grants(self, agent: str) -> list[Grant]:
        return GrantsFile(self.root, self._layout, agent).read()

    def add_grant(self, agent: str, grant: Grant, *, drop_later: bool = True) -> None:
        self._layout.refuse_twin(self.root, agent)
        GrantsFile(self.root, self._layout, agent, durable=self._durable).add(grant, drop_later=drop_later)

    @property
    def has_agents(self) -> bool:
        return self._layout.has_agents

    # Reading

    def find(self, agent: str, entry_id: str, session: str | None) -> list[Entry]:
        with self._using(agent) as logs:
            return lookup.find(logs, entry_id, session) if logs else []

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        with self._using(agent) as logs:
            if logs is None:
                return ()
            if as_of is None and not archived:
                logs.log(session)  # Refuses an id that no file can have.
                return [row.record for row in logs.query_current((session,), Index.newest, session, -1, None)]
            return state(logs, session, as_of)

    def lines(self, agent: str, session: str) -> Iterator[Record]:
        with self._using(agent) as logs:
            if logs is not None:
                yield from lists.lines(logs.log(session))

    def entries(
        self,
        agent: str,
        session: str,
        limit: int | None,
        types: Sequence[str] | None,
        *,
        as_of: datetime | None = None,
        archived: bool = False,
        cursor: str | None = None,
    ) -> Page[Entry]:
        with self._using(agent) as logs:
            if logs is None:
                return Page()
            if as_of is not None:
                with self._past(logs, as_of) as past:
                    return lists.of_state(logs, session, past.records(session), limit, types, cursor)
            if archived:
                return lists.of_state(logs, session, state(logs, session, None), limit, types, cursor)
            return lists.entries(logs, session, limit, types, cursor)

    def select(
        self, scope: Scope, limit: int | None = None, cursor: str | None = None, *, newest_first: bool = False
    ) -> Page[Entry]:
        with self._using(scope.agent) as logs:
            if logs is None:
                return Page()
            return filtering.select(logs, scope, limit, cursor, newest_first=newest_first)

    def select_count(self, scope: Scope) -> int:
        with self._using(scope.agent) as logs:
            return filtering.count(logs, scope) if logs else 0

    def matching(
        self, agent: str, text: str, session: str | None, limit: int | None = None, cursor: str | None = None
    ) -> Page[tuple[str, str]]:
        with self._using(agent) as logs:
            return lists.matching(logs, text, session, limit, cursor) if logs else Page()

    def history(
        self,
        agent: str,
        entry_id: str,
        session: str | None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Version]:
        with self._using(agent) as logs:
            return lists.history(logs, entry_id, session, limit, cursor) if logs else Page()

    def linked(self, agent: str, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
        with self._using(agent) as logs:
            return lookup.linked(logs, ids, rel, limit) if logs else []

    def pinned(self, agent: str) -> list[Entry]:
        with self._using(agent) as logs:
            return lookup.pinned(logs) if logs else []

    def standing(self, agent: str, limit: int) -> list[Entry]:
        with self._using(agent) as logs:
            return lookup.standing(logs, limit) if logs else []

    def entry_counts(self, agent: str, session: str | None = None) -> dict[str, int]:
        with self._using(agent) as logs:
            return lookup.entry_counts(logs, session) if logs else {}

    @property
    def keeps_suggestions(self) -> bool:
        return "{agent}" in self._layout.sessions

    def suggestion_lines(self, agent: str) -> list[bytes]:
        return suggestion_file.read(self._layout.beside(self.root, agent, SUGGESTIONS), self.root)

    @again_if_moved
    def change_suggestions(self, agent: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
        path = self._layout.beside(self.root, agent, SUGGESTIONS)
        self._layout.refuse_twin(self.root, agent)
        folder = self._layout.sessions_folder(self.root, agent)
        removed: set[str] = set()

        def forget(ids: set[str]) -> None:
            removed.update(ids)
            purge_digests.record_suggestions(folder, self.root, ids)
            # Announce this before the lines are removed, and again afterwards for copies made during that.
            self._eraser.erasures.note(agent)

        suggestion_file.change(path, self.root, change, forget, durable=self._durable)
        if removed:
            self._eraser.erasures.note(agent)
            for tell in self._erased:
                tell(agent)

    def gone(self, agent: str, session: str) -> Container[str]:
        with self._using(agent) as logs:
            if logs is None:
                return frozenset()
            erased = purge_digests.erased_of(self.root, self._layout, agent).lives
            return GoneIds(session, gone(logs, session), erased)

    @contextmanager
    def reader(self, agent: str, as_of: datetime | None = None) -> Iterator[Reader]:
        with self._agents.using(agent, create=False) as logs:
            if logs is None:
                yield PastReader(agent, lambda _: {}, lambda *_: {}, self.language)
            elif as_of is None:
                yield LogReader(logs)
            else:
                with self._past(logs, as_of) as past:
                    yield past

    def _past(self, logs: AgentLogs, moment: datetime) -> AbstractContextManager[PastReader]:
        def make() -> tuple[PastReader, PastStates]:
            states = PastStates(logs, moment)
            vectors = partial(vectors_today, self, logs.agent)
            return PastReader(logs.agent, states, vectors, self.language), states

        return self._pasts.using(logs.agent, moment, make, lambda states: states.are_current(logs))

    # Vectors

    def home_space(self) -> Space | None:
        return self._space.get()

    def set_home_space(self, space: Space) -> None:
        self._space.set(space)

    def spaces(self, agent: str) -> list[Space]:
        # The index usually has a space already. Only if it has none are the logs indexed first.
        return self._query(agent, (), Index.spaces) or self._query(agent, None, Index.spaces) or []

    def vectors(self, agent: str, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        return self._query(agent, (session,), Index.vectors, session, space, ids) or {}

    def keep_vectors(self, agent: str, space: str, made: Sequence[tuple[Entry, Vector]]) -> int:
        with self._using(agent) as logs:
            if logs is None:
                return 0
            try:
                return logs.query(Index.keep, space, made)
            except UnavailableError as error:
                logs.lag(error)
                return 0

    def forget_vectors(self, agent: str, space: str) -> int:
        return self._query(agent, (), Index.forget_space, space) or 0

    def _query(
        self,
        agent: str,
        sessions: Sequence[str] | None,
        question: Callable[Concatenate[Index, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Query the index, up to date with some sessions or with all (None); None for an unknown agent."""
        with self._using(agent) as logs:
            if logs is None:
                return None
            logs.reach(sessions)
            try:
                return logs.query(question, *args, **kwargs)
            except UnavailableError as error:
                if logs.is_moved():
                    return None  # Removed during the call.
                logs.lag(error)
                raise unusable(agent, error) from error

    # The whole

    def raw_lines(self, agent: str, session: str) -> Iterator[RawLine]:
        with self._using(agent) as logs:
            if logs is not None:
                yield from raw_files.raw_lines(logs, session)

    @again_if_moved
    def take_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> None:
        with self._agents.using(agent, create=True) as logs:
            raw_files.take_raw_lines(logs, session, lines)

    def holds_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> bool:
        return are_same(self.raw_lines(agent, session), lines)

    def vanished_agents(self) -> list[str]:
        return purge_digests.vanished_agents(self.root)

    def purged(self, agent: str) -> PurgedIds:
        return purge_digests.recorded(self.root, self._layout, agent)

    def purge_times(self, agent: str) -> list[datetime]:
        return purge_digests.purge_times(self.root, self._layout, agent)

    def take_purged(self, agent: str, found: PurgedIds) -> None:
        purge_digests.take_recorded(self.root, self._layout, agent, found)

    @again_if_moved
    def take_erased(self, agent: str, lines: Iterable[Record]) -> int:
        """Apply another home's journal of an agent; return how many entries were erased here.

        If the other home purged the agent, the agent stays here without its entries, as it may have files
        that the purge did not include. The caller then merges the agent's files, and removes an agent that is
        left empty.
        """
        with self._erasing(agent) as logs:
            if logs is None:
                if erasures := [*lines]:
                    purge_digests.take_gone(self.root, agent, erasures)
                return 0
            return self._eraser.take(logs, lines)

    def dropped_marks(self, agent: str) -> frozenset[DroppedMark]:
        with self._using(agent) as logs:
            return dropped_marks(logs.folder) if logs else frozenset()

    def take_dropped(self, agent: str, marks: frozenset[DroppedMark]) -> None:
        with self._agents.using(agent, create=True) as logs:
            take_dropped(logs.folder, marks)

    def take_language(self, language: str) -> None:
        self.language = language
        record_language(self.root, language)

    def changes(self, agents: Sequence[str] | None, since: str | None) -> Callable[[], list[Change]]:
        return Changes(self.root, self._layout, self._using, agents, since).poll

    def sync(self, progress: Callable[[int, int], None] | None = None) -> None:
        for agent in self.agents():
            with self._using(agent) as logs:
                if logs is not None:
                    logs.refresh(0)
                    self._take_in_left(logs, progress)
                    with suppress(UnavailableError):
                        logs.query(Index.flush)
                while self.maintenance.upkeep(agent, ahead=False):
                    pass

    def _take_in_left(self, logs: AgentLogs, progress: Callable[[int, int], None] | None) -> None:
        """Index the logs that a refresh left to the background; no lock is held between two steps.

        Raises:
            LockTimeoutError: Another process is indexing the logs without progress.
        """
        total, done = logs.arrears.total(), 0
        patience = Patience(logs)
        while take_in_some(logs, self._agents.are_others_at_work):
            patience.check()
            done = max(done, total - logs.arrears.total())  # Bytes that other threads index count, too.
            if progress and total:
                progress(done, total)
        if progress and total:
            progress(total, total)

    def _take_in_some(self, agent: str) -> bool:
        """Do one step of the work that refreshes left to the background."""
        with self._using(agent) as logs:
            return logs is not None and take_in_some(logs, self._agents.are_others_at_work)

    def close(self) -> None:
        self._pasts.reset()
        self._intake.close()
        self._agents.close()
