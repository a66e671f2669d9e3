"""This checkout of keepstone, through its public interface."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.peers.data import Rows, Scope, Vector
from bench.peers.peer import Defaults

import keepstone


class Keepstone(Defaults):
    """One agent that holds all rows: log, words and vectors."""

    package = "keepstone"
    settings = "one agent, no embedder, vectors given; log, words and vectors are all kept"
    durability = "the log line is synced (fdatasync) before each add returns"
    has_words = True

    def open(self, folder: Path) -> None:
        """Open a home."""
        self._home = keepstone.open(folder, embedder="none")
        self._agent = self._home.agent("bench")

    def fill(self, rows: Rows) -> None:
        """Add each session's rows in batches of 1,000."""
        self._some = rows.vectors[0]
        for name, inside in rows.by_session():
            session = self._agent.session(name)
            for batch in inside.batches(1000):
                session.add_many(_items(batch))

    def ready(self) -> None:
        """Query once, and wait for the background work that the query starts."""
        self.near(self._some, Scope(), 1)
        for thread in set(threading.enumerate()) - {threading.main_thread()}:
            thread.join()

    def add(self, row: Rows) -> None:
        """Add one entry."""
        item = _items(row)[0]
        self._agent.session(row.sessions[0]).add(item.pop("type"), **item)

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Recall only by a vector."""
        hits = self._agent.recall(
            None,
            vector=vector,
            limit=limit,
            sessions=scope.sessions,
            types=None if scope.type is None else [scope.type],
            since=_time(scope.since),
            until=_time(scope.until),
        )
        return _answer(hits)

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Recall only by words."""
        return _answer(self._agent.recall(query, limit=limit))

    def close(self) -> None:
        """Close the home."""
        self._home.close()


def _items(rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "id": str(row["id"]),
            "type": row["type"],
            "ts": _time(row["ts"]),
            "text": row["text"],
            "embedding": vector,
        }
        for row, vector in zip(rows.dicts(), rows.vectors, strict=True)
    ]


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _answer(hits: keepstone.Hits) -> list[tuple[int, str]]:
    return [(int(hit.entry.id), hit.entry.text) for hit in hits]


PEER = Keepstone
