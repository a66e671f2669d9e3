"""Qdrant Edge: one shard with an index on every queried payload field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.data import DIM, Rows, Scope, Vector
from bench.peers.peer import Defaults, package

qdrant = package("qdrant_edge")


class QdrantEdge(Defaults):
    """HNSW with payload indexes; Qdrant's own rule scans small scopes exactly."""

    package = "qdrant-edge-py"
    settings = (
        "HNSW m 16, ef_construct 100, cosine; keyword index on session (tenant) and type, integer index "
        "on ts, BM25 text index; optimized after filling"
    )
    durability = "synced by a flush after each add; without one it is in the write-ahead log, unsynced"
    has_words = True

    def open(self, folder: Path) -> None:
        """Load the shard, or create it with its indexes."""
        if folder.exists():
            self._shard = qdrant.EdgeShard.load(str(folder))
            return
        folder.mkdir(parents=True)
        self._shard = qdrant.EdgeShard.create(str(folder), _config())
        for field, index in _indexes().items():
            self._shard.update(qdrant.UpdateOperation.create_field_index(field, index))

    def fill(self, rows: Rows) -> None:
        """Upsert batches and flush."""
        for batch in rows.batches(1000):
            self._shard.update(qdrant.UpdateOperation.upsert_points(_points(batch)))
        self._shard.flush()

    def ready(self) -> None:
        """Build the graph."""
        self._shard.optimize()
        self._shard.flush()

    def add(self, row: Rows) -> None:
        """Upsert one row and flush it."""
        self._shard.update(qdrant.UpdateOperation.upsert_points(_points(row)))
        self._shard.flush()

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Query with a filter."""
        return self._ask(qdrant.Query.Nearest(vector.tolist()), _filter(scope), limit)

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Score by BM25 over the text index."""
        return self._ask(qdrant.TextQuery("text", query), None, limit)

    def close(self) -> None:
        """Close the shard."""
        self._shard.close()

    def _ask(self, query: Any, scope: Any, limit: int) -> list[tuple[int, str]]:
        request = qdrant.QueryRequest(limit=limit, query=query, filter=scope, with_payload=["text"])
        return [(point.id, point.payload["text"]) for point in self._shard.query(request)]


def _config() -> Any:
    graph = qdrant.HnswIndexConfig(m=16, ef_construct=100, full_scan_threshold=10_000)
    vectors = qdrant.EdgeVectorParams(size=DIM, distance=qdrant.Distance.Cosine)
    return qdrant.EdgeConfig(vectors=vectors, hnsw_config=graph)


def _indexes() -> dict[str, Any]:
    return {
        "session": qdrant.KeywordIndexParams(is_tenant=True),
        "type": qdrant.KeywordIndexParams(),
        "ts": qdrant.IntegerIndexParams(range=True, lookup=False, is_principal=True),
        "text": qdrant.TextIndexParams(tokenizer=qdrant.TokenizerType.Word, lowercase=True, scoring=True),
    }


def _points(rows: Rows) -> list[Any]:
    fields = ("text", "session", "type", "ts")
    return [
        qdrant.Point(row["id"], vector, {key: row[key] for key in fields})
        for row, vector in zip(rows.dicts(), rows.vectors.tolist(), strict=True)
    ]


def _filter(scope: Scope) -> Any:
    if scope.sessions is not None:
        return qdrant.Filter(must=[qdrant.FieldCondition("session", match=qdrant.MatchAny(scope.sessions))])
    if scope.type is not None:
        kind = qdrant.FieldCondition("type", match=qdrant.MatchValue(scope.type))
        times = qdrant.RangeFloat(gte=scope.since, lt=scope.until)
        return qdrant.Filter(must=[kind, qdrant.FieldCondition("ts", range=times)])
    return None


PEER = QdrantEdge
