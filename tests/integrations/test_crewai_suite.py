"""CrewAI's own tests of its memory, with our storage in the place of LanceDB's."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("crewai", reason="CrewAI needs an older mcp: make frameworks")

from tests.integrations.suites import run_suite, source_of

MEMORY = "tests/memory/test_unified_memory.py"
SCOPES = "tests/memory/test_memory_root_scope.py"
DIMENSIONS = "tests/memory/test_dimension_mismatch.py"
UPDATES = "tests/memory/test_lancedb_update.py"
TENANTS = "tests/memory/test_lancedb_filter_escaping.py"
CONCURRENT = "tests/memory/test_concurrent_storage.py"
"""Without tests in the newest release, which skips the file as a whole."""

LEFT_OUT = {
    f"{MEMORY}::test_lancedb_list_records_exceeding_scan_cap": "tests a limit of LanceDB with 50,000 records",
    f"{UPDATES}::test_update_serialization_failure_preserves_existing_record": (
        "times and sets in metadata, which LanceDB's storage refuses, are stored as JSON"
    ),
    f"{TENANTS}::test_percent_underscore_and_backslash_in_scope_names_match_literally": (
        "compares scopes by characters, ours by whole parts"
    ),
}


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(
    pytestconfig: pytest.Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    for name in ("CREWAI_DISABLE_TELEMETRY", "OTEL_SDK_DISABLED"):
        monkeypatch.setenv(name, "true")
    monkeypatch.setenv("CREWAI_STORAGE_DIR", str(tmp_path / "crewai"))
    source = source_of("crewai", cache)
    files = [MEMORY, SCOPES, DIMENSIONS, UPDATES, TENANTS, CONCURRENT]
    outcome = run_suite(source, "crewai_storage", files, LEFT_OUT, tmp_path, ["-W", "ignore"])
    assert outcome.failed == []
    assert outcome.passed >= 160
