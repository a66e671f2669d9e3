"""Google ADK's own tests of sessions and of memory, with ours in the place of its services in memory.

They are in no package: ``KEEPSTONE_ADK_SOURCE`` names a clone of ADK's repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("google.adk")

from tests.integrations.suites import run_suite

SOURCE = os.environ.get("KEEPSTONE_ADK_SOURCE", "")
FILE = "tests/unittests/sessions/test_session_service.py"
MEMORY = "tests/unittests/memory/test_in_memory_memory_service.py"
"""Not in the repository of ADK 1, whose clone is the newest that could be had."""
OLD = "a test of ADK 1.4: since ADK 2 a session keeps temporary state, and ADK's own service fails it"
LEFT_OUT = {
    f"{FILE}::{name}[SessionServiceType.IN_MEMORY]": OLD
    for name in ("test_session_state", "test_create_new_session_will_merge_states")
}


OPTIONS = ["-c", os.devnull, "--noconftest", "-o", "asyncio_mode=auto", "-W", "ignore"]
RANKING = "expects an order by the number of words that match, and ties in the order of writing"
OTHER_ORDER = {
    f"{MEMORY}::{name}": RANKING
    for name in (
        "test_search_memory_ranks_by_number_of_matching_words",
        "test_search_memory_returns_at_most_ten_memories",
    )
}


@pytest.mark.timeout(600)
@pytest.mark.skipif(not SOURCE, reason="KEEPSTONE_ADK_SOURCE names no clone of ADK's repository")
def test_the_framework_s_own_tests_of_sessions_pass(tmp_path: Path, target: str) -> None:
    others = ["-k", "not DATABASE and not SQLITE and not sqlite and not rollback and not recovers"]
    outcome = run_suite(
        Path(SOURCE), "adk_sessions", [FILE], LEFT_OUT, tmp_path, [*OPTIONS, *others], target=target
    )
    assert outcome.failed == []
    assert outcome.passed >= 6


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not (Path(SOURCE) / MEMORY).exists(),
    reason="KEEPSTONE_ADK_SOURCE names no clone with ADK's tests of memory",
)
def test_the_framework_s_own_tests_of_memory_pass(tmp_path: Path, target: str) -> None:
    # The others look into the dictionary of its service.
    chosen = ["-k", "search_memory or ingested_memories or retrieved_memories"]
    outcome = run_suite(
        Path(SOURCE), "adk_sessions", [MEMORY], OTHER_ORDER, tmp_path, [*OPTIONS, *chosen], target=target
    )
    assert outcome.failed == []
    assert outcome.passed >= 33
