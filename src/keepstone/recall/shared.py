"""Dependencies shared by the agents and sessions of one home."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from keepstone.log.arguments import Clock
from keepstone.model import ANY, Record, Writer
from keepstone.recall.conflicts import ConflictFinder
from keepstone.recall.rerank import Reranker
from keepstone.recall.selection import Meaning
from keepstone.store.protocol import Store
from keepstone.store.trust import Judge

Guard = Callable[[str, Sequence[Record]], list[Record]]
"""Called with a session's id and the lines to write to it; returns them with secrets masked, or raises."""


class BoundToProcess:
    """Base of objects with open files and threads, which work in one process only."""

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled."""
        raise TypeError(
            f"{type(self).__name__} cannot be pickled: open the home in the other process with "
            "keepstone.open(…), and send it the home's path, slugs and ids"
        )


@dataclass(frozen=True, slots=True)
class Shared:
    """The dependencies of a home's calls."""

    store: Store
    root: Path
    """The home's folder, or its URL without a password."""
    clock: Clock
    meaning: Meaning
    reranker: Reranker | None
    conflicts: ConflictFinder
    judge: Judge
    guard: Guard | None = None
    """Masks or refuses secrets in lines; None if the home keeps them."""
    writer: Writer = ANY
    """The surface that writes, which decides the origin recorded in entries."""
