"""Memories made many at a time, changed, deleted, and queried by text and by metadata."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.memories import Broken, Letters, lines_of, texts

import keepstone
from keepstone import EmbedderUnavailableError, EntryNotFoundError, Home, MemoryService
from keepstone.testing import ManualClock


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", clock=ManualClock()) as home:
        yield home


@pytest.fixture
def service(home: Home) -> MemoryService:
    return MemoryService(home, embedder=Letters())


def test_a_text_finds_what_its_vector_finds(service: MemoryService) -> None:
    for text in ("aaa", "abc", "ddd"):
        service.create_memory("s1", text)
    assert texts(service.query_similar_memories("aab", "s1", 2)) == ["aaa", "abc"]


def test_a_text_without_an_embedder_is_refused(home: Home) -> None:
    service = MemoryService(home)
    service.create_memory("s1", "x", [1.0, 0.0])
    with pytest.raises(EmbedderUnavailableError, match="pass a vector"):
        service.query_similar_memories("x", "s1")
    with pytest.raises(ValueError, match="must not be empty"):
        service.query_similar_memories("", "s1")


def test_metadata_comes_back_and_does_not_change_the_text(service: MemoryService) -> None:
    given = {"name": "Ada", "user": {"city": "Bern"}}
    made = service.create_memory("s1", "abc", metadata=given)
    (found,) = service.get_memories_by_session("s1")
    assert (made.text, found.text) == ("abc", "abc")
    assert made.metadata == found.metadata == given


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"number": 7}, {"7"}),
        ({"number": {"gte": 8}}, {"8", "9"}),
        ({"user.city": "Bern", "number": {"lt": 2}}, {"1"}),
        ({}, {"0", "1", "2"}),
    ],
)
def test_where_filters_before_the_limit(home: Home, where: dict[str, Any], expected: set[str]) -> None:
    service = MemoryService(home)
    for at in range(10):
        metadata = {"number": at, "user": {"city": ("Basel", "Bern")[at % 2]}}
        service.create_memory("s1", f"{at}", [1.0, at], metadata=metadata)
    found = service.query_similar_memories([1.0, 0.0], "s1", 3, where)
    assert set(texts(found)) == expected


def test_many_memories_are_made_with_one_question_to_the_embedder(home: Home) -> None:
    embedder = Letters()
    service = MemoryService(home, embedder=embedder)
    items: list[dict[str, Any]] = [{"text": "abc"}, {"text": "b", "embedding": [0, 1, 0, 0]}, {"text": "c"}]
    made = service.create_memories("s1", items)
    assert embedder.asked == ["abc", "c"]
    assert [memory.embedding.tolist() for memory in made[1:] if memory.embedding is not None] == [
        [0, 1, 0, 0],
        [0, 0, 1, 0],
    ]
    assert [memory.id for memory in service.get_memories_by_session("s1")] == [memory.id for memory in made]
    assert embedder.asked == ["abc", "c"]


@pytest.mark.parametrize(
    "bad", [{}, {"text": 5}, {"text": "x", "tag": "y"}, "x", {"text": "x", "metadata": 1}]
)
def test_one_bad_item_keeps_all_others_out(home: Home, service: MemoryService, bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        service.create_memories("s1", [{"text": "abc"}, bad])
    assert not (home.root / "agents").exists()


def test_a_changed_text_gets_a_vector_and_keeps_the_rest(service: MemoryService) -> None:
    made = service.create_memory("s1", "aaa", summary_text="short", metadata={"team": "web"})
    service.create_memory("s1", "bbb")
    changed = service.update_memory(made.id, text="ccc")
    assert (changed.text, changed.summary_text, changed.metadata) == ("ccc", "short", {"team": "web"})
    assert [found.id for found in service.query_similar_memories("c", "s1", 1)] == [made.id]


def test_summary_and_vector_change_alone(home: Home, service: MemoryService) -> None:
    made = service.create_memory("s1", "aaa", metadata={"team": "web"})
    service.update_memory(made.id, summary_text="short")
    changed = service.update_memory(made.id, embedding=[0.0, 1.0, 0.0, 0.0])
    assert (changed.text, changed.summary_text, changed.metadata) == ("aaa", "short", {"team": "web"})
    assert service.query_similar_memories([0.0, 1.0, 0.0, 0.0], "s1", 1)[0].score == pytest.approx(1)
    with pytest.raises(ValueError, match="update"):
        service.update_memory(made.id)
    assert len(lines_of(home, "s1")) == 3


def test_a_failed_embedder_changes_no_memory(home: Home) -> None:
    made = MemoryService(home, embedder=Letters(2, "broken")).create_memory("s1", "aaa")
    with pytest.raises(EmbedderUnavailableError):
        MemoryService(home, embedder=Broken(OSError("down"))).update_memory(made.id, text="bbb")
    assert len(lines_of(home, "s1")) == 1


def test_a_deleted_memory_is_hidden_once(service: MemoryService) -> None:
    made = service.create_memory("s1", "aaa")
    assert [service.delete_memory(made.id), service.delete_memory(made.id)] == [True, False]
    assert service.get_memories_by_session("s1") == []
    with pytest.raises(EntryNotFoundError):
        service.update_memory(made.id, text="bbb")
