"""Strands' own tests of sessions, with ours in the place of its file and mock repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("strands", reason="Strands needs an older mcp: make frameworks")

from tests.integrations.suites import run_suite, source_of

FILE = "tests/strands/session/test_file_session_manager.py"
REPOSITORY = "tests/strands/session/test_repository_session_manager.py"
AGENT = "tests/strands/agent/test_agent.py"
AS_TOOL = "tests/strands/agent/test_agent_as_tool.py::test_nested_interrupt_resumes_after_rehydration"
DELEGATION = "tests/strands/agent/test_agent_delegation.py"
STREAM = "tests/strands/middleware/test_agent_stream_middleware.py"
SWARM = "tests/strands/multiagent/test_swarm.py::test_swarm_crash_restart"
RESTORED = f"{AGENT}::test_agent_restored_from_session_management"

IN_AGENTS = [
    f"{AGENT}::test_session_id_delegates_to_session_manager",
    f"{AGENT}::test_metadata_carries_session_id_with_manager",
    f"{AGENT}::test_metadata_shared_across_agents_on_same_session",
    f"{AGENT}::test_agent_metadata_reaches_model_stream_with_session_manager",
    f"{AGENT}::test_shared_model_carries_each_agents_own_session",
    f"{AGENT}::test_agent_session_management",
    RESTORED,
    f"{RESTORED}_with_message",
    f"{RESTORED}_with_redacted_input",
    f"{RESTORED}_with_correct_index",
    f"{AGENT}::test_agent_with_session_and_conversation_manager",
    AS_TOOL,
    f"{AS_TOOL}_with_a_sub_agent_session_manager",
    f"{DELEGATION}::test_delegation_emits_correct_history_and_single_assistant_event",
    f"{DELEGATION}::test_persisted_matches_in_memory_after_delegation",
    f"{STREAM}::test_answered_interrupt_is_not_persisted_as_a_standing_approval",
    f"{STREAM}::test_answered_interrupt_is_not_persisted_when_a_stream_is_abandoned",
    f"{STREAM}::test_restored_agent_reports_an_answerable_interrupt",
    "tests/strands/models/routing/test_router.py::test_routing_forwards_agent_metadata_to_the_selected_alternate",
    f"{SWARM}_handoff_via_file_session_on_disk",
    f"{SWARM}_uncommitted_interrupt_resume_reruns_source_on_disk",
    "tests/strands/test_tracking_id_history_invariant.py::"
    "test_no_idless_messages_after_session_restore_repair",
]
"""The tests of agents and swarms that keep a session in one of the places."""

FOLDERS = "looks for the files of FileSessionManager"
PATHS = "calls the private methods that make the paths of FileSessionManager"

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
}


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    # Its conftest.py needs a mock of AWS.
    options = ["--noconftest", "-o", "asyncio_mode=auto", "-W", "ignore"]
    source = source_of("strands-agents", cache)
    files = [FILE, REPOSITORY, *IN_AGENTS]
    outcome = run_suite(source, "strands_sessions", files, LEFT_OUT, tmp_path, options)
    assert outcome.failed == []
    assert outcome.passed >= 96
