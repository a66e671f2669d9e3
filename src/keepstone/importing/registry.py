"""The sources that can be imported, with the reader and the detection of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from keepstone.errors import SourceError
from keepstone.importing.item import Items, Options
from keepstone.importing.origin import Origin

Read = Callable[[Origin, Options], Items]


class _Source(NamedTuple):
    module: str
    """The module of the reader, with the functions ``read_NAME`` and ``is_NAME``."""
    name: str


_READERS: Mapping[str, _Source] = {
    # In the order in which ``auto`` tries them: sources with more specific marks come first.
    "keepstone": _Source("exported", "export"),
    "openai-agents": _Source("agents_sdk", "agents_sdk"),
    "langgraph": _Source("langgraph_sqlite", "langgraph"),
    "mcp-memory-service": _Source("mcp_memories", "memory_service"),
    "mempalace": _Source("mempalace", "mempalace"),
    "claude-mem": _Source("claude_mem", "claude_mem"),
    "mem0": _Source("mem0", "mem0"),
    "chroma": _Source("chroma", "chroma"),
    "lancedb": _Source("lance", "lance"),
    "claude-code": _Source("transcripts", "claude_code"),
    "codex": _Source("transcripts", "codex"),
    "chatgpt": _Source("chat_exports", "chatgpt"),
    "claude": _Source("chat_exports", "claude"),
    "letta": _Source("letta", "letta"),
    "mcp-memory": _Source("mcp_memories", "memory_graph"),
    "hindsight": _Source("hindsight", "hindsight"),
    "graphiti": _Source("temporal_graph", "graphiti"),
    "zep": _Source("temporal_graph", "zep"),
    "supermemory": _Source("supermemory", "supermemory"),
    "okf": _Source("markdown", "okf"),
    "basic-memory": _Source("markdown", "basic_memory"),
    "obsidian": _Source("markdown", "obsidian"),
    "csv": _Source("tables", "csv"),
    "jsonl": _Source("tables", "jsonl"),
}

SOURCES = ("auto", *sorted(_READERS))
"""The names of all sources; ``keepstone`` is an export of ``keepstone export``."""


def reader_of(source: str, origin: Origin) -> tuple[str, Read]:
    """Return the name and the reader of a source; ``auto`` selects the source that is recognised.

    Raises:
        ValueError: There is no source of this name.
        SourceError: ``auto`` does not recognise the source.
    """
    if source == "auto":
        for name in _READERS:
            if _function(name, "is")(origin):
                return name, _function(name, "read")
        raise SourceError(f"{origin.path} is of no known source: name one of {', '.join(SOURCES[1:])}")
    if source not in _READERS:
        raise ValueError(f"unknown source {source!r:.80}; use one of {', '.join(SOURCES)}")
    return source, _function(source, "read")


def _function(source: str, verb: str) -> Callable[..., Any]:
    module, name = _READERS[source]
    found: Callable[..., Any] = getattr(import_module(f"keepstone.importing.{module}"), f"{verb}_{name}")
    return found
