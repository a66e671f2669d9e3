"""Memories whose vectors an embedder makes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.memories import Broken, Letters, files_of, lines_of, texts

import keepstone
from keepstone import Home, MemoryService
from keepstone.store.files.home_space import HomeSpace
from keepstone.testing import ManualClock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", clock=ManualClock()) as home:
        yield home


@pytest.fixture
def service(home: Home) -> MemoryService:
    return MemoryService(home)


def test_without_an_embedder_a_text_alone_is_refused_with_the_remedy(home: Home) -> None:
    with pytest.raises(keepstone.EmbedderUnavailableError, match=r"pass embedding=, or embedder=") as raised:
        MemoryService(home).create_memory("s1", "x")
    assert isinstance(raised.value, RuntimeError)
    assert not home.root.exists()


@pytest.mark.parametrize(
    ("gives", "error"),
    [
        (OSError("no model file"), keepstone.EmbedderUnavailableError),
        ([[1.0, 2.0, 3.0]], keepstone.EmbeddingDimMismatchError),
        ([1.0, 2.0], keepstone.EmbeddingDimMismatchError),
        (None, keepstone.EmbeddingDimMismatchError),
        ([[float("nan"), 1.0]], keepstone.InvalidEmbeddingError),
        ([[0.0, 0.0]], keepstone.InvalidEmbeddingError),
    ],
)
def test_an_embedder_that_fails_is_a_clear_error_and_stores_nothing(
    home: Home, gives: Any, error: type[Exception]
) -> None:
    with pytest.raises(error):
        MemoryService(home, embedder=Broken(gives)).create_memory("s1", "x")
    assert not home.root.exists()


def test_a_memory_whose_vector_cannot_be_kept_is_created_once(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise keepstone.StoreError("the disk is full")

    service = MemoryService(home, embedder=Letters(4))
    monkeypatch.setattr(HomeSpace, "set", full)
    memory = service.create_memory("s1", "once")
    assert "the disk is full" in caplog.text
    monkeypatch.undo()
    assert [found.id for found in service.query_similar_memories(memory.embedding, "s1")] == [memory.id]


@pytest.mark.parametrize("embedder", [object(), 5])
def test_anything_but_an_embedder_is_refused_at_once(home: Home, embedder: Any) -> None:
    with pytest.raises(TypeError, match="embed_documents"):
        MemoryService(home, embedder=embedder)


def test_a_name_of_no_embedder_is_refused_with_the_names_there_are(home: Home) -> None:
    with pytest.raises(ValueError, match="minilm"):
        MemoryService(home, embedder="no such")


def test_an_embedder_that_is_not_installed_says_how_to_install_it(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_MODELS", str(tmp_path / "none"))
    with pytest.raises(keepstone.EmbedderUnavailableError, match="keepstone model install minilm"):
        MemoryService(home, embedder="minilm").create_memory("s1", "x")


@pytest.mark.parametrize(
    ("dim", "error"), [("4", TypeError), (True, TypeError), (0, ValueError), (3, ValueError)]
)
def test_a_dimension_that_cannot_be_is_refused_at_once(home: Home, dim: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="dim"):
        MemoryService(home, embedder=Letters(4), dim=dim)


def test_made_vectors_are_made_again_when_the_index_is_gone(home: Home) -> None:
    embedder = Letters()
    service = MemoryService(home, embedder=embedder)
    for text in ("aaa", "bbb"):
        service.create_memory("s1", text)
    assert texts(service.query_similar_memories([0, 1, 0, 0], "s1")) == ["bbb", "aaa"]
    assert embedder.asked == ["aaa", "bbb"]

    shutil.rmtree(home.root / ".index")
    found = service.query_similar_memories([0, 1, 0, 0], "s1")
    assert [(memory.text, memory.score) for memory in found] == [("bbb", 1.0), ("aaa", 0.0)]
    assert all(memory.embedding is not None for memory in service.get_memories_by_session("s1"))
    assert sorted(embedder.asked) == ["aaa", "aaa", "bbb", "bbb"]


def test_entries_of_other_ways_in_get_their_vectors_with_a_query(home: Home) -> None:
    session = home.agent("default").session("s1")
    session.add_many({"type": "message", "role": "user", "content": "b" * (n + 1)} for n in range(150))
    session.add("event", {"no": ["text"]} | {"n": 1})
    service = MemoryService(home, embedder=Letters())
    assert {memory.embedding is None for memory in service.get_memories_by_session("s1")} == {True}

    found = service.query_similar_memories([0, 1, 0, 0], "s1", limit=200)
    assert len(found) == 151
    assert service.get_memories_by_session("s1", limit=1)[0].embedding is not None


def test_a_changed_text_is_embedded_again_before_it_answers(home: Home) -> None:
    service = MemoryService(home, embedder=Letters())
    created = service.create_memory("s1", "aaa")
    home.agent("default").session("s1").update(created.id, text="bbb")

    [found] = service.query_similar_memories([1, 0, 0, 0], "s1")
    assert (found.text, found.score) == ("bbb", 0.0)


def test_given_vectors_count_as_those_of_the_services_embedder(home: Home) -> None:
    embedder = Letters()
    service = MemoryService(home, embedder=embedder)
    service.repository.create_memory("s1", "given", [0, 0, 0, 1])
    service.create_memory("s1", "aaa")

    assert texts(service.query_similar_memories([1, 0, 0, 0], "s1")) == ["aaa", "given"]
    assert [line.get("embedding", {}).get("space") for line in lines_of(home, "s1")] == ["letters", None]
    assert texts(MemoryService(home).query_similar_memories([0, 0, 0, 1], "s1", 1)) == ["given"]
    assert embedder.asked == ["aaa"]


@pytest.mark.parametrize("other", [Letters(4, "others"), Letters(3)])
def test_another_embedder_than_the_agents_is_refused(home: Home, other: Letters) -> None:
    MemoryService(home, embedder=Letters(4)).create_memory("s1", "aaa")
    before = files_of(home.root)
    for call in (
        lambda: MemoryService(home, embedder=other).create_memory("s1", "bbb"),
        lambda: MemoryService(home, embedder=other).create_memory("s1", "bbb", [1.0] * other.dim),
        lambda: MemoryService(home, embedder=other).query_similar_memories([1.0] * other.dim, "s1"),
    ):
        with pytest.raises(keepstone.SpaceMismatchError, match="letters"):
            call()
    assert files_of(home.root) == before


def test_an_agent_with_given_vectors_may_get_an_embedder_later(home: Home) -> None:
    MemoryService(home).create_memory("s1", "abab", [0.0, 1.0])
    service = MemoryService(home, embedder=Letters())
    [found] = service.query_similar_memories([1, 1, 0, 0], "s1")
    assert found.score == pytest.approx(1)


KEY = "ghp_" + 9 * "a1B2"


def test_masked_secrets_never_reach_the_embedder(tmp_path: Path) -> None:
    embedder = Letters()
    with keepstone.open(tmp_path, embedder=embedder, secrets="mask") as home:
        memory = MemoryService(home).create_memory("s1", f"push with {KEY}")
    assert embedder.asked == [memory.text] == ["push with [secret: GitHub token]"]


def test_refused_secrets_never_reach_the_embedder(tmp_path: Path) -> None:
    embedder = Letters()
    with keepstone.open(tmp_path, embedder=embedder, secrets="refuse") as home:
        with pytest.raises(keepstone.SecretError, match="GitHub token"):
            MemoryService(home).create_memory("s1", f"push with {KEY}")
        assert (embedder.asked, MemoryService(home).get_all_sessions()) == ([], [])


def test_a_bound_method_embeds_without_an_id(tmp_path: Path) -> None:
    class Model:
        def encode(self, texts: list[str]) -> Any:
            return [[1.0, 2.0] for _ in texts]

    with keepstone.open(tmp_path, embedder=Model().encode) as home:
        memory = MemoryService(home).create_memory("s1", "use pnpm")
    assert memory.embedding is not None
