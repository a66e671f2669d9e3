"""Calls as users write them, for type checkers: every line here must pass mypy and pyright in strict mode."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

import keepstone


def use(*values: object) -> None:
    """Take values, as code of a user's does."""


def embed_many(texts: Sequence[str]) -> list[list[float]]:
    return [[float(len(text)), 1.0] for text in texts]


def embed_lists(texts: list[str]) -> list[list[float]]:
    return embed_many(texts)


class Lengths:
    """An embedder of a user's own, with plain attributes."""

    id = "lengths"
    dim = 2

    def embed_documents(self, texts: list[str]) -> Any:
        return np.array(embed_many(texts), dtype=np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


class LikeLangChain:
    """What LangChain calls Embeddings."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return embed_many(texts)

    def embed_query(self, text: str) -> list[float]:
        return embed_many([text])[0]


def embedders() -> None:
    for embedder in (Lengths(), LikeLangChain(), embed_many, embed_lists, "none"):
        keepstone.open("memory", embedder=embedder)
        keepstone.MemoryService("memory", embedder=embedder).create_memory("s", "text")
    keepstone.MemoryService("memory", embedder=lambda texts: [[1.0, 2.0] for _ in texts])


def a_session(home: keepstone.Home) -> None:
    agent: keepstone.Agent = home.agent(keepstone.slug("ada@example.com"))
    session = agent.session("main")
    entry = session.add("decision", {"decision": "Use OAuth"}, tags=["auth"], ts=datetime.now(UTC))
    use(entry.id.upper(), entry.data["decision"], entry.tags, entry.ts.isoformat())
    session.add_many([{"type": "note", "text": "one"}, {"type": "note", "data": {"text": "two"}}])
    session.add_messages([{"role": "user", "content": "Hi"}])
    messages = session.messages("openai", limit=5)
    use(messages[0]["role"], keepstone.unslug(agent.slug))
    session.update(entry.id, pinned=True)
    use([found.text for found in session.entries(limit=3, types=["decision"])])


def recall(agent: keepstone.Agent) -> None:
    hits = agent.recall("sign-in", limit=3, where={"by": "Ada"}, since="2026-01-01", vector=np.ones(2))
    for hit in hits:
        use(hit.score, hit.entry.text, hit.why.words, hit.why.cosine)
    context = agent.context("sign-in", budget=500, notes=keepstone.Notes("."), counter=len, window=["Hi"])
    use({source.ref: source.id for source in context.sources}, context.text[: context.stable])


def services() -> None:
    adapter = keepstone.MemoryAdapter(".work-agent", agent="coder", debugger=print)
    adapter.save({"role": "user", "content": "Hi"})
    use(adapter.load("s", {"limit": 5})[0]["content"])
    memory = keepstone.SessionMemory("s", root=".bmad")
    use(memory.query(type="decision", min_priority=0.4)[0]["id"], memory.get_context(limit=5))
    files = keepstone.AgentMemoryService("cache", known_agents=["a1"])
    use(files.call("read_agent_memory_file", {"agent_instance_id": "a1", "path": "x"})["ok"])
    inputs = keepstone.InputManager(keepstone.Notes("."))
    if inputs.submit("# Use pnpm") == "selecting":
        inputs.select("project")
    service = keepstone.MemoryService("memory")
    made = service.create_memory("s", "text", embedding=[0.6, 0.8])
    use(service.query_similar_memories([1.0, 0.0], "s")[0].score, made.timestamp.year)


def main() -> None:
    with keepstone.open("memory", layout="default", durability="os", secrets="mask") as home:
        a_session(home)
        recall(home.agent("coder"))
        use([finding.message for finding in home.doctor()], home.agents())
    services()
    embedders()
