"""Values of another type than a source's own tool writes: named and left out, and never a crash."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import chatgpt, claude

from keepstone.agent import Agent
from keepstone.errors import SourceError
from keepstone.importing import import_memory
from keepstone.importing.item import Options
from keepstone.importing.origin import Origin
from keepstone.importing.registry import reader_of

CODEX = [
    {"type": "session_meta", "timestamp": "2026-01-11T14:31:00Z", "payload": {"id": "thread"}},
    {
        "type": "response_item",
        "timestamp": "2026-01-11T14:31:00Z",
        "payload": {"type": "message", "role": "user", "content": "Hi"},
    },
    {"type": "compacted", "payload": {"message": "In short"}},
]
CLAUDE_CODE = [
    {"type": "summary", "summary": "Sign-in", "leafUuid": "u2"},
    {
        "type": "assistant",
        "uuid": "u2",
        "parentUuid": "u1",
        "isSidechain": True,
        "sessionId": "s",
        "timestamp": "2026-01-11T14:32:00Z",
        "message": {"role": "assistant", "content": [{"type": "text", "text": "Use passkeys"}]},
    },
]
GRAPH = [
    {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["likes tea"]},
    {"type": "relation", "from": "Ada", "to": "Bo", "relationType": "knows"},
]
LETTA = {
    "agents": [
        {
            "name": "helper",
            "block_ids": ["b"],
            "core_memory": [{"label": "persona", "value": "Kind", "description": "x"}],
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi"}], "created_at": "2026-01-11"},
                {"role": "assistant", "tool_calls": [{"id": "c"}], "name": "n"},
            ],
        }
    ],
    "blocks": [{"id": "b", "label": "human", "value": "Ada", "created_at": "2026-01-11"}],
}
FACTS = {
    "edges": [
        {
            "uuid": "e",
            "group_id": "ada",
            "fact": "Ada lives in Dover",
            "source_node_uuid": "n",
            "episodes": ["p"],
            "fact_embedding": [0.1],
            "valid_at": "2025-01-01T00:00:00Z",
        }
    ],
    "nodes": [{"uuid": "n", "group_id": "ada", "name": "Ada", "labels": ["Person"], "summary": "A sailor"}],
    "messages": [{"uuid": "p", "role": "user", "name": "Ada", "content": "Hi", "user_id": "ada"}],
}
SUPERMEMORY = {
    "documents": [
        {
            "id": "d",
            "title": "Call",
            "content": "I moved",
            "type": "text",
            "metadata": {"n": 1},
            "containerTags": ["ada"],
            "memoryEntries": [
                {
                    "id": "m",
                    "memory": "Ada lives in Dover",
                    "parentMemoryId": "o",
                    "memoryRelations": {"o": "updates"},
                    "createdAt": "2026-01-03T00:00:00Z",
                    "forgetAfter": "2999-01-01T00:00:00Z",
                    "system": {"namespace": "x", "created_at": "2026-01-03T00:00:00Z"},
                }
            ],
        }
    ]
}
CLAUDE_MEM = {
    "exportedAtEpoch": 1768176000000,
    "query": "",
    "sessions": [{"id": 1, "memory_session_id": "m", "content_session_id": "chat", "project": "p"}],
    "prompts": [{"id": 1, "content_session_id": "chat", "prompt_text": "Fix it", "prompt_number": 1}],
    "summaries": [{"id": 2, "memory_session_id": "m", "request": "Fix it", "files_read": '["a.py"]'}],
    "observations": [
        {
            "id": 1,
            "title": "Fixed",
            "memory_session_id": "m",
            "prompt_number": 1,
            "facts": '["Noon"]',
            "concepts": '["gotcha"]',
            "created_at": "2026-01-11T10:05:00.000Z",
        }
    ],
}
SAMPLES: dict[str, Any] = {
    "chatgpt": chatgpt(),
    "claude": claude(),
    "claude-code": CLAUDE_CODE,
    "claude-mem": CLAUDE_MEM,
    "codex": CODEX,
    "letta": LETTA,
    "mcp-memory": GRAPH,
    "graphiti": FACTS,
    "supermemory": SUPERMEMORY,
}
ODD: list[Any] = [None, -1.5, "x", ["x"], [[]], {"x": None}]


def places(value: Any) -> Iterator[tuple[Any, ...]]:
    """Yield the way to each value within a JSON value."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield (key,)
        yield from ((key, *rest) for rest in places(value[key]))


def with_odd_values(sample: Any) -> Iterator[Any]:
    """Yield copies of a sample, each with one value replaced by one of another type, or left out."""
    for place in places(sample):
        for odd in [*ODD, ...]:
            made = copy.deepcopy(sample)
            holder = made
            for key in place[:-1]:
                holder = holder[key]
            if odd is ...:
                del holder[place[-1]]
            else:
                holder[place[-1]] = odd
            yield made


@pytest.mark.parametrize("source", SAMPLES)
def test_a_reader_takes_any_type_of_any_value(agent: Agent, tmp_path: Path, source: str) -> None:
    lines = source in ("claude-code", "codex", "mcp-memory")
    path = tmp_path / {"letta": "x.af"}.get(source, "x.jsonl" if lines else "x.json")
    for sample in with_odd_values(SAMPLES[source]):
        path.write_text("\n".join(map(json.dumps, sample)) if lines else json.dumps(sample), "utf-8")
        _, reader = reader_of(source, Origin(path))
        for branches in (False, True):
            with suppress(SourceError):
                list(reader(Origin(path), Options(branches=branches)))
        with suppress(SourceError):
            import_memory(agent, source, path, dry_run=True)
