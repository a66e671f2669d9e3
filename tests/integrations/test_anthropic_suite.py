"""Anthropic's own tests of its memory tool on the local file system, with ours in its place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.integrations.suites import run_suite, source_of

FILE = "tests/lib/tools/memory_tools/test_filesystem.py"
INNER = "replaces a private method of the built-in tool, or counts its calls of os.open"
RACES = [
    "test_read_rejects_symlink_created_after_validation",
    "test_read_rejects_file_replaced_with_symlink_before_open",
    "test_view_rejects_directory_symlink_created_after_validation",
]
LEFT_OUT = {
    f"{FILE}::{kind}::{name}": INNER
    for kind in ("TestBetaLocalFilesystemMemoryTool", "TestBetaAsyncLocalFilesystemMemoryTool")
    for name in RACES
} | {
    f"{FILE}::TestBetaAsyncLocalFilesystemMemoryTool::"
    "test_validate_path_returns_resolved_path_not_symlink_target": INNER
}


@pytest.mark.timeout(600)
def test_the_framework_s_own_tests_pass(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    cache = pytestconfig.cache
    assert cache is not None
    # Its conftest.py and its options are for the tests of the API client, and need more packages.
    options = ["--noconftest", "-o", "addopts="]
    outcome = run_suite(
        source_of("anthropic", cache), "anthropic_memory", [FILE], LEFT_OUT, tmp_path, options
    )
    assert outcome.failed == []
    assert outcome.passed >= 80
