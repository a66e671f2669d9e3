"""The Claude Agent SDK's own tests of session stores, with ours in the place of its InMemorySessionStore."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integrations.suites import run_suite, source_of

FILES = [
    "tests/test_session_store_conformance.py",
    "tests/test_session_helpers_store.py",
    "tests/test_session_import.py",
    "tests/test_session_resume.py",
    "tests/test_session_summary.py",
    "tests/test_transcript_mirror.py",
]


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path, target: str) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    outcome = run_suite(
        source_of("claude-agent-sdk", cache), "claude_stores", FILES, {}, tmp_path, target=target
    )
    assert outcome.failed == []
    assert outcome.passed >= 345
