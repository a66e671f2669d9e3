"""The sources by name, and how auto finds one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.importing.sources import jsonl

from keepstone.agent import Agent
from keepstone.importing import SOURCES, SourceError, import_memory


def test_all_sources_of_the_design_are_there() -> None:
    named = (
        "auto openai-agents langgraph mem0 chroma lancedb basic-memory obsidian mempalace mcp-memory "
        "mcp-memory-service claude-code codex claude chatgpt letta okf jsonl csv keepstone "
        "claude-mem graphiti hindsight supermemory zep"
    )
    assert set(SOURCES) == set(named.split())


ROWS = [{"id": f"r{number}", "ts": "2026-01-11T14:31:00Z", "text": f"row {number}"} for number in range(5)]


@pytest.mark.parametrize("source", ["", "letter", "AUTO"])
def test_an_unknown_source_is_refused(agent: Agent, tmp_path: Path, source: str) -> None:
    with pytest.raises(ValueError, match="unknown source"):
        import_memory(agent, source, jsonl(tmp_path / "rows.jsonl", ROWS))


def test_auto_refuses_what_it_does_not_recognise(agent: Agent, tmp_path: Path) -> None:
    (tmp_path / "photo.bin").write_bytes(bytes(range(256)))
    with pytest.raises(SourceError, match="no known source"):
        import_memory(agent, "auto", tmp_path / "photo.bin")
    with pytest.raises(SourceError, match="cannot be read"):
        import_memory(agent, "auto", tmp_path / "missing")
