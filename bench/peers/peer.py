"""The interface of a peer that is measured, and the list of peers."""

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
"""The peers, in the order of the table. Each has a module ``with_NAME`` whose ``PEER`` is its class."""


class Peer(Protocol):
    """One store, through its documented interface. Every answer brings the texts of its rows along."""

    package: str
    """The package whose version is printed."""
    settings: str
    """How it was set up, in words."""
    durability: str
    """The durability of a single add when it has returned."""
    largest: int
    """It is not measured with more rows than this."""
    persistent: bool
    """Whether a new process finds what another one stored."""
    has_vectors: bool
    has_words: bool

    def open(self, folder: Path) -> None:
        """Open the store in a folder, or begin an empty one."""

    def fill(self, rows: Rows) -> None:
        """Take in rows in bulk, durably."""

    def ready(self) -> None:
        """Build the structures that make questions fast, if filling did not."""

    def add(self, row: Rows) -> None:
        """Take in one row, as durably as the store offers."""

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Return numbers and texts of the rows in scope that are nearest, best first."""

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Return numbers and texts of the rows that fit the words best."""

    def close(self) -> None:
        """Close the store; what was filled is on the disk then."""


class Defaults:
    """Defaults that most peers share."""

    durability = ""
    largest = 1_000_000
    persistent = True
    has_vectors = True
    has_words = False

    def ready(self) -> None:
        """Build nothing: filling did."""

    def near(self, vector: Vector, scope: Scope, limit: int) -> list[tuple[int, str]]:
        """Refuse: this peer has no vectors."""
        raise NotImplementedError

    def words(self, query: str, limit: int) -> list[tuple[int, str]]:
        """Refuse: this peer has no keyword search."""
        raise NotImplementedError

    def close(self) -> None:
        """Close nothing."""


def load(name: str) -> type[Peer]:
    """Return a peer's class; this imports the peer's package."""
    peer: type[Peer] = import_module(f"bench.peers.with_{name}").PEER
    return peer


def package(name: str) -> Any:
    """Import a package that only its peer's environment has, so that type checkers cannot know it."""
    return import_module(name)
