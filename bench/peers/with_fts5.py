"""SQLite's FTS5 alone: words, no vectors."""

from __future__ import annotations

from pathlib import Path

from bench.peers.data import Rows
from bench.peers.peer import Defaults, package

apsw = package("apsw")


class Fts5(Defaults):
    """One full-text table, queried for any of the words."""

    package = "apsw"
    settings = "porter unicode61, any of the words, bm25; WAL, synchronous=FULL; no vectors"
    durability = "a SQLite transaction is committed and synced (WAL, synchronous=FULL)"
    has_vectors = False
    has_words = True

    def open(self, folder: Path) -> None:
        """Open the database."""
        folder.mkdir(parents=True, exist_ok=True)
        self._db = apsw.Connection(str(folder / "bench.db"))
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS rows USING fts5("
            "text, session UNINDEXED, type UNINDEXED, ts UNINDEXED, tokenize='porter unicode61')"
        )

    def fill(self, rows: Rows) -> None:
        """Insert ten thousand rows in each transaction."""
        for batch in rows.batches(10_000):
            self.add(batch)

    def add(self, row: Rows) -> None:
        """Insert some rows in one transaction."""
        values = zip(row.numbers, row.texts, row.sessions, row.types, row.times, strict=True)
        with self._db:
            self._db.executemany(
                "INSERT INTO rows (rowid, text, session, type, ts) VALUES (?, ?, ?, ?, ?)", values
            )

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Search for any of the words, the best first."""
        match = " OR ".join(f'"{word}"' for word in query.split())
        statement = "SELECT rowid, text FROM rows WHERE rows MATCH ? ORDER BY rank LIMIT ?"
        return list(self._db.execute(statement, [match, limit]))

    def close(self) -> None:
        """Close the database."""
        self._db.close()


PEER = Fts5
