"""Maintenance of a home in PostgreSQL: graphs, rebuilding derived tables, and the doctor."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import psycopg
from psycopg import sql

from keepstone.errors import StoreError
from keepstone.model import BackupInfo, Finding
from keepstone.store.postgres import event_rows, vector_rows
from keepstone.store.postgres.answer_rows import expire
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.store.postgres.entry_lists import FROM, LOADED, lines, session_names
from keepstone.store.postgres.entry_rows import record_of, stored
from keepstone.store.postgres.locked_session import LockedSession, locked
from keepstone.store.postgres.refolding import fill, unfold
from keepstone.store.postgres.schema import NEWEST, is_distributed, trouble_of_extension, version_of
from keepstone.store.unsupported import UnsupportedMaintenance

_log = logging.getLogger("keepstone.store")
_ELSEWHERE = UnsupportedMaintenance("PostgreSQL", {"backup": "use pg_dump, see docs/scale.md"})


class PostgresMaintenance:
    """The ``Maintenance`` of a home in PostgreSQL."""

    def __init__(self, connections: Connections, due: set[tuple[str, str, int]]) -> None:
        self._connections = connections
        self._due = due
        self._refused: set[tuple[str, str, int]] = set()
        """Graphs that this role may not build, as a logged warning has reported."""

    def upkeep(self, agent: str, *, ahead: bool = True) -> bool:  # noqa: ARG002  Nothing is made ahead.
        """Build a graph that a query would have used or, if none is missing, delete old events."""
        if not self._due:
            event_rows.prune(self._connections, agent)
            return False
        graph = self._due.pop()
        if graph in self._refused:
            return bool(self._due)
        if vector_rows.owns_vectors(self._connections):
            vector_rows.make_graph(self._connections, *graph)
        else:
            self._refused.add(graph)
            _log.warning("a graph of vectors is missing, which only the owner can make: %s", _AS_OWNER)
        return bool(self._due)

    def agents(self) -> list[str]:
        """Return the slugs of all agents, sorted."""
        return [name for (name,) in self._connections.read("", "SELECT agent FROM agents ORDER BY agent")]

    def analyze(self) -> None:
        """Update the database's statistics, and merge the pending lists of its GIN indexes.

        Expired responses that were kept for retries are removed, too.
        """
        with self._connections.translated(), self._connections.alone() as connection:
            expire(self._connections, connection)
            connection.execute("VACUUM (ANALYZE) sessions, lines, entries, vectors, spaces")

    def rebuild(self, progress: Callable[[int, int], None] | None) -> int:
        """Rebuild the rows of entries from the lines, keep computed vectors; return the session count."""
        names = [(agent, name) for agent in self.agents() for name in session_names(self._connections, agent)]
        sizes = [self._size(agent, name) for agent, name in names]
        done = 0

        def work(locked: LockedSession | None) -> None:
            if locked is not None:
                fill(locked, keep_made=True)

        # Session by session, so that writers never wait for the whole home.
        for (agent, name), size in zip(names, sizes, strict=True):
            locked(self._connections, agent, name, [], work)
            done += size
            if progress is not None:
                progress(done, sum(sizes))
        return len(names)

    def _size(self, agent: str, name: str) -> int:
        sql = "SELECT size FROM sessions WHERE agent = %s AND session = %s"
        return sum(size for (size,) in self._connections.read(agent, sql, (agent, stored(name))))

    def doctor(
        self,
        *,
        deep: bool = False,
        fix: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> list[Finding]:
        """Check schema, rights and sessions; ``deep`` compares each entry with its lines."""
        with self._connections.translated(), self._connections.alone() as connection:
            version = version_of(connection)
            [(is_super,)] = connection.execute(
                "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
            ).fetchall()
            lacking = undistributed(connection) if is_distributed(connection) else []
            trouble = trouble_of_extension(connection)
        findings = [Finding("ok", "schema", f"version {version}")]
        if version != NEWEST:
            findings = [
                Finding("error", "schema", f"version {version}, expected {NEWEST}", "keepstone postgres init")
            ]
        if trouble is not None:
            problem, _, remedy = trouble.partition(": ")
            findings.append(
                Finding("error", "pgvector", problem, remedy, "recall by vectors may miss entries")
            )
        if is_super:
            findings.append(
                Finding(
                    "ok",
                    "role",
                    "row-level security does not bind this role: see docs/scale.md for one that it binds",
                )
            )
        if lacking:
            findings.append(
                Finding(
                    "error",
                    "citus",
                    f"not distributed: {', '.join(lacking)}",
                    "keepstone postgres citus",
                    "the tables of an earlier version are distributed, and these are not",
                )
            )
        findings += [found for agent in self.agents() for found in self._graphs(agent, fix=fix)]
        sound = True
        names = [(agent, name) for agent in self.agents() for name in session_names(self._connections, agent)]
        for done, (agent, name) in enumerate(names, 1):
            found = self._session(agent, name, deep=deep)
            if found and fix:
                locked(self._connections, agent, name, [], _refill)
                findings.append(
                    Finding("ok", name, "its entries were made again from its lines", agent=agent)
                )
            else:
                findings += found
            sound = sound and not found
            if progress is not None:
                progress(done, len(names))
        if sound:
            findings.append(Finding("ok", "sessions", f"{len(names)} sessions are sound"))
        return findings

    def _graphs(self, agent: str, *, fix: bool) -> list[Finding]:
        """Build an agent's missing graphs if ``fix`` is set and this role may; else report the remedy."""
        findings, is_owner = [], vector_rows.owns_vectors(self._connections)
        for space, dim, count in vector_rows.without_graph(self._connections, agent):
            name = f"{count:,} vectors of {space!r:.80}"
            if fix and is_owner:
                vector_rows.make_graph(self._connections, agent, space, dim)
                findings.append(Finding("ok", "graph", f"made, of {name}", agent=agent))
                continue
            remedy = "keepstone postgres doctor --fix" if is_owner else _AS_OWNER
            harm = "a search of the whole agent compares all"
            findings.append(Finding("warning", "graph", f"{name} have none", remedy, harm, agent))
        return findings

    def _session(self, agent: str, name: str, *, deep: bool) -> list[Finding]:
        said, counted = self._connections.read_all(
            agent,
            [
                (
                    "SELECT entries, texts, words FROM sessions WHERE agent = %s AND session = %s",
                    (agent, stored(name)),
                ),
                (
                    "SELECT count(*), count(sum), coalesce(sum(length), 0) FROM entries "
                    "WHERE agent = %s AND session = %s",
                    (agent, stored(name)),
                ),
            ],
        )
        problems = []
        if said and [*map(int, said[0])] != [*map(int, counted[0])]:
            problems.append("its counts are not those of its entries")
        if deep and not problems and not self._is_same(agent, name):
            problems.append("an entry differs from its lines")
        return [
            Finding("error", name, problem, "keepstone postgres doctor --fix", "recall may be wrong", agent)
            for problem in problems
        ]

    def _is_same(self, agent: str, name: str) -> bool:
        expected = unfold(line for line, archived in lines(self._connections, agent, name) if not archived)
        rows = self._connections.read(
            agent,
            f"SELECT {LOADED} {FROM} WHERE e.agent = %s AND e.session = %s ORDER BY e.seq",
            (agent, stored(name)),
        )
        try:
            found = [record_of(raw) for _, raw in rows]
        except ValueError:
            return False
        return found == [folded.record for folded in expected.fold.entries.values()]

    def backup(
        self, folder: Path, progress: Callable[[int, int], None] | None, *, vectors: bool = False
    ) -> BackupInfo:
        """Refuse: use pg_dump instead."""
        return _ELSEWHERE.backup(folder, progress, vectors=vectors)

    def scrub(self) -> list[str]:
        """Rewrite all tables, so that no removed byte is left in their files; return their names."""
        with self._connections.translated(), self._connections.alone() as connection:
            [(can, schema)] = connection.execute(
                "SELECT bool_and(pg_has_role(c.relowner, 'USAGE')), current_schema() FROM pg_class c "
                "WHERE c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = ANY(%s)",
                ([*TABLES],),
            ).fetchall()
            if not can:
                raise StoreError("only the owner of the tables can scrub them: use its DSN")
            try:
                expire(self._connections, connection)
                for table in TABLES:
                    name = sql.Identifier(schema, table)
                    # FULL writes the table to a new file: VACUUM alone leaves removed bytes on the pages.
                    connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(name))
            except psycopg.errors.ActiveSqlTransaction as error:
                raise StoreError(f"the tables could not be scrubbed: {error}") from None
        return list(TABLES)


_AS_OWNER = "keepstone postgres doctor --fix --home OWNER_DSN"
AGENT_TABLES = (
    *("sessions", "lines", "entries", "vectors", "spaces", "files", "dropped", "events", "purged"),
    *("suggestions", "grants"),
)
"""Tables whose rows belong to one agent each."""
HOME_TABLES = ("home", "agents", "tokens", "sign_ins", "failed_sign_ins", "answers")
TABLES = (*AGENT_TABLES, *HOME_TABLES)
"""All tables of a home, except the table of its version."""


def undistributed(connection: Connection) -> list[str]:
    """Return the tables that Citus does not manage."""
    rows = connection.execute(
        "SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid "
        "WHERE c.relnamespace = quote_ident(current_schema())::regnamespace"
    ).fetchall()
    known = {name for (name,) in rows}
    return [table for table in ("keepstone_schema", *HOME_TABLES, *AGENT_TABLES) if table not in known]


def _refill(locked: LockedSession | None) -> None:
    if locked is not None:
        fill(locked, keep_made=True)
