"""LangChain's standard tests, run against our stores and our retriever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("langchain_tests", reason="its plugins of pytest are not for all tests: make frameworks")

from tests.integrations.suites import PLUGINS, run_suite


@pytest.mark.timeout(600)
def test_the_standard_tests_pass(tmp_path: Path) -> None:
    options = ["-c", os.devnull, "--noconftest", "-o", "asyncio_mode=auto", "-W", "ignore"]
    files = ["langchain_standard.py"]
    outcome = run_suite(PLUGINS, "suite_place", files, {}, tmp_path, options)
    assert outcome.failed == []
    assert outcome.passed == 54
