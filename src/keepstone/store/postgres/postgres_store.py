"""The PostgreSQL store. It follows the contract of ``Store``, whose docstrings describe each method."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from keepstone.errors import AgentNotFoundError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.log.line import apply
from keepstone.log.titles import TITLE_ID
from keepstone.model import Entry, Record, Scope, SessionInfo, SessionSummary, Version
from keepstone.store.changes import Change
from keepstone.store.decay import Decay
from keepstone.store.paging import Page
from keepstone.store.postgres import (
    entry_lists,
    event_rows,
    grant_rows,
    purged_rows,
    schema,
    session_copies,
    session_removal,
    session_writes,
    suggestion_rows,
    vector_rows,
)
from keepstone.store.postgres.agent_file_rows import PostgresFiles
from keepstone.store.postgres.answer_rows import AnswerRows
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_rows import shown, stored
from keepstone.store.postgres.postgres_maintenance import AGENT_TABLES, PostgresMaintenance
from keepstone.store.postgres.postgres_reader import PostgresReader
from keepstone.store.postgres.sign_in_rows import SignInRows
from keepstone.store.postgres.vector_samples import VectorSamples
from keepstone.store.postgres.word_scores import HolderCounts
from keepstone.store.protocol import Compacted, Ids, Modification, Revision, SessionCheck
from keepstone.store.reader import Reader
from keepstone.store.removal_marks import DroppedMark, GoneIds, PurgedIds
from keepstone.store.resolving import refuse_other
from keepstone.store.sharing.acting import ACTING
from keepstone.store.sharing.grants import Grant
from keepstone.store.transfer import RawLine
from keepstone.store.versions import gone_in
from keepstone.text.tokenizer import ENGLISH
from keepstone.vector import Space, Vector

_NAMES = LAYOUTS["default"]
"""Naming rules for agents and sessions: the same as in a folder, so that homes can move between both."""


class PostgresStore:
    """A ``Store`` in one schema of a PostgreSQL database."""

    def __init__(self, url: str, *, durable: bool = True, language: str | None = None) -> None:
        self._connections = Connections(url, durable=durable)
        self._counts = HolderCounts()
        self.sign_ins = SignInRows(self._connections)
        self.answers = AnswerRows(self._connections)
        self._due: set[tuple[str, str, int]] = set()
        self._space = vector_rows.RecordedSpace(self._connections)
        self._samples = VectorSamples()
        self._sizes = vector_rows.Sizes()
        self._spaces = vector_rows.AgentSpaces(self._connections, self._space)
        self.maintenance = PostgresMaintenance(self._connections, self._due)
        schema.prepare(self._connections)
        self._settle_language(language)

    @property
    def shown(self) -> str:
        """The URL without a password."""
        return self._connections.target.shown()

    @property
    def language(self) -> str:
        return self._connections.language

    def _settle_language(self, language: str | None) -> None:
        """Use the given stemming language, or the recorded one if None; rebuild if it changed."""
        rows = self._connections.read("", "SELECT value FROM home WHERE key = 'language'")
        recorded = rows[0][0] if rows else ENGLISH
        self._connections.language = language or recorded
        if self.language != recorded:
            self.maintenance.rebuild(None)
            self._connections.read(
                "",
                "INSERT INTO home VALUES ('language', %s) "
                "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                (self.language,),
            )

    def check_agent(self, agent: object) -> str:
        return _NAMES.check_agent(agent)

    def check_session(self, session: object) -> str:
        _NAMES.session_file(session)
        return str(session)

    def agents(self) -> list[str]:
        return self.maintenance.agents()

    def files(self, agent: str) -> PostgresFiles:
        return PostgresFiles(self._connections, agent)

    def sessions(self, agent: str, limit: int | None = None, cursor: str | None = None) -> Page[SessionInfo]:
        return entry_lists.sessions(self._connections, agent, limit, cursor)

    def session(self, agent: str, session: str) -> SessionInfo | None:
        return entry_lists.session(self._connections, agent, session)

    def sessions_state(self, agent: str) -> tuple[int, int] | None:  # noqa: ARG002  There is no such value.
        return None

    def erased_state(self, agent: str) -> bytes:  # noqa: ARG002  Responses are in the database.
        return b""

    def on_erased(self, tell: Callable[[str], None]) -> None:
        """Do nothing: a purge removes the responses in its own transaction."""

    def summaries(
        self, agent: str, sessions: Sequence[str] | None = None, *, texts: bool = True
    ) -> list[SessionSummary]:
        return entry_lists.summaries(self._connections, agent, sessions, texts=texts)

    def gone(self, agent: str, session: str) -> Container[str]:
        ids = gone_in(entry_lists.lines(self._connections, agent, session, "true"))
        return GoneIds(session, ids, purged_rows.purged(self._connections, agent).ids)

    @property
    def keeps_suggestions(self) -> bool:
        return True

    def suggestion_lines(self, agent: str) -> list[bytes]:
        return suggestion_rows.lines(self._connections, agent)

    def change_suggestions(self, agent: str, change: Callable[[list[bytes]], list[bytes]]) -> None:
        suggestion_rows.change(self._connections, agent, change)

    # Writing

    def set_title(self, agent: str, session: str, title: str | None, ts: str) -> None:
        line = {"id": TITLE_ID, "ts": ts, "summary": title}
        session_writes.set_title(self._connections, agent, session, line)

    def create(self, agent: str, session: str) -> None:
        session_writes.create_session(self._connections, agent, session)

    def append(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        return session_writes.add(self._connections, agent, session, records, refuse_other)

    def put(self, agent: str, session: str, records: Sequence[Record]) -> list[Entry]:
        return session_writes.add(self._connections, agent, session, records, apply)

    def modify(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        return session_writes.modify(self._connections, agent, session, entry_id, change)

    def restore(self, agent: str, session: str, entry_id: str, change: Modification) -> Entry:
        return session_writes.restore(self._connections, agent, session, entry_id, change)

    def revise(self, agent: str, session: str, revision: Revision, ids: Sequence[str] = ()) -> list[Entry]:
        return session_writes.revise(self._connections, agent, session, revision, ids)

    def delete(self, agent: str, session: str, ids: Ids, ts: str) -> int:
        return session_writes.delete(self._connections, agent, session, ids, ts)

    def count(self, agent: str, session: str, increments: Mapping[str, int], *, wait: bool) -> bool:
        return session_writes.count(self._connections, agent, session, increments, wait=wait)

    def compact(
        self, agent: str, session: str, decay: Decay | None = None, *, wait: bool = True
    ) -> Compacted:
        return session_copies.compact(self._connections, agent, session, decay, wait=wait)

    def compacted_size(self, agent: str, session: str) -> int:
        sql = "SELECT compacted FROM sessions WHERE agent = %s AND session = %s"
        return sum(size for (size,) in self._connections.read(agent, sql, (agent, stored(session))))

    def copy(self, agent: str, session: str, new: str, until: str | None = None) -> None:
        session_copies.copy(self._connections, agent, session, new, until)

    def rename(self, agent: str, session: str, new: str) -> None:
        session_copies.rename(self._connections, agent, session, new)

    # Erasing

    def purge(self, agent: str, session: str, ids: Ids) -> int:
        self._samples.forget(agent)
        return session_removal.purge(self._connections, agent, session, ids)

    def clear(self, agent: str, session: str, *, check: SessionCheck | None = None) -> int | None:
        self._samples.forget(agent)
        return session_removal.clear(self._connections, agent, session, check)

    def remove(self, agent: str, session: str, *, check: SessionCheck | None = None) -> bool:
        self._samples.forget(agent)
        return session_removal.remove(self._connections, agent, session, check) is not None

    def drop(self, agent: str, session: str, ts: str, *, check: SessionCheck | None = None) -> int:
        self._samples.forget(agent)
        return session_removal.remove(self._connections, agent, session, check, ts) or 0

    def dropped(self, agent: str) -> list[str]:
        sql = "SELECT DISTINCT session FROM dropped WHERE agent = %s ORDER BY session"
        return [shown(name) for (name,) in self._connections.read(agent, sql, (agent,))]

    def purge_agent(self, agent: str) -> None:
        if agent not in self.agents():
            raise AgentNotFoundError(
                f"there is no agent {agent!r} in {self.shown}: see home.agents(), or keepstone agents list"
            )

        def work(connection: Connection) -> None:
            with connection.transaction(), connection.pipeline():
                self._connections.enter(connection, agent)
                # Other writers wait for these row locks, and then find their sessions removed.
                connection.execute(
                    "SELECT 1 FROM sessions WHERE agent = %s ORDER BY session FOR UPDATE", (agent,)
                )
                event_rows.tell_purged(connection, agent)
                purged_rows.vanish(self._connections, connection, agent)
                connection.execute(grant_rows.FORGET_RECEIVED.encode(), (agent,))
                for table in (*(name for name in AGENT_TABLES if name != "purged"), "agents"):
                    connection.execute(f"DELETE FROM {table} WHERE agent = %s".encode(), (agent,))

        self._samples.forget(agent)
        self._connections.run(work)
        self._connections.writes += 1
        self._due.difference_update([due for due in list(self._due) if due[0] == agent])
        vector_rows.drop_graphs(self._connections, agent)

    def grants(self, agent: str) -> list[Grant]:
        return grant_rows.grants(self._connections, agent)

    def add_grant(self, agent: str, grant: Grant, *, drop_later: bool = True) -> None:
        grant_rows.add(self._connections, agent, grant, drop_later=drop_later)

    @property
    def has_agents(self) -> bool:
        return True

    # Reading

    def find(self, agent: str, entry_id: str, session: str | None) -> list[Entry]:
        return entry_lists.find(self._connections, agent, entry_id, session)

    def records(
        self, agent: str, session: str, *, as_of: datetime | None = None, archived: bool = False
    ) -> Sequence[Record]:
        if as_of is None and not archived:
            return [entry.line for entry in self.entries(agent, session, None, None)]
        return entry_lists.state(self._connections, agent, session, as_of)

    def lines(self, agent: str, session: str) -> Iterator[Record]:
        for line, archived in entry_lists.lines(self._connections, agent, session):
            if line.record is not None and not archived:
                yield {key: value for key, value in line.record.items() if key != "batch"}

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
        if as_of is None and not archived:
            return entry_lists.entries(self._connections, agent, session, limit, types, cursor)
        records = entry_lists.state(self._connections, agent, session, as_of)
        return entry_lists.of_records(agent, session, records, limit, types, cursor)

    def select(
        self, scope: Scope, limit: int | None = None, cursor: str | None = None, *, newest_first: bool = False
    ) -> Page[Entry]:
        return entry_lists.select(self._connections, scope, limit, cursor, newest_first=newest_first)

    def select_count(self, scope: Scope) -> int:
        return entry_lists.select_count(self._connections, scope)

    def matching(
        self, agent: str, text: str, session: str | None, limit: int | None = None, cursor: str | None = None
    ) -> Page[tuple[str, str]]:
        return entry_lists.matching(self._connections, agent, text, session, limit, cursor)

    def history(
        self,
        agent: str,
        entry_id: str,
        session: str | None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Page[Version]:
        return entry_lists.history(self._connections, agent, entry_id, session, limit, cursor)

    def linked(self, agent: str, ids: Sequence[str], rel: str | None, limit: int) -> list[Entry]:
        return entry_lists.linked(self._connections, agent, ids, rel, limit)

    def pinned(self, agent: str) -> list[Entry]:
        return entry_lists.pinned(self._connections, agent)

    def standing(self, agent: str, limit: int) -> list[Entry]:
        return entry_lists.standing(self._connections, agent, limit)

    def entry_counts(self, agent: str, session: str | None = None) -> dict[str, int]:
        return entry_lists.entry_counts(self._connections, agent, session)

    @contextmanager
    def reader(self, agent: str, as_of: datetime | None = None) -> Iterator[Reader]:
        if as_of is not None:
            from keepstone.store.as_of import PastReader  # It needs SQLite, for an in-memory index.

            states = partial(entry_lists.states, self._connections, agent, as_of)
            yield PastReader(
                agent, states, partial(vector_rows.vectors_today, self._connections, agent), self.language
            )
            return
        # Acting for another agent sees only the shared entries: do not cache their counts as the agent's.
        counts = self._counts if ACTING.get() is None else HolderCounts()
        yield PostgresReader(
            self._connections, agent, counts, self._due, self._spaces, self._samples, self._sizes
        )

    # Vectors

    def home_space(self) -> Space | None:
        return self._space.get()

    def set_home_space(self, space: Space) -> None:
        self._space.set(space)

    def spaces(self, agent: str) -> list[Space]:
        return self._spaces.get(agent)

    def vectors(self, agent: str, session: str, space: str, ids: Sequence[str]) -> dict[str, Vector]:
        return vector_rows.vectors(self._connections, agent, session, space, ids)

    def keep_vectors(self, agent: str, space: str, made: Sequence[tuple[Entry, Vector]]) -> int:
        return vector_rows.keep(self._connections, agent, space, made)

    def forget_vectors(self, agent: str, space: str) -> int:
        return vector_rows.forget(self._connections, agent, space)

    # The whole

    def raw_lines(self, agent: str, session: str) -> Iterator[RawLine]:
        for line, archived in entry_lists.lines(self._connections, agent, session, "true"):
            yield RawLine(line, archived)

    def take_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> None:
        session_copies.take(self._connections, agent, session, lines)

    def holds_raw_lines(self, agent: str, session: str, lines: Sequence[RawLine]) -> bool:
        return session_copies.holds(self._connections, agent, session, lines)

    def vanished_agents(self) -> list[str]:
        return purged_rows.vanished_agents(self._connections)

    def purged(self, agent: str) -> PurgedIds:
        return purged_rows.purged(self._connections, agent)

    def purge_times(self, agent: str) -> list[datetime]:
        return purged_rows.purge_times(self._connections, agent)

    def take_purged(self, agent: str, purged: PurgedIds) -> None:
        purged_rows.take(self._connections, agent, purged)

    def dropped_marks(self, agent: str) -> frozenset[DroppedMark]:
        return purged_rows.dropped_marks(self._connections, agent)

    def take_dropped(self, agent: str, marks: frozenset[DroppedMark]) -> None:
        purged_rows.take_dropped(self._connections, agent, marks)

    def take_language(self, language: str) -> None:
        self._settle_language(language)

    def changes(self, agents: Sequence[str] | None, since: str | None) -> Callable[[], list[Change]]:
        return event_rows.PostgresChanges(self._connections, agents, since).poll

    def sync(self, progress: Callable[[int, int], None] | None = None) -> None:  # noqa: ARG002
        for agent in self.agents():
            while self.maintenance.upkeep(agent):
                pass
        self.maintenance.analyze()

    def close(self) -> None:
        self._connections.close()
