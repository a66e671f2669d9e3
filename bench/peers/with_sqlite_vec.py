"""sqlite-vec: a vec0 table with metadata columns for filters."""

from __future__ import annotations

from pathlib import Path

from bench.peers.data import DIM, Rows, Scope, Vector
from bench.peers.peer import Defaults, package

# The standard library often cannot load extensions. apsw can, and it has the SQLite that keepstone uses.
apsw, sqlite_vec = package("apsw"), package("sqlite_vec")


class SqliteVec(Defaults):
    """One virtual table with the text as an auxiliary column."""

    package = "sqlite-vec"
    settings = "vec0 with metadata columns session, type and ts, cosine; WAL, synchronous=FULL"
    durability = "a SQLite transaction is committed and synced (WAL, synchronous=FULL)"
    session_column = "session text"

    def open(self, folder: Path) -> None:
        """Open the database."""
        folder.mkdir(parents=True, exist_ok=True)
        self._db = apsw.Connection(str(folder / "bench.db"))
        self._db.enable_load_extension(True)  # noqa: FBT003  SQLite's signature.
        sqlite_vec.load(self._db)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS rows USING vec0(id integer primary key, "
            f"{self.session_column}, type text, ts integer, +text text, "
            f"vector float[{DIM}] distance_metric=cosine)"
        )

    def fill(self, rows: Rows) -> None:
        """Insert ten thousand rows in each transaction."""
        for batch in rows.batches(10_000):
            self.add(batch)

    def add(self, row: Rows) -> None:
        """Insert some rows in one transaction."""
        values = zip(
            row.numbers, row.sessions, row.types, row.times, map(bytes, row.vectors), row.texts, strict=True
        )
        with self._db:
            self._db.executemany(
                "INSERT INTO rows (id, session, type, ts, vector, text) VALUES (?, ?, ?, ?, ?, ?)", values
            )

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Query the nearest rows; the filter is applied before vectors are compared."""
        where, values = _where(scope)
        statement = "SELECT id, text FROM rows WHERE vector MATCH ? AND k = ?" + where + " ORDER BY distance"  # noqa: S608
        return list(self._db.execute(statement, [bytes(vector), limit, *values]))

    def close(self) -> None:
        """Close the database."""
        self._db.close()


def _where(scope: Scope) -> tuple[str, list[str | int | None]]:
    if scope.sessions is not None:
        places = ", ".join("?" * len(scope.sessions))
        return f" AND session IN ({places})", [*scope.sessions]
    if scope.type is not None:
        return " AND type = ? AND ts >= ? AND ts < ?", [scope.type, scope.since, scope.until]
    return "", []


PEER = SqliteVec
