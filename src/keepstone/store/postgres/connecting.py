"""Connections to the database: the pool, transactions of one agent, retries, and errors.

In the messages of a connection, the password and its parts of three or more characters are masked.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.types import TypeInfo
from psycopg.types.array import ListBinaryDumper
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from keepstone.errors import KeepstoneError, LockTimeoutError, StoreError
from keepstone.filesystem.fork import reset_in_child
from keepstone.store.postgres.connect_errors import may_pass, remedy_of, unknown_option
from keepstone.store.postgres.groups import Groups
from keepstone.store.postgres.own_schema import check_schema
from keepstone.store.postgres.row_arrays import Column
from keepstone.store.postgres.statements import HomeConnection, Statement
from keepstone.store.postgres.vector_format import dumper_of
from keepstone.store.sharing.acting import ACTING
from keepstone.text.tokenizer import ENGLISH

T = TypeVar("T")

Connection: TypeAlias = HomeConnection

LOCK_SECONDS = 5
"""Seconds that a writer waits for the lock of another writer."""
POOL_SECONDS = 10.0
"""Seconds that a call waits for a connection from the pool."""
_BACK_SECONDS = 1.0
"""Seconds that a call waits again for a connection after the pool timed out, if the server answers: it may
have just restarted."""
_BETWEEN_TRIES = 0.1
MOST_CONNECTIONS = 10
"""Maximum number of connections in the pool of one process."""

_TRIES = 6
_SETTINGS: dict[str, Any] = {
    "autocommit": True,
    "connect_timeout": 10,
    "application_name": "keepstone",
    "prepare_threshold": None,  # See HomeConnection.
}
_USERINFO = re.compile(r"^(?P<begin>[A-Za-z]+:/{1,2}[^:/@?#]*:)(?P<secret>.*)@")
_IN_QUERY = re.compile(r"(?<=[?&])(password|sslpassword)=([^&]*)", re.IGNORECASE)
_SHORTEST = 3

AGAIN = (pg.SerializationFailure, pg.DeadlockDetected)
"""Errors after which the database has rolled back a transaction, which may be retried."""

PLANNED_ONCE = ", set_config('plan_cache_mode', 'force_generic_plan', true)"
"""A setting for prepared statements that take less time to execute than to plan for each set of values."""


class VanishedError(Exception):
    """A row was removed just before it was locked; the transaction is retried."""


_TRANSLATED = (psycopg.Error, VanishedError)


class Target:
    """The database that a home's URL names, and the secrets in the URL, which must never be shown."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition(":")
        self.dsn = f"{scheme}://{rest.lstrip('/')}"
        found = _USERINFO.match(self.dsn)
        secrets = [
            *([found["secret"]] if found else []),
            *(match[2] for match in _IN_QUERY.finditer(self.dsn)),
        ]
        # An unencoded "@" or "/" in a password splits it, and a message may contain any of the parts.
        parts = [part for secret in secrets for part in (secret, *re.split(r"[@/:?#]", secret))]
        self._secrets = sorted({*parts, *map(unquote, parts)} - {""}, key=len, reverse=True)
        try:
            options = conninfo_to_dict(self.dsn)
        except psycopg.ProgrammingError as error:
            if (option := unknown_option(error)) is not None:
                raise StoreError(
                    f"PostgreSQL knows no option {option!r:.80} of a URL: correct it, or leave it out"
                ) from None
            options = {}
        if not options or "@" in str(options.get("host", "")):
            raise StoreError(
                f"{self.shown()} is not a URL of a database; write postgresql://user:password@host/database, "
                "with %40 for @ and %2F for / in the password"
            ) from None

    def shown(self) -> str:
        """Return the URL without a password."""
        shown = _USERINFO.sub(lambda found: f"{found['begin']}***@", self.dsn)
        return self.without_secrets(_IN_QUERY.sub(r"\1=***", shown))

    def without_secrets(self, text: str) -> str:
        """Return a message with the password masked, and any part of it that was parsed as something else."""
        for secret in self._secrets:
            # Masking one or two characters would hide most of the message.
            text = text.replace(secret, "***") if len(secret) >= _SHORTEST else text
        return text


class Connections:
    """The connections of one home, shared by all threads of a process; a forked child opens its own."""

    def __init__(self, url: str, *, durable: bool) -> None:
        self.target = Target(url)
        self.language = ENGLISH
        """The language that is used for stemming."""
        self.writes = 0
        """Number of writes by this process; when it changes, cached values are read again."""
        self.is_distributed = False
        """Whether Citus distributes the tables: it passes on only settings by ``SET LOCAL`` after BEGIN."""
        self._durable = durable
        self._reset()
        reset_in_child(self)

    def _reset(self) -> None:
        self._guard = threading.Lock()
        self.adds = Groups[Any]()
        """Groups of new entries from several threads, which are written together."""
        self._pool: ConnectionPool[Connection] | None = None

    def reset(self) -> None:
        """Leave the connections to the parent process."""
        self._inherited = self._pool  # Closing them would close the parent's.
        self._reset()

    def _opened(self) -> ConnectionPool[Connection]:
        with self._guard:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.target.dsn,
                    # With 0, an idle process closes all its connections.
                    min_size=0,
                    max_size=MOST_CONNECTIONS,
                    timeout=POOL_SECONDS,
                    max_idle=300,
                    open=False,
                    kwargs=_SETTINGS,
                    connection_class=HomeConnection,
                    configure=self._configure,
                    reconnect_timeout=POOL_SECONDS,
                )
                self._pool.open()
            return self._pool

    def _configure(self, connection: Connection) -> None:
        commit = "" if self._durable else ", set_config('synchronous_commit', 'off', false)"
        check_schema(connection)
        [(vector, vectors, *_)] = connection.execute(
            "SELECT coalesce(to_regtype('vector')::oid::bigint, 0), "
            "coalesce(to_regtype('vector[]')::oid::bigint, 0), "
            f"set_config('lock_timeout', '{LOCK_SECONDS}s', false){commit}".encode()
        ).fetchall()
        TypeInfo("vector", vector, vectors).register(connection)
        connection.adapters.register_dumper("numpy.ndarray", dumper_of(vector))
        connection.adapters.register_dumper(Column, ListBinaryDumper)

    def close(self) -> None:
        """Close all connections."""
        with self._guard:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def alone(self, *, seconds: float = 0.0) -> Connection:
        """Return a connection outside the pool, which the caller may keep.

        Retries for ``seconds`` if the server seems to be restarting.

        Raises:
            StoreError: The database does not answer, or the schema of the home is missing.
        """
        with self.translated(), ExitStack() as failed:
            connection = self._connected(time.monotonic() + seconds)
            failed.callback(connection.close)
            check_schema(connection)
            failed.pop_all()
            return connection

    def _connected(self, deadline: float) -> Connection:
        while True:
            try:
                return HomeConnection.connect(self.target.dsn, **_SETTINGS)
            except psycopg.OperationalError as error:
                if not may_pass(error) or time.monotonic() >= deadline:
                    raise
            time.sleep(_BETWEEN_TRIES)

    def enter(self, connection: Connection, agent: str) -> None:
        """Set the agent until the end of the current transaction."""
        for statement, values in self.entering(agent):
            connection.execute(statement.encode(), values)

    def entering(self, agent: str, more: str = "") -> list[Statement]:
        """Return the statements of ``enter``; ``more`` adds expressions to the last statement."""
        begin: list[Statement] = []
        if (acting := ACTING.get()) is not None:
            role = "keepstone.writer" if acting.is_writing else "keepstone.reader"
            settings = "SELECT set_config(%s, %s, true), set_config('keepstone.moment', %s, true)"
            begin = [(settings, (role, acting.to, acting.moment.isoformat()))]
        if self.is_distributed:
            # SET takes no parameters, so the name is quoted here.
            setting = sql.SQL("SET LOCAL keepstone.agent TO {}").format(sql.Literal(agent)).as_string()
            begin += [("SET LOCAL citus.propagate_set_commands TO 'local'", ()), (setting, ())]
        return [*begin, (f"SELECT set_config('keepstone.agent', %s, true){more}", (agent,))]

    def once(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` once with a connection of the pool; statements raise psycopg's errors."""
        pool = self._opened()
        try:
            connection = pool.getconn()
        except PoolTimeout:
            self.alone().close()  # Raises the cause if the server does not answer.
            connection = pool.getconn(_BACK_SECONDS)
        try:
            return work(connection)
        # Also after an interrupt, so that no connection returns to the pool inside a transaction.
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK")
            raise
        finally:
            pool.putconn(connection)

    def run(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` with a connection; retry if the connection is cut or the database rolls back.

        ``work`` must not write twice if it is retried.

        Raises:
            StoreError, LockTimeoutError: The database failed; the message names the remedy.
        """
        for attempt in range(_TRIES):
            try:
                return self.once(work)
            except _TRANSLATED as error:
                was_cut = isinstance(error, psycopg.Error) and is_cut(error)
                if attempt == _TRIES - 1 or not (was_cut or isinstance(error, (*AGAIN, VanishedError))):
                    raise self._translated(error) from None
                if was_cut:
                    self._drop_broken()
            time.sleep(random.uniform(0, 0.02 * 3**attempt))
        raise AssertionError

    def read(self, agent: str, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query about an agent, in one round trip."""
        return self.read_all(agent, [(query, values)])[0]

    def read_all(
        self, agent: str, queries: Sequence[tuple[str, Sequence[Any]]], more: str = ""
    ) -> list[list[tuple[Any, ...]]]:
        """Return the rows of several queries about an agent, in one round trip and one transaction.

        ``more`` adds a setting to the first statement of the transaction, such as ``PLANNED_ONCE``.
        """
        begin = self.entering(agent, more)
        statements = [*begin, *queries]
        if self.is_distributed:
            statements = [("BEGIN", ()), *statements, ("COMMIT", ())]

        def work(connection: Connection) -> list[list[tuple[Any, ...]]]:
            results = connection.send_all(statements)[len(begin) + self.is_distributed :]
            return [rows for rows, _ in results[: len(queries)]]

        return self.run(work)

    def _drop_broken(self) -> None:
        pool = self._pool
        if pool is not None:
            # After a restart of the server all connections of the pool are broken, not only this one.
            with suppress(psycopg.Error, PoolClosed):
                pool.check()

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise database errors as keepstone's errors, with a remedy and without the password."""
        try:
            yield
        except _TRANSLATED as error:
            raise self._translated(error) from None

    def _translated(self, error: Exception) -> KeepstoneError:
        if isinstance(error, pg.LockNotAvailable):
            return LockTimeoutError(
                f"another writer held the lock for {LOCK_SECONDS} s; try again, or end what holds it"
            )
        said = self.target.without_secrets(" ".join(str(error).split())[:300])
        return StoreError(f"the database {self.target.shown()} failed: {said}; {_remedy(error)}")


def is_cut(error: psycopg.Error) -> bool:
    """Return whether an error means that the connection is lost or the server is starting or stopping."""
    if isinstance(error, pg.AdminShutdown | pg.CrashShutdown | pg.CannotConnectNow | pg.ConnectionException):
        return True
    if isinstance(error, PoolTimeout):
        return False
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def _remedy(error: Exception) -> str:
    if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
        found = remedy_of(error)
        if found is not None:
            return found
    # The general error comes last, as most others are subclasses of it.
    remedies: list[tuple[type[Exception] | tuple[type[Exception], ...], str]] = [
        (PoolTimeout, "more calls at the same time than connections: use fewer threads, and try again"),
        (
            (pg.InsufficientPrivilege,),
            "let the owner of the schema run keepstone postgres init, and grant the role its tables",
        ),
        ((pg.UndefinedTable, pg.UndefinedColumn), "run keepstone postgres init --home DSN"),
        ((pg.QueryCanceled,), "raise statement_timeout of the role, and try again"),
        ((pg.DiskFull,), "free disk space of the server, and try again"),
        (
            (pg.ReadOnlySqlTransaction,),
            "this server takes no writes: use the primary, or name all hosts with "
            "target_session_attrs=read-write",
        ),
        (
            (pg.InvalidSqlStatementName, pg.DuplicatePreparedStatement),
            "a pooler that pools transactions, such as PgBouncer with pool_mode=transaction, is in between: "
            "let it pool sessions, or connect to the server itself",
        ),
        (AGAIN, "many writers change the same entries: try again"),
        (psycopg.OperationalError, "check that the server runs and can be reached, and try again"),
    ]
    return next((say for kinds, say in remedies if isinstance(error, kinds)), "see the log of the server")
