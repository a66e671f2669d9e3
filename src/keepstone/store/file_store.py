"""The store on plain files: logs are the truth, an index an agent makes them fast.

It keeps the contract of ``Store``, whose docstrings say what each method does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import deepcopy
from datetime import datetime
from functools import partial, wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from keepstone.errors import (
    AgentNotFoundError,
    EntryNotFoundError,
    KeepstoneError,
    LockTimeoutError,
)
from keepstone.files import AgentFiles
from keepstone.filesystem.confine import MovedError
from keepstone.filesystem.layout import Layout
from keepstone.filesystem.lock import TIMEOUT
from keepstone.index import DamagedError, Index, Row, UnavailableError
from keepstone.log import rewrite
from keepstone.log.line import apply, check_size, dump, links_of
from keepstone.log.log_file import Log, Stat
from keepstone.model import STANDING, BackupInfo, Entry, Finding, Record, SessionInfo, Version
from keepstone.store.agent_logs import AgentLogs, entry_of, info_of
from keepstone.store.agent_pool import OpenAgents
from keepstone.store.as_of import PastReader
from keepstone.store.history import state, versions
from keepstone.store.home_space import HomeSpace
from keepstone.store.protocol import Change, Reader, SessionCheck
from keepstone.store.purge import Eraser
from keepstone.store.put import (
    Known,
    Written,
    counted,
    folded_of,
    in_batch,
    refuse_other,
    resolve,
    without_old_vector,
)
from keepstone.store.reader import LogReader, unusable
from keepstone.vector import Space, Vector

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger("keepstone.store")

_LONG = 1 << 20
"""Bytes of a log that the index takes in, if need be, before a writer locks it; reading fewer is quick."""

_TRIES = 5
"""How often a change is tried while the agent's folder is exchanged under it."""


def again_if_moved(change: Callable[P, T]) -> Callable[P, T]:
    """Repeat a change whose folder was renamed, replaced or removed before anything was written.

    The next try opens what the path leads to now.
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

    def __init__(self, root: Path, layout: Layout, *, durable: bool = True) -> None:
        self.root = root
        self._layout = layout
        self._durable = durable
        self._agents = OpenAgents(self._open)
        self._eraser = Eraser(root, layout)
        self._space = HomeSpace(root, layout)
        self._eraser.finish_agents()

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
        )
        try:
            self._layout.refuse_twin(self.root, agent)  # Another process may have made one just now.
        except KeepstoneError:
            logs.close()
            raise
        return logs

    def _using(self, agent: str) -> AbstractContextManager[AgentLogs | None]:
        return self._agents.using(agent, create=False)

    def _making(self, agent: str) -> AbstractContextManager[AgentLogs]:
        return self._agents.using(agent, create=True)  # type: ignore[return-value]

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
        )

    def sessions(self, agent: str) -> list[SessionInfo]:
        with self._using(agent) as logs:
            return logs.sessions() if logs else []

    def session(self, agent: str, session: str) -> SessionInfo | None:
        with self._using(agent) as logs:
            stat = logs.log(session).stat() if logs else None
            return None if stat is None else info_of(session, stat)

    # Writing

    @again_if_moved
    def create(self, agent: str, session: str) -> None:
        with self._making(agent) as logs:
            log = logs.log(session)
            with log.locked():
                log.create()

    def append(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        return self._write(agent, session, records, refuse_other)

    def put(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        return self._write(agent, session, records, apply)

    @again_if_moved
    def _write(
        self, agent: str, session: str, records: Sequence[Record], meet: Callable[[Record, Record], Record]
    ) -> list[Entry]:
        """Write records; ``meet`` says what comes of an entry that is there and a record with its id."""
        written = [Written(record, dump(record)) for record in records]
        if not written:
            return []
        with self._making(agent) as logs:
            log = logs.log(session)
            _catch_up_unlocked(logs, session, log)
            with log.locked():
                before = log.create()
                known = Known(logs, log, session)
                known.expect(before, [record["id"] for record in records])
                results, needed = resolve(written, known, meet)
                if needed:
                    self._append(logs, session, log, before, needed, new=not known.met)
        return [entry_of(agent, session, record) for record in results]

    def _append(
        self, logs: AgentLogs, session: str, log: Log, before: Stat, written: Sequence[Written], *, new: bool
    ) -> None:
        """Append records, let the index know, and compact when it is time. The lock is held."""
        raw = in_batch([one.raw for one in written])
        begin, after = log.append(raw)
        try:
            # A program that takes no lock may have written in between: only reading tells what stands where.
            alone = after.size == begin + sum(map(len, raw))
            told = (new and alone) and logs.asking(
                lambda index: index.added(
                    session, log.name, before, after, folded_of(written, raw, begin), log.tail(after.size)
                )
            )
            if not told:
                logs.asking(lambda index: index.catch_up(session, log))
        except UnavailableError as error:
            logs.lag(error)
        else:
            self._compact_if_due(logs, session, log, after)

    def _compact_if_due(self, logs: AgentLogs, session: str, log: Log, stat: Stat) -> None:
        """Compact a log after a write when it is time. The write has succeeded, whatever comes of this."""
        if stat.size <= rewrite.COMPACT_FROM or not logs.follow(session, log, stat):
            return
        try:
            if self._is_worth_it(logs, session, stat.size):
                self._compact(logs, session, log)
        except UnavailableError as error:
            logs.lag(error)
        except KeepstoneError as error:
            logger.warning("session %r of agent %s could not be compacted: %s", session, logs.agent, error)

    def _is_worth_it(self, logs: AgentLogs, session: str, size: int) -> bool:
        """Tell whether a log is due for compaction and has something to fold away.

        A log of live entries only would be rewritten for nothing, while other writers wait.
        """
        if not rewrite.is_due(size, abs(logs.asking(lambda index: index.compacted(session)))):
            return False
        if logs.asking(lambda index: index.live_bytes(session)) <= size * rewrite.WORTH_FOLDING:
            return True
        logs.asking(lambda index: index.looked_through(session, size))
        return False

    @again_if_moved
    def modify(self, agent: str, session: str, entry_id: str, change: Change) -> Entry:
        with self._using(agent) as logs:
            if logs is None or logs.log(session).stat() is None:
                raise _no_entry(entry_id, session)
            log = logs.log(session)
            _catch_up_unlocked(logs, session, log)
            with log.locked():
                found = Known(logs, log, session).get(entry_id)
                if found is None:
                    raise _no_entry(entry_id, session)
                record = change(entry_of(agent, session, found))
                if record is None:
                    return entry_of(agent, session, found)
                written = without_old_vector(found, Written(record, dump(record)))
                changed = apply(found, written.record)
                check_size(changed)  # A compaction will have to write all of it as one line.
                self._append(logs, session, log, log.create(), [written], new=False)
        return entry_of(agent, session, changed)

    @again_if_moved
    def count(self, agent: str, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
        with self._using(agent) as logs:
            if logs is None or logs.log(session).stat() is None:
                return True
            log = logs.log(session)
            try:
                with log.locked(TIMEOUT if wait else 0):
                    lines = counted(logs.records(session), increments)
                    if lines:
                        _, after = log.append(lines, sync=False)
                        self._compact_if_due(logs, session, log, after)
            except LockTimeoutError:
                if wait:
                    raise
                return False
        return True

    @again_if_moved
    def compact(
        self, agent: str, session: str, aged: Callable[[Record], bool] | None = None, *, wait: bool = True
    ) -> int:
        with self._using(agent) as logs:
            if logs is None or logs.log(session).stat() is None:
                return 0
            log = logs.log(session)
            _catch_up_unlocked(logs, session, log)
            try:
                with log.locked(TIMEOUT if wait else 0):
                    logs.follow(session, log, log.stat())
                    return self._compact(logs, session, log, aged)
            except LockTimeoutError:
                if wait:
                    raise
                return 0

    def compacted_size(self, agent: str, session: str) -> int:
        with self._using(agent) as logs, suppress(UnavailableError):
            return max(0, logs.asking(lambda index: index.compacted(session))) if logs else 0
        return 0

    def _compact(
        self, logs: AgentLogs, session: str, log: Log, aged: Callable[[Record], bool] | None = None
    ) -> int:
        rewritten = rewrite.compact(log, logs.archive(session), aged)
        if rewritten is None:
            return 0
        logs.relocate(session, log, rewritten, folded=True)
        return rewritten.saved

    # Erasing

    @again_if_moved
    def purge(self, agent: str, session: str, ids: Sequence[str]) -> int:
        with self._using(agent) as logs:
            if logs is None:
                return 0
            _catch_up_unlocked(logs, session, logs.log(session))
            return self._eraser.purge(logs, session, ids)

    @again_if_moved
    def clear(self, agent: str, session: str, *, check: SessionCheck | None = None) -> int | None:
        with self._using(agent) as logs:
            return self._eraser.clear(logs, session, check) if logs else None

    @again_if_moved
    def remove(self, agent: str, session: str, *, check: SessionCheck | None = None) -> bool:
        with self._using(agent) as logs:
            return self._eraser.remove(logs, session, check) if logs else False

    @again_if_moved
    def drop(self, agent: str, session: str, ts: str, *, check: SessionCheck | None = None) -> int:
        with self._using(agent) as logs:
            return self._eraser.drop(logs, session, ts, check) if logs else 0

    def purge_agent(self, agent: str) -> None:
        if agent not in self.agents():
            raise AgentNotFoundError(
                f"there is no agent {agent!r} in {self.root}: see home.agents(), or keepstone agents list"
            )
        self._agents.drop(agent)
        self._eraser.purge_agent(agent)
        self._agents.drop(agent)  # Another thread may have opened it before its folder was put away.

    # Reading

    def find(self, agent: str, entry_id: str, session: str | None) -> list[Entry]:
        with self._agents.using(agent, create=False) as logs:
            if logs is None:
                return []
            sessions = [session] if session is not None else logs.asking_all(Index.holders, entry_id)
            if sessions is None:
                sessions = [name for name, _, _ in logs.files()]
            found = []
            for name in sessions:
                record = Known(logs, logs.log(name), name).get(entry_id)
                if record is not None:
                    found.append(entry_of(agent, name, record))
            return found

    def entries(
        self,
        agent: str,
        session: str,
        limit: int | None,
        types: Sequence[str] | None,
        *,
        as_of: datetime | None = None,
        archived: bool = False,
    ) -> list[Entry]:
        with self._using(agent) as logs:
            if logs is None:
                return []
            plain = as_of is None and not archived
            records: Sequence[Record] | None = None
            if plain and limit is not None:
                records = self._newest(logs, session, limit, types)
            if records is None:
                records = _chosen(self._records(logs, session, as_of, archived=archived), limit, types)
        return [entry_of(agent, session, record) for record in records]

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        with self._using(agent) as logs:
            return self._records(logs, session, as_of, archived=archived) if logs else ()

    def _records(
        self, logs: AgentLogs, session: str, as_of: datetime | None, *, archived: bool
    ) -> Sequence[Record]:
        if as_of is None and not archived:
            return logs.records(session)
        return state(logs, session, as_of)

    def _newest(
        self, logs: AgentLogs, session: str, limit: int, types: Sequence[str] | None
    ) -> list[Record] | None:
        """Return the newest records by the index, None where only the log can tell."""
        log = logs.log(session)
        for _ in range(3):
            stat = log.stat()
            if stat is None:
                return []
            try:
                rows = logs.asking(Index.newest, session, stat, limit, types)
                if rows is None:
                    logs.asking(Index.catch_up, session, log)
                    continue
                loaded = logs.load_from(log, rows)
                if len(loaded) == len(rows):
                    return [loaded[row.eid] for row in rows]
                logs.asking(Index.reread, session, log)
            except UnavailableError as error:
                logs.lag(error)
                return None
        return None

    def matching(self, agent: str, text: str, session: str | None) -> list[tuple[str, str]]:
        with self._using(agent) as logs:
            if logs is None:
                return []
            found = (
                (name, entry_id)
                for name, files in logs.all_files(session).items()
                for file in files
                for entry_id in rewrite.matching(file, text)
            )
            return sorted(set(found))

    def linked(self, agent: str, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
        wanted = frozenset(ids)

        def links(record: Record) -> bool:
            return any(link["to"] in wanted and rel in (None, link.get("rel")) for link in links_of(record))

        return self._where(agent, links, Index.linked, ids, rel, limit)[:limit]

    def pinned(self, agent: str) -> list[Entry]:
        found = self._where(agent, lambda record: record.get("pinned") is True, Index.pinned)
        return sorted(found, key=lambda entry: entry.ts)

    def standing(self, agent: str, limit: int) -> list[Entry]:
        def stands(record: Record) -> bool:
            return record["type"] in STANDING

        found = self._where(agent, stands, Index.standing, limit)
        found.sort(key=lambda entry: (entry.ts, entry.session))
        return found[max(0, len(found) - limit) :]

    def _where(
        self,
        agent: str,
        holds: Callable[[Record], bool],
        question: Callable[Concatenate[Index, P], list[Row]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> list[Entry]:
        """Return the entries that the index answers a question with, or, where it cannot, which ``holds``."""
        with self._using(agent) as logs:
            if logs is None:
                return []
            rows = logs.asking_all(question, *args, **kwargs)
            if rows is None:
                names = [name for name, _, _ in logs.files()]
                found = ((name, record) for name in names for record in logs.records(name) if holds(record))
                return [entry_of(agent, name, deepcopy(record)) for name, record in found]
            loaded = logs.load(rows)
            return [entry_of(agent, row.session, loaded[row.eid]) for row in rows if row.eid in loaded]

    def history(self, agent: str, entry_id: str, session: str | None) -> list[Version]:
        with self._using(agent) as logs:
            if logs is None:
                return []
            sessions = [session] if session is not None else [name for name, _, _ in logs.files()]
            found = (versions(logs, name, entry_id) for name in sessions)
            return [version for some in found for version in some]

    def entry_counts(self, agent: str, session: str | None = None) -> dict[str, int]:
        with self._using(agent) as logs:
            return logs.entry_counts(session) if logs else {}

    @contextmanager
    def reader(self, agent: str, as_of: datetime | None = None) -> Iterator[Reader]:
        with self._agents.using(agent, create=False) as logs:
            if logs is not None and as_of is None:
                yield LogReader(logs)
            else:
                yield PastReader(agent, partial(_states, logs, as_of), partial(self._same_today, agent))

    def _same_today(
        self, agent: str, session: str, space: str, entries: Sequence[Entry]
    ) -> dict[str, Vector]:
        """Return the vectors of entries that have the same text today."""
        today = {entry.id: entry.text for entry in self.entries(agent, session, None, None)}
        ids = [entry.id for entry in entries if today.get(entry.id) == entry.text]
        return self.vectors(agent, session, space, ids)

    # Vectors

    def home_space(self) -> Space | None:
        return self._space.get()

    def set_home_space(self, space: Space) -> None:
        self._space.set(space)

    def spaces(self, agent: str) -> list[Space]:
        return self._asked(agent, (), Index.spaces) or self._asked(agent, None, Index.spaces) or []

    def upkeep(self, agent: str) -> bool:
        with self._using(agent) as logs:
            if logs is None:
                return False
            try:
                return logs.asking(Index.upkeep)
            except UnavailableError:
                return False  # The next query asks for it again.

    def vectors(self, agent: str, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        return self._asked(agent, (session,), Index.vectors, session, space, ids) or {}

    def keep_vectors(self, agent: str, space: str, made: Sequence[tuple[Entry, Vector]]) -> int:
        with self._using(agent) as logs:
            if logs is None:
                return 0
            try:
                kept = logs.asking(Index.keep, space, made)
                if kept < len(made):
                    same = self._unchanged(agent, [entry for entry, _ in made])
                    logs.asking(Index.check_texts, same)
            except UnavailableError as error:
                logs.lag(error)
                return 0
            return kept

    def _unchanged(self, agent: str, entries: Sequence[Entry]) -> list[Entry]:
        """Return the entries whose text is the same in the log by now."""

        def text_now(entry: Entry) -> list[str]:
            return [found.text for found in self.find(agent, entry.id, entry.session)]

        return [entry for entry in entries if text_now(entry) == [entry.text]]

    def forget_vectors(self, agent: str, space: str) -> int:
        return self._asked(agent, (), Index.forget_space, space) or 0

    def _asked(
        self,
        agent: str,
        sessions: Sequence[str] | None,
        question: Callable[Concatenate[Index, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Ask the index once it holds what some sessions' logs do, or all; None if there is no such agent."""
        with self._using(agent) as logs:
            if logs is None:
                return None
            logs.reach(sessions)
            try:
                return logs.asking(question, *args, **kwargs)
            except UnavailableError as error:
                if logs.is_moved():
                    return None  # Removed during the call.
                logs.lag(error)
                raise unusable(agent, error) from error

    # The whole

    def sync(self) -> None:
        for agent in self.agents():
            with self._using(agent) as logs:
                if logs is not None:
                    logs.look(0)
                    with suppress(UnavailableError):
                        logs.asking(lambda index: index.flush())
                while self.upkeep(agent):
                    pass

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:
        agents = self.agents()
        sizes = sum(info.size for agent in agents for info in self.sessions(agent))
        done = 0

        def tell(read: int) -> None:
            nonlocal done
            done += read
            if progress:
                progress(min(done, sizes), sizes)

        count = 0
        for agent in agents:
            with self._using(agent) as logs:
                if logs is None:
                    continue
                try:
                    count += logs.rebuild(tell)
                except (UnavailableError, DamagedError) as error:
                    raise unusable(agent, error) from error
        if progress:
            progress(sizes, sizes)
        return count

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        from keepstone.store.maintenance.checkup import Checkup  # Opening a home needs none of it.

        return Checkup(self.root, self._layout, self._using).run(deep=deep, fix=fix, progress=progress)

    def backup(self, folder: Path, progress: Callable[[int, int], None] | None) -> BackupInfo:
        from keepstone.store.maintenance.backup import Backup

        def opened(root: Path) -> FileStore:
            return FileStore(root, self._layout)

        return Backup(self, self.root, self._layout, self._using, opened).make(folder, progress)

    def close(self) -> None:
        self._agents.close()


def _chosen(records: Sequence[Record], limit: int | None, types: Sequence[str] | None) -> Sequence[Record]:
    """Return copies of the newest records of some types, the oldest first."""
    chosen = [record for record in records if types is None or record["type"] in types]
    return [
        deepcopy(record) for record in (chosen if limit is None else chosen[max(len(chosen) - limit, 0) :])
    ]


def _catch_up_unlocked(logs: AgentLogs, session: str, log: Log) -> None:
    """Let the index take in a long log before it is locked, where it would keep other writers waiting."""
    stat = log.stat()
    if stat is not None and stat.size > _LONG:
        logs.follow(session, log, stat)


def _states(
    logs: AgentLogs | None, moment: datetime | None, sessions: Sequence[str] | None
) -> dict[str, Sequence[Record]]:
    """Return what some sessions held at a time, or all of them (None)."""
    if logs is None:
        return {}
    names = [name for name, _, _ in logs.files()]
    return {name: state(logs, name, moment) for name in names if sessions is None or name in sessions}


def _no_entry(entry_id: str, session: str) -> EntryNotFoundError:
    return EntryNotFoundError(f"there is no entry {entry_id!r:.80} in session {session!r:.80}")
