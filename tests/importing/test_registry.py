"""The sources by name, and how auto finds one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import FIXTURES, chatgpt, claude, jsonl, written

from keepstone.agent import Agent
from keepstone.importing import SOURCES, SourceError, import_memory
from keepstone.importing.origin import Origin
from keepstone.importing.registry import reader_of


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


@pytest.mark.parametrize("source", [name for name in SOURCES if name != "auto"])
def test_each_source_has_a_reader(tmp_path: Path, source: str) -> None:
    name, reader = reader_of(source, Origin(tmp_path))
    assert name == source
    assert callable(reader)


@pytest.mark.parametrize(
    ("name", "content", "source"),
    [
        ("x.json", chatgpt(), "chatgpt"),
        ("x.json", claude(), "claude"),
        ("x.jsonl", {"type": "entity", "name": "Ada"}, "mcp-memory"),
        ("x.jsonl", {"text": "Tea"}, "jsonl"),
    ],
)
def test_auto_asks_the_most_particular_source_first(
    tmp_path: Path, name: str, content: Any, source: str
) -> None:
    assert reader_of("auto", Origin(written(tmp_path / name, content)))[0] == source


def test_auto_takes_a_chroma_folder_without_a_palace_for_chroma() -> None:
    assert reader_of("auto", Origin(FIXTURES / "chroma"))[0] == "chroma"


def test_the_refusal_of_auto_lists_all_names(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as refused:
        reader_of("auto", Origin(tmp_path))
    assert all(name in str(refused.value) for name in SOURCES if name != "auto")
