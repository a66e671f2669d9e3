"""LlamaIndex's own tests of chat stores, with ours in the place of its SimpleChatStore.

They are in no package: ``KEEPSTONE_LLAMA_INDEX_SOURCE`` names a clone of LlamaIndex's repository.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("llama_index.core")

from tests.integrations.suites import run_suite

SOURCE = os.environ.get("KEEPSTONE_LLAMA_INDEX_SOURCE", "")
FILE = "llama-index-core/tests/storage/chat_store/test_simple_chat_store.py"
LEFT_OUT = {
    f"{FILE}::test_add_messages": "adds a message at an index, which BaseChatStore has no argument for",
    f"{FILE}::test_persist_non_ascii_unescaped": "looks into the file of SimpleChatStore",
}


@pytest.mark.timeout(600)
@pytest.mark.skipif(
    not SOURCE, reason="KEEPSTONE_LLAMA_INDEX_SOURCE names no clone of LlamaIndex's repository"
)
def test_the_framework_s_own_tests_pass(tmp_path: Path, target: str) -> None:
    options = ["-c", os.devnull, "--noconftest", "-W", "ignore"]
    outcome = run_suite(Path(SOURCE), "llama_index_chats", [FILE], LEFT_OUT, tmp_path, options, target=target)
    assert outcome.failed == []
    assert outcome.passed >= 5
