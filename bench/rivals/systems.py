"""The compared systems. Each loads a question's turns as its documentation shows, and returns ids of turns.

Each system stores every turn as one item with its text, as keepstone does. Systems that compare vectors all
use the same MiniLM vectors. Nothing is tuned: settings that are not shown below are defaults.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from bench._longmemeval import Question, Turn
from bench.rivals.vectors import CachedModel

LIMIT = 50
_WORD = re.compile(r"\w+")


class System(Protocol):
    """A memory system, loaded with the turns of one question."""

    package: str
    """The distribution whose version is shown; empty for tools of the operating system or Python."""
    settings: str
    uses_vectors: bool = True

    def __init__(self, folder: Path, model: CachedModel) -> None: ...

    def load(self, question: Question) -> None:
        """Store all turns."""

    def find(self, text: str) -> Sequence[str]:
        """Return the ids of turns, the best first."""


class Keepstone:
    """keepstone with one home for each question, and one session for each session of the question."""

    package, settings = "keepstone", "words alone"
    uses_vectors = False

    def __init__(self, folder: Path, model: CachedModel) -> None:
        import keepstone

        embedder: Any = model if self.uses_vectors else "none"
        self._home = keepstone.open(folder, embedder=embedder, durability="os")
        self._agent = self._home.agent("reader")

    def load(self, question: Question) -> None:
        """Add each session with one call."""
        sessions: dict[str, list[Turn]] = {}
        for turn in question.turns:
            sessions.setdefault(turn.session, []).append(turn)
        for session, turns in sessions.items():
            self._agent.session(session).add_many(map(_item, turns))
        if self.uses_vectors:
            self._home.embed()

    def find(self, text: str) -> Sequence[str]:
        """Recall."""
        return [hit.entry.id for hit in self._agent.recall(text, limit=LIMIT)]


class KeepstoneMiniLM(Keepstone):
    """keepstone with words and vectors."""

    settings, uses_vectors = "words and MiniLM", True


def _item(turn: Turn) -> dict[str, Any]:
    data = {"role": turn.role, "content": turn.text}
    return {"id": turn.id, "type": "message", "ts": turn.time, "data": data}


class Grep:
    """``grep`` for each word of the question; turns are ranked by the number of words they contain."""

    package, settings = "", "grep -rilw for each word of four letters or more; most words first"
    uses_vectors = False

    def __init__(self, folder: Path, model: CachedModel) -> None:
        del model
        self._folder = folder

    def load(self, question: Question) -> None:
        """Write a file for each turn."""
        self._names = [turn.id for turn in question.turns]
        for number, turn in enumerate(question.turns):
            (self._folder / str(number)).write_text(turn.text.replace("\n", " "), encoding="utf-8")

    def find(self, text: str) -> Sequence[str]:
        """Run grep once for each word."""
        counts = np.zeros(len(self._names))
        for word in {word for word in _WORD.findall(text.lower()) if len(word) > 3}:
            command = ["grep", "-rilw", "--", word, "."]
            done = subprocess.run(  # noqa: S603  A list of our own.
                command, cwd=self._folder, capture_output=True, text=True, check=False
            )
            counts[[int(path.removeprefix("./")) for path in done.stdout.split()]] += 1
        best = np.argsort(-counts, kind="stable")[:LIMIT]
        return [self._names[place] for place in best if counts[place]]


class Fts5:
    """SQLite's full-text search with Porter's stemmer."""

    package, settings = "", "FTS5, tokenize porter, any word of the question, bm25"
    uses_vectors = False

    def __init__(self, folder: Path, model: CachedModel) -> None:
        del model
        self._database = sqlite3.connect(folder / "turns.db")
        self._database.execute("CREATE VIRTUAL TABLE turns USING fts5(id UNINDEXED, text, tokenize='porter')")

    def load(self, question: Question) -> None:
        """Insert all turns in one transaction."""
        with self._database:
            rows = ((turn.id, turn.text) for turn in question.turns)
            self._database.executemany("INSERT INTO turns VALUES (?, ?)", rows)

    def find(self, text: str) -> Sequence[str]:
        """Match any word."""
        words = " OR ".join(f'"{word}"' for word in _WORD.findall(text))
        query = "SELECT id FROM turns WHERE turns MATCH ? ORDER BY rank LIMIT ?"
        return [turn_id for (turn_id,) in self._database.execute(query, (words, LIMIT))]


class Cosine:
    """Exact search: every vector is compared with the question's vector."""

    package, settings = "numpy", "MiniLM, cosine, exact"
    uses_vectors = True

    def __init__(self, folder: Path, model: CachedModel) -> None:
        del folder
        self._model = model

    def load(self, question: Question) -> None:
        """Build the matrix of vectors."""
        self._names = [turn.id for turn in question.turns]
        self._matrix = self._model.embed_documents([turn.text for turn in question.turns])

    def find(self, text: str) -> Sequence[str]:
        """Sort by the scalar product."""
        best = np.argsort(-(self._matrix @ self._model.embed_query(text)))[:LIMIT]
        return [self._names[place] for place in best]


class Chroma:
    """A persistent collection."""

    package, settings = "chromadb", "PersistentClient, cosine HNSW, MiniLM"
    uses_vectors = True

    def __init__(self, folder: Path, model: CachedModel) -> None:
        import chromadb

        options = chromadb.config.Settings(anonymized_telemetry=False)
        client = chromadb.PersistentClient(str(folder), settings=options)
        space = {"hnsw": {"space": "cosine"}}
        self._turns = client.create_collection("turns", configuration=space, embedding_function=None)
        self._model = model

    def load(self, question: Question) -> None:
        """Add all turns with one call."""
        texts = [turn.text for turn in question.turns]
        vectors = self._model.embed_documents(texts)
        self._turns.add(ids=[turn.id for turn in question.turns], documents=texts, embeddings=vectors)

    def find(self, text: str) -> Sequence[str]:
        """Query by the vector."""
        found = self._turns.query(query_embeddings=[self._model.embed_query(text)], n_results=LIMIT)
        return list(found["ids"][0])


class LangGraph:
    """LangGraph's in-memory store with an index."""

    package, settings = "langgraph", "InMemoryStore, index on text, MiniLM"
    uses_vectors = True

    def __init__(self, folder: Path, model: CachedModel) -> None:
        from langgraph.store.memory import InMemoryStore

        del folder

        def embed(texts: Sequence[str]) -> list[list[float]]:
            return [list(map(float, vector)) for vector in model.embed_documents([*texts])]

        self._store = InMemoryStore(index={"dims": model.dim, "embed": embed, "fields": ["text"]})

    def load(self, question: Question) -> None:
        """Put each turn."""
        for turn in question.turns:
            self._store.put(("reader",), turn.id, {"text": turn.text})

    def find(self, text: str) -> Sequence[str]:
        """Search."""
        return [item.key for item in self._store.search(("reader",), query=text, limit=LIMIT)]


class LlamaIndex:
    """LlamaIndex's vector index with its simple store."""

    package, settings = "llama-index-core", "VectorStoreIndex on a simple store, MiniLM"
    uses_vectors = True

    def __init__(self, folder: Path, model: CachedModel) -> None:
        import llama_index.core as llama_index

        del folder
        self._model, self._llama_index = model, llama_index

    def load(self, question: Question) -> None:
        """Index a node for each turn."""
        from llama_index.core.schema import TextNode

        vectors = self._model.embed_documents([turn.text for turn in question.turns]).tolist()
        nodes = [
            TextNode(id_=turn.id, text=turn.text, embedding=vector)
            for turn, vector in zip(question.turns, vectors, strict=True)
        ]
        none = self._llama_index.MockEmbedding(embed_dim=self._model.dim)  # Every vector is given.
        index = self._llama_index.VectorStoreIndex(nodes, embed_model=none)
        self._retriever = index.as_retriever(similarity_top_k=LIMIT)

    def find(self, text: str) -> Sequence[str]:
        """Retrieve by the question's vector."""
        from llama_index.core.schema import QueryBundle

        bundle = QueryBundle(text, embedding=self._model.embed_query(text).tolist())
        return [node.node.node_id for node in self._retriever.retrieve(bundle)]


class Mem0:
    """mem0 without a language model: every turn is stored unchanged."""

    package, settings = "mem0ai", "infer=False, Qdrant in a folder, MiniLM through its LangChain embedder"
    uses_vectors = True

    def __init__(self, folder: Path, model: CachedModel) -> None:
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder), "OPENAI_API_KEY": "none"}
        from langchain_core.embeddings import Embeddings
        from mem0 import Memory

        class Local(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return model.embed_documents(texts).tolist()  # type: ignore[no-any-return]

            def embed_query(self, text: str) -> list[float]:
                return model.embed_query(text).tolist()  # type: ignore[no-any-return]

        store = {"path": str(folder / "qdrant"), "embedding_model_dims": model.dim, "on_disk": True}
        self._memory = Memory.from_config(
            {
                "embedder": {"provider": "langchain", "config": {"model": Local()}},
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(folder / "history.db"),
            }
        )

    def load(self, question: Question) -> None:
        """Add each turn, with its id as metadata."""
        for turn in question.turns:
            message = [{"role": turn.role, "content": turn.text}]
            self._memory.add(message, user_id="reader", infer=False, metadata={"turn": turn.id})

    def find(self, text: str) -> Sequence[str]:
        """Search."""
        found = self._memory.search(text, filters={"user_id": "reader"}, top_k=LIMIT, threshold=0.0)
        return [hit["metadata"]["turn"] for hit in found["results"]]


class MemPalace:
    """MemPalace: a drawer for each turn, a room for each session."""

    package, settings = "mempalace", "default backend and search, MiniLM"
    uses_vectors = True

    def __init__(self, folder: Path, model: CachedModel) -> None:
        os.environ["HOME"] = str(folder)  # Its configuration.
        from chromadb.api.types import EmbeddingFunction
        from mempalace import embedding

        class Given(EmbeddingFunction[Any]):  # type: ignore[misc]  # Chroma is not installed here.
            def __call__(self, texts: list[str]) -> list[Any]:
                is_question = len(texts) == 1
                return [model.embed_query(texts[0])] if is_question else [*model.embed_documents(texts)]

            @staticmethod
            def name() -> str:
                return "minilm"  # Its own name of the same model.

        embedding.get_embedding_function = lambda **_: Given()
        from mempalace.palace import get_collection

        self._palace = str(folder / "palace")
        self._drawers = get_collection(self._palace, create=True)

    def load(self, question: Question) -> None:
        """Add all turns with one call."""
        turns = question.turns
        places = [
            {"wing": "reader", "room": turn.session, "source_file": turn.id, "chunk_index": 0}
            for turn in turns
        ]
        texts = [turn.text for turn in turns]
        self._drawers.add(ids=[turn.id for turn in turns], documents=texts, metadatas=places)

    def find(self, text: str) -> Sequence[str]:
        """Search."""
        from mempalace.searcher import search_memories

        found = search_memories(text, self._palace, n_results=LIMIT)
        return [hit["drawer_id"] for hit in found["results"]]


SYSTEMS: dict[str, Callable[[Path, CachedModel], System]] = {
    "keepstone": Keepstone,
    "keepstone, MiniLM": KeepstoneMiniLM,
    "grep": Grep,
    "SQLite FTS5": Fts5,
    "MiniLM cosine": Cosine,
    "Chroma": Chroma,
    "LangGraph": LangGraph,
    "LlamaIndex": LlamaIndex,
    "mem0": Mem0,
    "MemPalace": MemPalace,
}


def version_of(name: str) -> str:
    """Return the version of a system's package, or of SQLite; empty for a tool of the operating system."""
    package: str = SYSTEMS[name].package  # type: ignore[attr-defined]
    if package:
        return importlib.metadata.version(package)
    return sqlite3.sqlite_version if "SQLite" in name else ""
