"""The interface of a measured store (a peer), and the list of peers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from bench.peers.data import Rows, Scope, Vector

PEERS = (
    "keepstone",
    "chroma",
    "lancedb",
    "sqlite_vec",
    "sqlite_vec_partition",
    "zvec",
    "qdrant_edge",
    "langgraph",
    "fts5",
)
"""The peers, in the order of the table. Each peer has a module ``with_NAME``, whose ``PEER`` is the class."""


class Peer(Protocol):
    """One store, used through its documented interface. All results include the texts of the rows."""

    package: str
    """The package whose version is reported."""
    settings: str
    """Description of the store's configuration."""
    durability: str
    """Description of the durability of a single add once it has returned."""
    largest: int
    """Maximum number of rows with which the peer is measured."""
    persistent: bool
    """Whether a new process finds the rows that an earlier process stored."""
    has_vectors: bool
    has_words: bool

    def open(self, folder: Path) -> None:
        """Open the store in a folder, or create an empty store."""

    def fill(self, rows: Rows) -> None:
        """Store rows in bulk, durably."""

    def ready(self) -> None:
        """Build the structures for fast queries, if ``fill`` did not."""

    def add(self, row: Rows) -> None:
        """Store one row with the best durability that the store offers."""

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Return the numbers and texts of the nearest rows in scope, the best first."""

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Return the numbers and texts of the rows that match the words best."""

    def close(self) -> None:
        """Close the store; all rows are then on disk."""


class Defaults:
    """Defaults that most peers share."""

    durability = ""
    largest = 1_000_000
    persistent = True
    has_vectors = True
    has_words = False

    def ready(self) -> None:
        """Do nothing: ``fill`` built everything."""

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Refuse: this peer has no vectors."""
        raise NotImplementedError

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Refuse: this peer has no keyword search."""
        raise NotImplementedError

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def load(name: str) -> type[Peer]:
    """Return a peer's class; this imports the peer's package."""
    peer: type[Peer] = import_module(f"bench.peers.with_{name}").PEER
    return peer


def package(name: str) -> Any:
    """Import a package that is only in its peer's environment, and so unknown to type checkers."""
    return import_module(name)
