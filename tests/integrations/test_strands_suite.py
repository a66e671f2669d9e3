"""Strands' own tests of sessions, with ours in the place of its file and mock repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("strands", reason="Strands needs an older mcp: make frameworks")

from tests.integrations.suites import run_suite, source_of

FILE = "tests/strands/session/test_file_session_manager.py"
REPOSITORY = "tests/strands/session/test_repository_session_manager.py"

FOLDERS = "looks for the files of FileSessionManager"
PATHS = "calls the private methods that make the paths of FileSessionManager"
PLUGIN = "needs pytest-asyncio, which this environment does not have"

LEFT_OUT = {
    **dict.fromkeys(
        [
            f"{FILE}::test_create_session",
            f"{FILE}::test_delete_session",
            f"{FILE}::test_create_agent",
            f"{FILE}::test_create_message",
            f"{FILE}::test_message_durable_id_persists",
            f"{FILE}::test_corrupted_json_file",
            f"{FILE}::test_create_multi_agent",
            f"{FILE}::test_create_session_multi_agent_directory_structure",
        ],
        FOLDERS,
    ),
    f"{FILE}::test__get_session_path_invalid_session_id": PATHS,
    f"{FILE}::test__get_agent_path_invalid_agent_id": PATHS,
    f"{FILE}::test__get_message_path_invalid_message_id": PATHS,
    f"{REPOSITORY}::test_register_hooks_persists_messages_and_state": PLUGIN,
}


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    options = ["--noconftest", "-W", "ignore"]  # Its conftest.py needs a mock of AWS.
    source = source_of("strands-agents", cache)
    outcome = run_suite(source, "strands_sessions", [FILE, REPOSITORY], LEFT_OUT, tmp_path, options)
    assert outcome.failed == []
    assert outcome.passed >= 70
