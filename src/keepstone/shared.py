"""What the agents and sessions of one home have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from keepstone.log.arguments import Clock
from keepstone.model import Record
from keepstone.recall.rerank import Reranker
from keepstone.recall.selection import Meaning
from keepstone.store.protocol import Store

Guard = Callable[[str, Sequence[Record]], list[Record]]
"""Takes a session's id and lines that are about to be written to it, and returns these as they may be."""


@dataclass(frozen=True, slots=True)
class Shared:
    """Where a home keeps its entries, and what its calls need besides."""

    store: Store
    clock: Clock
    meaning: Meaning
    reranker: Reranker | None
    guard: Guard | None = None
    """What looks at lines for secrets before they are written; None where all is kept."""
