"""LangGraph's conformance kit for checkpointers, run against ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import pytest

import keepstone

pytest.importorskip("langgraph.checkpoint")

from keepstone.integrations.langgraph import KeepstoneSaver

conformance: Any = pytest.importorskip(
    "langgraph.checkpoint.conformance", reason="langgraph-checkpoint-conformance is not installed"
)


@pytest.mark.timeout(600)
def test_every_capability_of_the_kit_passes(target: str) -> None:
    numbers = count()
    with keepstone.open(target, embedder="none") as home:

        @conformance.checkpointer_test(name="KeepstoneSaver")  # type: ignore[untyped-decorator]
        async def savers() -> AsyncIterator[KeepstoneSaver]:
            yield KeepstoneSaver(home, agent=f"suite-{next(numbers)}")

        results = asyncio.run(conformance.validate(savers)).results
    assert [failure for result in results.values() for failure in result.failures] == []
    assert [name for name, result in results.items() if not result.passed] == []
    assert sum(result.tests_passed for result in results.values()) >= 81
