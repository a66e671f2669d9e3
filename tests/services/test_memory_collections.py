"""Collections of memories: their sizes, and how they are dropped for good."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.memories import SESSIONS, texts

import keepstone
from keepstone import Home, MemoryService
from keepstone.store.files import purge, purge_marks
from keepstone.testing import ManualClock

DROPPED = f"{SESSIONS}/.dropped.ndjson"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", clock=ManualClock()) as home:
        yield home


@pytest.fixture
def service(home: Home) -> MemoryService:
    return MemoryService(home)


@pytest.mark.requirement("vectors.sessions.all-with-memories")
def test_all_sessions_are_those_with_memories_each_once(home: Home, service: MemoryService) -> None:
    for session in ("b", "a", "b", "c"):
        service.create_memory(session, "x", [1.0, 0.0])
    home.agent("default").new_session()
    emptied = home.agent("default").session("c")
    emptied.delete(emptied.entries()[0].id)

    assert service.get_all_sessions() == ["a", "b"]


@pytest.mark.requirement("vectors.collections.exists", "vectors.collections.size")
def test_a_collection_exists_and_has_its_size_while_it_has_memories(service: MemoryService) -> None:
    seen = [(service.collection_exists("s1"), service.get_collection_size("s1"))]
    for number in range(2):
        service.create_memory("s1", str(number), [1.0, 0.0])
        seen.append((service.collection_exists("s1"), service.get_collection_size("s1")))
    assert seen == [(False, 0), (True, 1), (True, 2)]
    assert not service.collection_exists("s2")


@pytest.mark.requirement("vectors.collections.delete-drops")
def test_a_deleted_collection_loses_all_memories_and_is_marked(home: Home, service: MemoryService) -> None:
    for number in range(3):
        service.create_memory("s1", f"secret {number}", [1.0, 0.0])
    service.create_memory("s2", "stays", [1.0, 0.0])

    assert service.delete_collection("s1") == 3

    for one in (service, MemoryService(home.root)):
        assert not one.collection_exists("s1")
        assert one.get_memories_by_session("s1") == one.query_similar_memories([1.0, 0.0], "s1") == []
        assert one.get_all_sessions() == ["s2"]
    mark = {"session": "s1", "ts": "2026-01-11T14:31:00.000000Z"}
    assert json.loads((home.root / DROPPED).read_text()) == mark
    assert not [path for path in home.root.rglob("*") if path.is_file() and b"secret" in path.read_bytes()]


def test_a_collection_made_again_starts_empty_and_lives(home: Home, service: MemoryService) -> None:
    for text in ("first", "second"):
        service.create_memory("s1", text, [1.0, 0.0])
        assert texts(service.get_memories_by_session("s1")) == [text]
        assert service.delete_collection("s1") == 1
    service.create_memory("s1", "third", [0.0, 1.0])

    assert texts(MemoryService(home.root).query_similar_memories([1.0, 1.0], "s1")) == ["third"]


@pytest.mark.requirement("vectors.collections.delete-drops")
def test_dropped_collections_are_listed_once_each(home: Home, service: MemoryService) -> None:
    assert service.dropped_collections() == []
    for name in ("s2", "s1", "s2"):
        service.create_memory(name, "text", [1.0, 0.0])
        service.delete_collection(name)
    service.create_memory("s1", "again", [1.0, 0.0])
    assert service.dropped_collections() == MemoryService(home.root).dropped_collections() == ["s1", "s2"]


def test_dropped_collections_of_another_agent_are_not_listed(home: Home, service: MemoryService) -> None:
    service.create_memory("s1", "text", [1.0, 0.0])
    service.delete_collection("s1")
    assert MemoryService(home, agent="other").dropped_collections() == []


def test_deleting_a_missing_collection_marks_nothing(home: Home, service: MemoryService) -> None:
    assert service.delete_collection("missing") == 0
    assert not home.root.exists()


def _drop_and_die(root: Path, at: str) -> None:
    def die(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    target: Any = purge.Eraser if at.startswith("_") else purge_marks
    setattr(target, at, die)
    MemoryService(root).delete_collection("s1")


@pytest.mark.parametrize("at", ["mark_dropped", "remove_others", "_checkpoint"])
def test_a_drop_that_is_killed_half_way_still_ends_dropped(tmp_path: Path, at: str) -> None:
    MemoryService(tmp_path).create_memory("s1", "x", [1.0, 0.0])
    process = multiprocessing.get_context("spawn").Process(target=_drop_and_die, args=(tmp_path, at))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL

    service = MemoryService(tmp_path)
    assert service.get_memories_by_session("s1") == []
    assert not service.collection_exists("s1")
    marks = (tmp_path / DROPPED).read_text().splitlines()
    assert [json.loads(mark)["session"] for mark in marks] == ["s1"]
    assert not (tmp_path / SESSIONS / ".purge.ndjson").exists()
