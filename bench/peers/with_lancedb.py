"""LanceDB: one table with an index on every queried column."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from bench.peers.data import DIM, Rows, Scope, Vector
from bench.peers.peer import Defaults, package

# Disable telemetry.
os.environ["LANCEDB_TELEMETRY"] = os.environ["DO_NOT_TRACK"] = "1"

lancedb, index, pa = package("lancedb"), package("lancedb.index"), package("pyarrow")


class LanceDB(Defaults):
    """Filtered searches are exact and use the scalar indexes; unfiltered ones use the vector index."""

    package = "lancedb"
    settings = (
        "BTREE on session and time, BITMAP on type, words index, HNSW-SQ of one partition with refine "
        "factor 3; with a filter the vector index is bypassed, which is exact and quicker here"
    )
    durability = "a new version of the table is written, and nothing synced: a power cut may lose it"
    has_words = True

    def open(self, folder: Path) -> None:
        """Open the table."""
        self._table = lancedb.connect(folder).create_table("bench", schema=_SCHEMA, exist_ok=True)

    def fill(self, rows: Rows) -> None:
        """Add large batches."""
        for batch in rows.batches(50_000):
            self.add(batch)

    def ready(self) -> None:
        """Build all indexes."""
        table = self._table
        table.create_index("session", config=index.BTree())
        table.create_index("ts", config=index.BTree())
        table.create_index("type", config=index.Bitmap())
        table.create_index("text", config=index.FTS(with_position=False))
        table.create_index("vector", config=index.HnswSq(distance_type="cosine", num_partitions=1))
        table.optimize()

    def add(self, row: Rows) -> None:
        """Add some rows."""
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(row.vectors.reshape(-1)), DIM)
        columns = [pa.array(row.numbers), row.texts, row.sessions, row.types, row.times, vectors]
        self._table.add(pa.table(columns, schema=_SCHEMA))

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Search with a filter that is applied before vectors are compared."""
        search = self._table.search(vector).distance_type("cosine").limit(limit).select(["id", "text"])
        where = _where(scope)
        if where is None:
            return _answer(search.refine_factor(3).ef(100))
        return _answer(search.where(where, prefilter=True).bypass_vector_index())

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Search the words index."""
        return _answer(self._table.search(query, query_type="fts").limit(limit).select(["id", "text"]))


def _answer(search: Any) -> list[tuple[int, str]]:
    table = search.to_arrow()
    return list(zip(table["id"].to_pylist(), table["text"].to_pylist(), strict=True))


def _where(scope: Scope) -> str | None:
    if scope.sessions is not None:
        return "session IN (" + ", ".join(f"'{name}'" for name in scope.sessions) + ")"
    if scope.type is not None:
        return f"type = '{scope.type}' AND ts >= {scope.since} AND ts < {scope.until}"
    return None


_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("text", pa.string()),
        ("session", pa.string()),
        ("type", pa.string()),
        ("ts", pa.int64()),
        ("vector", pa.list_(pa.float32(), DIM)),
    ]
)

PEER = LanceDB
