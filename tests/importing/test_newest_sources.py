"""What the newest releases of other tools write, imported: ``make frameworks`` has them."""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

import keepstone
from keepstone.agent import Agent
from keepstone.home import Home
from keepstone.importing import import_memory

pytest.importorskip(
    "mempalace", reason="the tools whose memory is imported are in another environment: make frameworks"
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    for name, value in (
        ("HF_HUB_OFFLINE", "1"),
        ("ANONYMIZED_TELEMETRY", "False"),
        ("MEM0_TELEMETRY", "False"),
    ):
        monkeypatch.setenv(name, value)
    for name in ("HOME", "MEM0_DIR", "MCP_MEMORY_BASE_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "tools"))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    return keepstone.open(tmp_path / "home", embedder="none")


@pytest.fixture
def agent(home: Home) -> Agent:
    return home.agent("a")


def imported(agent: Agent, source: str, path: Path, count: int) -> None:
    """Import what must be recognised, whole, and unchanged the second time."""
    result = import_memory(agent, "auto", path)
    assert (result.source, result.imported, result.failed) == (source, count, [])
    assert import_memory(agent, source, path).unchanged == count


def vector_of(text: str) -> list[float]:
    return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]


def test_items_of_langgraph_are_found_by_the_adapter(home: Home, agent: Agent, tmp_path: Path) -> None:
    from langgraph.store.sqlite import SqliteStore

    from keepstone.integrations.langgraph import KeepstoneStore

    namespaces = [("users", "ada"), ("users", "bob", "notes"), ("a b", "c/d%")]
    with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as store:
        store.setup()
        for namespace in namespaces:
            for key in ("k", "größe 日本"):
                store.put(namespace, key, {"text": key, "deep": {"n": [1, None]}})
        store.put(("users", "ada"), "empty", {})
        store.put(("users", "ada"), "k", {"text": "changed"}, ttl=60)
        store.delete(("users", "bob", "notes"), "k")
        imported(agent, "langgraph", tmp_path / "store.db", 6)
        ours = KeepstoneStore(home, agent="a")
        assert set(ours.list_namespaces()) == set(store.list_namespaces())
        theirs = {(item.namespace, item.key): item.value for item in store.search((), limit=100)}
        assert {(item.namespace, item.key): item.value for item in ours.search((), limit=100)} == theirs
        for namespace, key in theirs:
            found = ours.get(namespace, key)
            assert found is not None
            assert found.value == store.get(namespace, key).value


def test_threads_of_langgraph_are_as_the_graph_sees_them(agent: Agent, tmp_path: Path) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
    from langgraph.channels.delta import DeltaChannel
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.graph.message import _messages_delta_reducer

    # Not a class, whose annotations would be looked up outside of this function.
    delta = TypedDict(  # noqa: UP013
        "delta",
        {"messages": Annotated[list[Any], DeltaChannel(_messages_delta_reducer, snapshot_frequency=3)]},
    )

    def answer(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(f"reply {len(state['messages'])}")]}

    seen: dict[str, list[str]] = {}
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        for thread, state in (("plain", MessagesState), ("delta", delta)):
            graph = (
                StateGraph(state).add_node("bot", answer).add_edge(START, "bot").compile(checkpointer=saver)
            )
            config: Any = {"configurable": {"thread_id": thread}}
            for number in range(4):
                graph.invoke({"messages": [HumanMessage(f"question {number}", id=f"h{number}")]}, config)
            graph.update_state(config, {"messages": [RemoveMessage(id="h1")]})
            seen[thread] = [message.content for message in graph.get_state(config).values["messages"]]
    imported(agent, "langgraph", tmp_path / "checkpoints.db", 14)
    for thread, texts in seen.items():
        assert [entry.data["content"] for entry in agent.session(thread).entries()] == texts


def test_the_branch_of_an_openai_session_is_what_it_returns(agent: Agent, tmp_path: Path) -> None:
    from agents.extensions.memory import AdvancedSQLiteSession

    async def write() -> list[Any]:
        session = AdvancedSQLiteSession(session_id="s", db_path=tmp_path / "x.db", create_tables=True)
        for turn in ("one", "two"):
            await session.add_items(
                [{"role": "user", "content": turn}, {"role": "assistant", "content": "r"}]
            )
        await session.create_branch_from_turn(2)
        await session.add_items([{"role": "user", "content": "another"}])
        found = await session.get_items()
        session.close()
        return found

    items = asyncio.run(write())
    imported(agent, "openai-agents", tmp_path / "x.db", 3)
    assert [entry.data for entry in agent.session("s").entries()] == items


def test_another_table_of_an_openai_session_is_read_by_its_name(agent: Agent, tmp_path: Path) -> None:
    from agents import SQLiteSession

    async def write() -> None:
        session = SQLiteSession("s", tmp_path / "x.db", sessions_table="mine", messages_table="said")
        await session.add_items([{"role": "user", "content": "Hi"}])
        session.close()

    asyncio.run(write())
    assert import_memory(agent, "auto", tmp_path / "x.db", mapping={"messages": "said"}).imported == 1


def test_collections_of_chroma(agent: Agent, tmp_path: Path) -> None:
    import chromadb

    client = chromadb.PersistentClient(str(tmp_path / "chroma"))
    notes = client.create_collection("notes")
    texts = ["Use pnpm 🎉", "Use passkeys", "gone"]
    vectors = [vector_of(text) for text in texts]
    notes.add(
        ids=["a", "b", "c"],
        documents=texts,
        embeddings=vectors,
        metadatas=[{"n": 1}, {"ok": True}, {"x": "y"}],
    )
    notes.delete(ids=["c"])
    notes.update(ids=["a"], documents=["Use bun"], embeddings=[vector_of("Use bun")])
    imported(agent, "chroma", tmp_path / "chroma", 2)
    found = {entry.id: (entry.line["text"], entry.data) for entry in agent.session("notes").entries()}
    assert found == {"a": ("Use bun", {"n": 1}), "b": ("Use passkeys", {"ok": True})}


class Embedder:
    """An embedder of mem0 that needs no model."""

    class config:  # noqa: N801  As mem0 calls it.
        embedding_dims = 8

    def embed(self, text: str, *_: Any, **__: Any) -> list[float]:
        return vector_of(text)

    def embed_batch(self, texts: Sequence[str], *_: Any, **__: Any) -> list[list[float]]:
        return [*map(vector_of, texts)]


@pytest.mark.parametrize("provider", ["qdrant", "chroma"])
def test_memories_of_mem0(
    home: Home, agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    import mem0.utils.factory
    from mem0 import Memory

    monkeypatch.setattr(mem0.utils.factory.EmbedderFactory, "create", lambda *_, **__: Embedder())
    place = {"path": str(tmp_path / "store" / provider), "collection_name": "mem0"}
    extra = {"embedding_model_dims": 8, "on_disk": True} if provider == "qdrant" else {}
    store = {"provider": provider, "config": place | extra}
    history = str(tmp_path / "store" / "history.db")
    (tmp_path / "store").mkdir()
    memory = Memory.from_config({"vector_store": store, "history_db_path": history})
    first = memory.add("Prefers pnpm", user_id="ada", infer=False, metadata={"topic": "tools"})["results"][0][
        "id"
    ]
    memory.update(first, "Prefers bun")
    memory.add("Likes tea", user_id="bob", infer=False)
    gone = memory.add("to delete", user_id="bob", infer=False)["results"][0]["id"]
    memory.delete(gone)
    memory.close()
    result = import_memory(agent, "auto", tmp_path / "store", agent_from="user_id")
    assert (result.source, result.imported) == ("mem0", 2)
    texts = {slug: [one.line["text"] for one in home.agent(slug).iter_entries()] for slug in home.agents()}
    assert texts == {"ada": ["Prefers bun"], "bob": ["Likes tea"]}
    assert home.agent("ada").get(first).data["topic"] == "tools"


@pytest.mark.skipif(
    not hasattr(sqlite3.Connection, "enable_load_extension"),
    reason="mcp-memory-service needs a Python whose sqlite3 loads extensions",
)
def test_memories_of_mcp_memory_service(agent: Agent, tmp_path: Path) -> None:
    from mcp_memory_service.models.memory import Memory
    from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
    from mcp_memory_service.utils.hashing import generate_content_hash

    def made(text: str, **more: Any) -> Any:
        return Memory(content=text, content_hash=generate_content_hash(text), **more)

    async def write() -> None:
        storage = SqliteVecMemoryStorage(str(tmp_path / "sqlite_vec.db"))
        await storage.initialize()
        await storage.store(made("Prefers pnpm", tags=["tools"], memory_type="decision", metadata={"n": 1}))
        gone = made("to delete")
        await storage.store(gone)
        await storage.delete(gone.content_hash)
        await storage.close()

    asyncio.run(write())
    imported(agent, "mcp-memory-service", tmp_path / "sqlite_vec.db", 1)
    (found,) = agent.iter_entries()
    assert (found.text, found.type, found.tags) == ("Prefers pnpm", "decision", ("tools",))


def test_drawers_and_facts_of_mempalace(agent: Agent, tmp_path: Path) -> None:
    from mempalace.backends.base import PalaceRef
    from mempalace.backends.sqlite_exact import SQLiteExactBackend
    from mempalace.knowledge_graph import KnowledgeGraph

    palace = tmp_path / "palace"
    palace.mkdir()
    collection = SQLiteExactBackend().get_collection(
        palace=PalaceRef(id=str(palace), local_path=str(palace)),
        collection_name="mempalace_drawers",
        create=True,
    )
    metadata = {"wing": "app", "room": "auth", "filed_at": "2026-01-11T14:31:00"}
    collection.add(
        ids=["d1"], documents=["Use passkeys"], metadatas=[metadata], embeddings=[vector_of("Use passkeys")]
    )
    collection.close()
    graph = KnowledgeGraph(str(palace / "knowledge_graph.sqlite3"))
    graph.add_triple("Ada", "works_on", "app", valid_from="2026-01-01")
    graph.close()
    imported(agent, "mempalace", palace, 2)
    assert [entry.text for entry in agent.session("app/auth").entries()] == ["Use passkeys"]
    assert [entry.text for entry in agent.session("knowledge-graph").entries()] == ["Ada works on app"]
