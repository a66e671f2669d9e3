"""The OpenAI Agents SDK's own tests of sessions, with ours in the place of its SQLiteSession."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integrations.suites import run_suite, source_of

SESSION = "tests/memory/test_session.py"
COMPACTION = "tests/memory/test_openai_responses_compaction_session.py"
OF_COMPACTION = f"{COMPACTION}::TestOpenAIResponsesCompactionSession"
ENCRYPTED = "tests/extensions/memory/test_encrypt_session.py"
FILES = [SESSION, "tests/memory/test_session_limit.py", COMPACTION, ENCRYPTED]

CONNECTIONS = "looks into the SQLite connections of SQLiteSession"
TABLES = "reads or damages the SQLite tables of SQLiteSession"
NATIVE = "the replacement of a suffix in one step is private to the built-in sessions"
OPEN = "SQLiteSession refuses calls after close(); a keepstone session has nothing to close"

LEFT_OUT = {
    f"{SESSION}::test_sqlite_session_close_closes_worker_thread_connections": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_reaps_connections_from_exited_worker_threads": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_closes_retired_connections_before_the_next_allocation": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_keeps_connections_of_live_worker_threads": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_file_lock_is_shared_across_instances": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_rollback_failure_evicts_connection": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_close_retries_quarantined_connection": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_post_commit_cancellation_propagates_after_known_outcome": CONNECTIONS,
    f"{SESSION}::test_sqlite_session_closed_rejects_empty_add_items": OPEN,
    f"{SESSION}::test_sqlite_session_pop_item_skips_corrupt_most_recent": TABLES,
    f"{SESSION}::test_sqlite_session_pop_item_returns_none_after_dropping_only_corrupt_rows": TABLES,
    f"{SESSION}::test_sqlite_session_get_items_limit_skips_corrupt_newest_rows": TABLES,
    f"{SESSION}::test_sqlite_session_get_items_session_settings_limit_skips_corrupt_rows": TABLES,
    f"{SESSION}::test_sqlite_session_failed_add_items_releases_write_lock": TABLES,
    f"{SESSION}::test_sqlite_session_failed_clear_session_rolls_back": TABLES,
    f"{SESSION}::test_sqlite_session_failed_pop_item_releases_write_lock": TABLES,
    f"{OF_COMPACTION}::test_automatic_compaction_rollback_budget[True]": NATIVE,
    f"{OF_COMPACTION}::test_settled_pop_failure_invalidates_response_chain": CONNECTIONS,
    f"{OF_COMPACTION}::test_settled_clear_failure_invalidates_response_chain": CONNECTIONS,
    f"{ENCRYPTED}::test_encrypted_compaction_skips_unencrypted_stored_history": NATIVE,
    f"{ENCRYPTED}::test_encrypted_pop_wrong_key_preserves_recoverable_history": NATIVE,
    f"{ENCRYPTED}::test_encrypted_pop_rechecks_authentication_after_expired_tail": NATIVE,
    f"{ENCRYPTED}::test_encrypted_pop_authentication_is_atomic_with_concurrent_mutations": TABLES,
    f"{ENCRYPTED}::test_encrypted_pop_wrong_key_preserves_row_identity": TABLES,
    f"{ENCRYPTED}::test_encrypted_pop_cancellation_waits_for_authentication_rollback": NATIVE,
    f"{ENCRYPTED}::test_encrypted_session_scan_budget_rejects_negative_limit_before_read": (
        "SQLite reads everything for a negative limit; here it is a ValueError"
    ),
}


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path, target: str) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    outcome = run_suite(
        source_of("openai-agents", cache), "openai_sessions", FILES, LEFT_OUT, tmp_path, target=target
    )
    assert outcome.failed == []
    assert outcome.passed >= 190
