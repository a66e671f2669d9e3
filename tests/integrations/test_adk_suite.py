"""Google ADK's own tests of sessions, with ours in the place of its InMemorySessionService.

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
OLD = "a test of ADK 1.4: since ADK 2 a session keeps temporary state, and ADK's own service fails it"
LEFT_OUT = {
    f"{FILE}::{name}[SessionServiceType.IN_MEMORY]": OLD
    for name in ("test_session_state", "test_create_new_session_will_merge_states")
}


@pytest.mark.timeout(600)
@pytest.mark.skipif(not SOURCE, reason="KEEPSTONE_ADK_SOURCE names no clone of ADK's repository")
def test_the_framework_s_own_tests_pass(tmp_path: Path, target: str) -> None:
    options = ["-c", os.devnull, "--noconftest", "-o", "asyncio_mode=auto", "-W", "ignore"]
    others = ["-k", "not DATABASE and not SQLITE and not sqlite and not rollback and not recovers"]
    outcome = run_suite(
        Path(SOURCE), "adk_sessions", [FILE], LEFT_OUT, tmp_path, [*options, *others], target=target
    )
    assert outcome.failed == []
    assert outcome.passed >= 6
