"""What open agents keep in memory has one bound for the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import keepstone
from keepstone.store.memory_budget import BUDGET, MemoryBudget

AGENTS = 12


class Keeping:
    """A keeper of some bytes, which may be in use."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.is_used = False

    def memory(self) -> int | None:
        return None if self.is_used else self.size

    def release_memory(self) -> None:
        self.size = 0


@pytest.fixture
def limit() -> Iterator[None]:
    before = BUDGET.limit
    yield
    BUDGET.limit = before


def test_the_agent_used_longest_ago_releases_its_memory_first() -> None:
    budget = MemoryBudget(limit=25)
    first, second, third = (Keeping(10) for _ in range(3))
    for keeper in (first, second, first, third):
        budget.used(keeper)
    assert [keeper.size for keeper in (first, second, third)] == [10, 0, 10]


def test_what_grew_since_counts_as_it_is_now() -> None:
    budget = MemoryBudget(limit=25)
    first, second = Keeping(10), Keeping(10)
    budget.used(first)
    second.size = 20
    budget.used(second)
    assert (first.size, second.size) == (0, 20)


def test_the_only_one_may_keep_more_than_allowed() -> None:
    budget = MemoryBudget(limit=5)
    alone = Keeping(10)
    budget.used(alone)
    assert alone.size == 10


def test_one_that_is_in_use_counts_as_before() -> None:
    budget = MemoryBudget(limit=15)
    first, second = Keeping(10), Keeping(10)
    budget.used(first)
    first.is_used = True
    budget.used(first)
    budget.used(second)
    assert first.size == 0


def test_one_that_was_closed_counts_no_more() -> None:
    budget = MemoryBudget(limit=15)
    first, second = Keeping(10), Keeping(10)
    budget.used(first)
    budget.forget(first)
    budget.used(second)
    assert (first.size, second.size) == (10, 10)


@pytest.mark.usefixtures("limit")
@pytest.mark.parametrize("ask", ["entries", "words", "vectors"])
def test_many_agents_keep_no_more_than_the_home_was_opened_with(tmp_path: Path, ask: str) -> None:
    vectors = np.random.default_rng(0).standard_normal((400, 64)).astype(np.float32)
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        for number in range(AGENTS):
            home.agent(f"u{number}").session("s").add_many(
                {"type": "note", "text": f"fact {n} " + "walnut " * 50, "embedding": vectors[n]}
                for n in range(400)
            )
    with keepstone.open(tmp_path, durability="os", embedder="none", memory=1 << 20) as home:
        for number in (*range(AGENTS), 0):
            agent = home.agent(f"u{number}")
            found = {
                "entries": lambda agent=agent: agent.entries(limit=400),
                "words": lambda agent=agent: agent.recall("fact 7"),
                "vectors": lambda agent=agent: agent.recall(None, vector=vectors[7], limit=3),
            }[ask]()
            assert found[0 if ask != "entries" else 7].text.startswith("fact 7 ") or ask == "words"
        kept = [logs.memory() or 0 for logs in home._store._agents._open.values()]  # type: ignore[attr-defined]  # noqa: SLF001
    assert len(kept) == AGENTS
    assert sum(kept) - max(kept) <= 1 << 20
    assert max(kept) > 100_000


@pytest.mark.parametrize(("wrong", "error"), [(-1, ValueError), ("1 GB", TypeError), (1.5, TypeError)])
def test_a_wrong_bound_is_refused(tmp_path: Path, wrong: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="memory"):
        keepstone.open(tmp_path, memory=wrong)
