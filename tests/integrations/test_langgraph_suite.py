"""LangGraph's own tests of stores, with ours in the place of its InMemoryStore."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integrations.suites import run_suite, source_of


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path, target: str) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    source = source_of("langgraph-checkpoint", cache)
    outcome = run_suite(source, "langgraph_stores", ["tests/test_store.py"], {}, tmp_path, target=target)
    assert outcome.failed == []
    assert outcome.passed >= 110
