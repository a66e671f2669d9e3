"""An agent's own text files, as rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from keepstone.errors import IsAFolderError, MemoryFileNotFoundError, NotTextError
from keepstone.files import Check, file_bytes, file_name
from keepstone.store.postgres.connecting import Connection, Connections
from keepstone.text.tokenizer import containing

Row = tuple[Any, ...]
Rows = list[Row]


class PostgresFiles:
    """The ``Files`` of an agent. The path of a folder that contains a file cannot be a file."""

    def __init__(self, connections: Connections, agent: str) -> None:
        self._connections = connections
        self._agent = agent

    def read(self, path: str) -> str:
        """Return a file's text."""
        name = file_name(path)
        rows = self._read("SELECT content FROM files WHERE agent = %s AND path = %s", name)
        if not rows:
            self._refuse_folder(self._read(_BELOW, *_range(name)), name)
            raise _missing(name)
        return _text(name, bytes(rows[0][0]))

    def write(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Create or replace a file."""
        name, data = file_name(path), file_bytes(content)
        self._change(name, check, lambda _: data)
        return len(data)

    def append(self, path: str, content: str, *, check: Check | None = None) -> int:
        """Append to a file, or create it."""
        name, data = file_name(path), file_bytes(content)
        self._change(name, check, lambda old: (old or b"") + data)
        return len(data)

    def delete(self, path: str, *, check: Check | None = None) -> None:
        """Remove a file."""
        name = file_name(path)

        def gone(old: bytes | None) -> None:
            if old is None:
                raise _missing(name)

        self._change(name, check, gone)

    def matching(self, text: str) -> list[str]:
        """Return the paths of all files whose path or content contains a text, ignoring case."""
        contains = containing(text)
        rows = self._read("SELECT path, content FROM files WHERE agent = %s ORDER BY path")
        return [
            path for path, data in rows if contains(path) or contains(bytes(data).decode("utf-8", "replace"))
        ]

    def texts(self, most: int) -> dict[str, str | None]:
        """Return the texts of files by path, up to ``most`` bytes in total; None for further files."""
        rows = self._read(
            # A running sum over the files, shortest first: as many texts as fit are returned.
            "SELECT path, CASE WHEN sum(length(content)) OVER (ORDER BY length(content), path) <= %s "
            "THEN content END FROM files WHERE agent = %s ORDER BY length(content), path",
            most,
            last=True,
        )
        return {path: None if data is None else bytes(data).decode() for path, data in rows}

    def list(self, folder: str = "") -> list[str]:
        """Return the paths of all files, or of those below a folder, sorted."""
        name = file_name(folder) if folder else ""
        if name:
            return [path for (path,) in self._read(_BELOW, *_range(name))]
        return [path for (path,) in self._read("SELECT path FROM files WHERE agent = %s ORDER BY path")]

    def _read(self, sql: str, *values: Any, last: bool = False) -> Rows:
        given = (*values, self._agent) if last else (self._agent, *values)
        return self._connections.read(self._agent, sql, given)

    def _change(self, name: str, check: Check | None, change: Callable[[bytes | None], bytes | None]) -> None:
        """Replace a file's content by the result of ``change`` under a lock; None removes the file."""

        def work(connection: Connection) -> None:
            with connection.transaction():
                self._connections.enter(connection, self._agent)
                connection.execute(
                    # An advisory lock of the agent, as a new file has no row to lock.
                    "SELECT pg_advisory_xact_lock(hashtext('keepstone.files ' || current_schema()), "
                    "hashtext(%s))",
                    (self._agent,),
                )
                rows = connection.execute(
                    "SELECT content FROM files WHERE agent = %s AND path = %s", (self._agent, name)
                ).fetchall()
                old = bytes(rows[0][0]) if rows else None
                if old is None:
                    self._refuse_folder(
                        connection.execute(_BELOW, (self._agent, *_range(name))).fetchall(), name
                    )
                new = change(old)
                if check is not None:
                    check(None if old is None else old.decode("utf-8", "surrogateescape"))
                self._save(connection, name, new)

        self._connections.run(work)

    def _save(self, connection: Connection, name: str, new: bytes | None) -> None:
        place = (self._agent, name)
        if new is None:
            connection.execute("DELETE FROM files WHERE agent = %s AND path = %s", place)
            return
        # Rows have no folders, so check that no parent of the file is a file itself.
        parts = name.split("/")
        parents = ["/".join(parts[:count]) for count in range(1, len(parts))]
        if connection.execute(
            "SELECT 1 FROM files WHERE agent = %s AND path = ANY(%s)", (self._agent, parents)
        ).fetchall():
            raise ValueError(f"a parent of {name!r} is a file, not a folder; use another path")
        # The file may be the first row of its agent.
        connection.execute("INSERT INTO agents VALUES (%s) ON CONFLICT DO NOTHING", (self._agent,))
        connection.execute(
            "INSERT INTO files (agent, path, content) VALUES (%s, %s, %s) ON CONFLICT (agent, path) "
            "DO UPDATE SET content = excluded.content, modified = excluded.modified",
            (*place, new),
        )

    @staticmethod
    def _refuse_folder(below: Rows, name: str) -> None:
        if below:
            raise IsAFolderError(f"{name!r} is a folder, not a file: name a file in it")


_BELOW = "SELECT path FROM files WHERE agent = %s AND path >= %s AND path < %s ORDER BY path"


def _range(folder: str) -> tuple[str, str]:
    """Return the inclusive lower and the exclusive upper bound of the paths below a folder."""
    # "0" is the character after "/".
    return f"{folder}/", f"{folder}0"


def _missing(name: str) -> MemoryFileNotFoundError:
    return MemoryFileNotFoundError(f"there is no file {name!r}; list() returns all paths")


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotTextError(f"{name!r} is not UTF-8 at byte {error.start}; re-encode it") from error
