"""Chroma: a persistent client in the process, one collection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.data import Rows, Scope, Vector
from bench.peers.peer import Defaults, package

chromadb = package("chromadb")


class Chroma(Defaults):
    """One collection with metadata, which Chroma indexes by itself."""

    package = "chromadb"
    settings = "PersistentClient, cosine HNSW as it comes (ef_search 100), no telemetry, largest batches"
    durability = "a SQLite transaction is committed and synced"

    def open(self, folder: Path) -> None:
        """Open the collection."""
        settings = chromadb.config.Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(folder), settings=settings)
        self._rows = self._client.get_or_create_collection(
            "bench", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def fill(self, rows: Rows) -> None:
        """Add the largest batches that Chroma takes."""
        for batch in rows.batches(self._client.get_max_batch_size()):
            self.add(batch)

    def add(self, row: Rows) -> None:
        """Add some rows."""
        self._rows.add(
            ids=[str(number) for number in row.numbers],
            embeddings=row.vectors,
            documents=row.texts,
            metadatas=[{key: line[key] for key in ("session", "type", "ts")} for line in row.dicts()],
        )

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Query with a filter on metadata."""
        found = self._rows.query(
            query_embeddings=[vector],
            n_results=limit,
            where=_where(scope),
            include=["documents", "metadatas"],  # A keepstone entry also includes all of these.
        )
        return [(int(id_), text) for id_, text in zip(found["ids"][0], found["documents"][0], strict=True)]


def _where(scope: Scope) -> dict[str, Any] | None:
    if scope.sessions is not None:
        names = scope.sessions
        return {"session": names[0] if len(names) == 1 else {"$in": names}}
    if scope.type is not None:
        times = [{"ts": {"$gte": scope.since}}, {"ts": {"$lt": scope.until}}]
        return {"$and": [{"type": scope.type}, *times]}
    return None


PEER = Chroma
