"""LangGraph's InMemoryStore: a namespace for each session, nothing on disk."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers.data import DIM, Rows, Scope, Vector
from bench.peers.peer import Defaults, package

store, base = package("langgraph.store.memory"), package("langgraph.store.base")


class LangGraph(Defaults):
    """An in-memory store whose embedding function looks up the given vectors."""

    package = "langgraph"
    settings = (
        "a namespace for each session; its embedding function returns the given vectors as float32 arrays"
    )
    durability = "none: it lives in the process's memory"
    largest = 100_000
    persistent = False

    def open(self, folder: Path) -> None:  # noqa: ARG002  Nothing is kept.
        """Create an empty store."""
        self._given: dict[str, Vector] = {}
        index = {"dims": DIM, "embed": self._embed, "fields": ["text"]}
        self._rows = store.InMemoryStore(index=index)

    def fill(self, rows: Rows) -> None:
        """Put batches."""
        for batch in rows.batches(1000):
            self.add(batch)

    def add(self, row: Rows) -> None:
        """Put some rows."""
        self._given = dict(zip(row.texts, row.vectors.copy(), strict=True))
        fields = ("text", "type", "ts")
        self._rows.batch(
            [
                base.PutOp(("rows", line["session"]), str(line["id"]), {key: line[key] for key in fields})
                for line in row.dicts()
            ]
        )

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Search one namespace, several, or all with a filter."""
        self._given = {"?": vector}
        places = [("rows",)] if scope.sessions is None else [("rows", name) for name in scope.sessions]
        found = [
            item
            for place in places
            for item in self._rows.search(place, query="?", filter=_filter(scope), limit=limit)
        ]
        found.sort(key=lambda item: -item.score)
        return [(int(item.key), item.value["text"]) for item in found[:limit]]

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        return [self._given[text] for text in texts]


def _filter(scope: Scope) -> dict[str, Any] | None:
    if scope.type is None:
        return None
    return {"type": scope.type, "ts": {"$gte": scope.since, "$lt": scope.until}}


PEER = LangGraph
