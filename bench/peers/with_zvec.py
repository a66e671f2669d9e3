"""Zvec: one collection with an index on every queried field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.peers.data import DIM, Rows, Scope, Vector
from bench.peers.peer import Defaults, package

zvec = package("zvec")


class Zvec(Defaults):
    """HNSW with inverted indexes; Zvec's own rule scans small scopes exactly."""

    package = "zvec"
    settings = (
        "HNSW as it comes (m 50, ef 300), cosine; inverted indexes on session, type and ts; words index"
    )
    durability = "synced by a flush after each add; without one it is in the write-ahead log, unsynced"
    has_words = True

    def open(self, folder: Path) -> None:
        """Open the collection."""
        there = folder.exists()
        folder.parent.mkdir(parents=True, exist_ok=True)
        self._rows = zvec.open(str(folder)) if there else zvec.create_and_open(str(folder), _schema())

    def fill(self, rows: Rows) -> None:
        """Insert the largest batches that Zvec takes."""
        for batch in rows.batches(1000):
            _check(self._rows.insert(_docs(batch)))
        self._rows.flush()

    def ready(self) -> None:
        """Build the graph."""
        self._rows.optimize()

    def add(self, row: Rows) -> None:
        """Insert one row and flush it."""
        _check(self._rows.insert(_docs(row)))
        self._rows.flush()

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Query with a filter."""
        return self._ask(zvec.Query("vector", vector=vector), _where(scope), limit)

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Query the words index for any of the words."""
        return self._ask(zvec.Query("text", fts=zvec.Fts(match_string=query)), None, limit)

    def close(self) -> None:
        """Close the collection."""
        self._rows.close()

    def _ask(self, query: Any, where: str | None, limit: int) -> list[tuple[int, str]]:
        # All fields are returned, which is the default: a keepstone entry also includes its session, type and
        # time.
        found = self._rows.query(query, topk=limit, filter=where)
        return [(int(doc.id), doc.field("text")) for doc in found]


def _docs(rows: Rows) -> list[Any]:
    return [
        zvec.Doc(
            id=str(row["id"]),
            vectors={"vector": vector},
            fields={key: row[key] for key in ("text", "session", "type", "ts")},
        )
        for row, vector in zip(rows.dicts(), rows.vectors, strict=True)
    ]


def _check(statuses: list[Any]) -> None:
    bad = next((status for status in statuses if not status.ok()), None)
    if bad is not None:
        raise RuntimeError(f"zvec refused a row: {bad.message()}")


def _where(scope: Scope) -> str | None:
    if scope.sessions is not None:
        return "session in (" + ", ".join(f"'{name}'" for name in scope.sessions) + ")"
    if scope.type is not None:
        return f"type = '{scope.type}' and ts >= {scope.since} and ts < {scope.until}"
    return None


def _schema() -> Any:
    text, whole = zvec.DataType.STRING, zvec.DataType.INT64
    return zvec.CollectionSchema(
        name="bench",
        fields=[
            zvec.FieldSchema("text", text, index_param=zvec.FtsIndexParam()),
            zvec.FieldSchema("session", text, index_param=zvec.InvertIndexParam()),
            zvec.FieldSchema("type", text, index_param=zvec.InvertIndexParam()),
            zvec.FieldSchema("ts", whole, index_param=zvec.InvertIndexParam(enable_range_optimization=True)),
        ],
        vectors=zvec.VectorSchema(
            "vector",
            zvec.DataType.VECTOR_FP32,
            DIM,
            index_param=zvec.HnswIndexParam(metric_type=zvec.MetricType.COSINE, m=16, ef_construction=200),
        ),
    )


PEER = Zvec
