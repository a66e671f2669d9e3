"""mem0 with its memories in a keepstone home."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import keepstone

pytest.importorskip("mem0", reason="mem0 is in another environment: make frameworks")


class Embedder:
    """An embedder of mem0 that needs no model: each text has its own vector."""

    class config:  # noqa: N801  As mem0 calls it.
        embedding_dims = 8

    def embed(self, text: str, *_: Any) -> list[float]:
        return [byte / 255 for byte in hashlib.sha256(text.encode()).digest()[:8]]

    def embed_batch(self, texts: list[str], *_: Any) -> list[list[float]]:
        return [*map(self.embed, texts)]


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, value in (("MEM0_TELEMETRY", "False"), ("OPENAI_API_KEY", "none")):
        monkeypatch.setenv(name, value)
    for name in ("HOME", "MEM0_DIR"):
        monkeypatch.setenv(name, str(tmp_path / "mem0"))
    import mem0.utils.factory

    import keepstone.integrations.mem0  # noqa: F401  It makes the provider known.

    monkeypatch.setattr(mem0.utils.factory.EmbedderFactory, "create", lambda *_, **__: Embedder())
    config = {"home": str(tmp_path / "home"), "agent": "assistant"}
    history = str(tmp_path / "history.db")
    return mem0.Memory.from_config(
        {"vector_store": {"provider": "keepstone", "config": config}, "history_db_path": history}
    )


def added(memory: Any, text: str, **keys: Any) -> str:
    return str(memory.add(text, infer=False, **keys)["results"][0]["id"])


def texts(found: Any) -> list[str]:
    return [one["memory"] for one in found["results"]]


def test_memories_are_entries_that_recall_finds(memory: Any, tmp_path: Path) -> None:
    name = added(memory, "Prefers pnpm", user_id="ada", metadata={"topic": "tools"})
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        entry = home.agent("assistant").get(name, "mem0")
        assert (entry.line["text"], entry.data["user_id"], entry.data["topic"]) == (
            "Prefers pnpm",
            "ada",
            "tools",
        )
        assert home.agent("assistant").recall("pnpm", types=["memory"])[0].entry.id == name


def test_a_search_sees_the_memories_of_its_user(memory: Any) -> None:
    added(memory, "Prefers pnpm", user_id="ada")
    added(memory, "Prefers bun", user_id="bob")
    assert texts(memory.search("Prefers bun", filters={"user_id": "ada"})) == ["Prefers pnpm"]
    assert texts(memory.get_all(filters={"user_id": "bob"})) == ["Prefers bun"]


def test_an_update_keeps_the_id_and_the_history(memory: Any, tmp_path: Path) -> None:
    name = added(memory, "Prefers pnpm", user_id="ada")
    memory.update(name, "Prefers bun")
    assert memory.get(name)["memory"] == "Prefers bun"
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        versions = home.agent("assistant").history(name, "mem0")
    assert [version.line["text"] for version in versions] == ["Prefers pnpm", "Prefers bun"]


def test_deleted_memories_are_not_found(memory: Any) -> None:
    first, _ = added(memory, "Likes tea", user_id="ada"), added(memory, "Likes sea", user_id="ada")
    memory.delete(first)
    assert texts(memory.get_all(filters={"user_id": "ada"})) == ["Likes sea"]
    memory.delete_all(user_id="ada")
    assert texts(memory.get_all(filters={"user_id": "ada"})) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"n": {"gte": 2}}, ["b", "c"]),
        ({"n": {"in": [1, 3]}}, ["a", "c"]),
        ({"OR": [{"n": 1}, {"name": {"icontains": "C"}}]}, ["a", "c"]),
        ({"NOT": [{"n": 1}]}, ["b", "c"]),
        ({"AND": [{"n": {"gt": 1}}, {"name": {"ne": "c"}}]}, ["b"]),
    ],
)
def test_filters_are_those_of_mem0(memory: Any, filters: Any, expected: list[str]) -> None:
    for number, name in enumerate("abc", 1):
        added(memory, name, user_id="ada", metadata={"n": number, "name": name})
    found = memory.search("a", filters={"user_id": "ada", **filters}, threshold=0.0)
    assert sorted(texts(found)) == expected


def test_a_reset_removes_every_byte(memory: Any, tmp_path: Path) -> None:
    added(memory, "Prefers pnpm", user_id="ada")
    memory.reset()
    assert texts(memory.get_all(filters={"user_id": "ada"})) == []
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        assert "mem0" not in [info.id for info in home.agent("assistant").sessions()]
