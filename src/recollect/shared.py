"""What the agents and sessions of one home have in common."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.arguments import Clock
from recollect.recall.meaning import Meaning
from recollect.recall.rerank import Reranker
from recollect.store.base import Store


@dataclass(frozen=True, slots=True)
class Shared:
    """Where a home keeps its entries, and what its calls need besides."""

    store: Store
    clock: Clock
    meaning: Meaning
    reranker: Reranker | None
