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
TURNS = "counts turns of the event loop, in which a store that runs in threads does not answer yet"
INNER = "sets the times in a private dict of InMemorySessionStore"
RESUME = "tests/test_session_resume.py"

LEFT_OUT = {
    "tests/test_session_helpers_store.py::TestListSessionsFromStore::test_load_concurrency_is_bounded": TURNS,
    f"{RESUME}::TestHappyPath::test_continue_picks_most_recent": INNER,
    f"{RESUME}::TestHappyPath::test_continue_skips_sidechain_sessions": INNER,
    f"{RESUME}::TestHappyPath::test_continue_tie_break_is_deterministic": INNER,
    f"{RESUME}::TestTimeoutsAndErrors::test_cancelled_after_mkdtemp_cleans_temp_dir": TURNS,
    "tests/test_session_summary.py::TestListSessionsFromStoreFastPath::"
    "test_gap_fill_bounded_concurrency": TURNS,
    "tests/test_transcript_mirror.py::TestReceiveLoopFramePeeling::"
    "test_eager_flush_mode_appends_per_frame_before_result": TURNS,
}


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path, target: str) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    outcome = run_suite(
        source_of("claude-agent-sdk", cache), "claude_stores", FILES, LEFT_OUT, tmp_path, target=target
    )
    assert outcome.failed == []
    assert outcome.passed >= 330
