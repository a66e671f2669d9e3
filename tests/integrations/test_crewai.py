"""The storage of CrewAI's memory, in an environment of its own: see ``make frameworks``."""

from __future__ import annotations

import asyncio
import copy
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
pytest.importorskip("crewai", reason="CrewAI needs an older mcp: make frameworks", exc_type=ImportError)

from crewai.memory.storage.backend import EmbeddingDimensionMismatchError, StorageBackend
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from tests.integrations.locking import locked

import keepstone
from keepstone.integrations.crewai import KeepstoneStorage

FIRST = datetime(2026, 1, 11, 14, 31)  # noqa: DTZ001  CrewAI's times have no zone.


def record(content: str = "We use pnpm", **keys: Any) -> MemoryRecord:
    return MemoryRecord(**{"content": content, "embedding": [1.0, 0.0], "created_at": FIRST, **keys})


def contents(found: Any) -> list[str]:
    return [(one[0] if isinstance(one, tuple) else one).content for one in found]


def embed(texts: list[str]) -> list[list[float]]:
    return [[float("tea" in text), float("pnpm" in text), 0.1] for text in texts]


def test_it_is_a_storage_backend(tmp_path: Path) -> None:
    assert isinstance(KeepstoneStorage(tmp_path), StorageBackend)


def test_a_memory_remembers_in_a_later_process(tmp_path: Path) -> None:
    fields: Any = {"scope": "/crew", "categories": ["tools"], "importance": 0.7}
    for text in ("We use pnpm", "Ada prefers tea"):
        with_fields = Memory(storage=KeepstoneStorage(tmp_path), embedder=embed)
        with_fields.remember(text, **fields)
        with_fields.close()
    memory = Memory(storage=KeepstoneStorage(tmp_path), embedder=embed)
    assert memory.recall("which tea?", depth="shallow", limit=1)[0].record.content == "Ada prefers tea"
    assert (memory.list_scopes("/"), memory.list_categories()) == (["/crew"], {"tools": 2})


def test_records_come_back_as_they_were_saved(tmp_path: Path) -> None:
    given = record(
        "Ü\u2028",
        scope="/a/b",
        categories=["x"],
        metadata={"id": None, "deleted": True, "n": 4.5},
        source="ada",
        private=True,
        importance=0.25,
    )
    KeepstoneStorage(tmp_path).save([given])
    assert KeepstoneStorage(tmp_path).get_record(given.id) == given


def test_a_search_returns_the_cosine_best_first(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save([record("far", embedding=[0.0, 1.0]), record("near"), record("none", embedding=None)])
    found = storage.search([0.6, 0.8])
    assert contents(found) == ["far", "near", "none"]
    assert [score for _, score in found] == pytest.approx([0.8, 0.6, 0.0])
    assert contents(storage.search([0.6, 0.8], min_score=0.7)) == ["far"]
    assert contents(storage.search([0.6, 0.8], limit=0)) == []


def test_searches_are_limited_by_scope_category_and_metadata(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save(
        [record("a", scope="/crew", categories=["x"]), record("b", scope="/crew/one", metadata={"k": None})]
    )
    storage.save([record("c", scope="/crews"), record("d")])
    assert sorted(contents(storage.search([1, 0], scope_prefix="/crew"))) == ["a", "b"]
    assert contents(storage.search([1, 0], categories=["x", "y"])) == ["a"]
    assert contents(storage.search([1, 0], metadata_filter={"k": None})) == ["b"]
    assert len(storage.search([1, 0], scope_prefix="/")) == 4


def test_scopes_are_reported_with_their_children(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    later = FIRST + timedelta(days=1)
    storage.save(
        [
            record(scope="/a/b/c", categories=["x"]),
            record(scope="/a/d", created_at=later),
            record(scope="/ab"),
        ]
    )
    info = storage.get_scope_info("/a/")
    assert (info.path, info.record_count, info.child_scopes) == ("/a", 2, ["/a/b", "/a/d"])
    assert (info.oldest_record, info.newest_record, info.categories) == (FIRST, later, ["x"])
    assert (storage.list_scopes(), storage.list_scopes("/a/b")) == (["/a", "/ab"], ["/a/b/c"])
    assert (storage.count(), storage.count("/a"), storage.count("/none")) == (3, 2, 0)


def test_records_are_listed_newest_first_in_pages(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save([record(str(day), created_at=FIRST + timedelta(days=day)) for day in (1, 3, 0, 2)])
    assert contents(storage.list_records()) == ["3", "2", "1", "0"]
    assert contents(storage.list_records(limit=2, offset=1)) == ["2", "1"]


def test_deletions_meet_all_criteria(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save(
        [record("a", id="a", scope="/x"), record("b", id="b", scope="/y"), record("c", id="c", scope="/x")]
    )
    assert storage.delete(scope_prefix="/x", record_ids=["a", "b"]) == 1
    assert storage.delete(older_than=FIRST) == 0
    assert storage.delete(record_ids=[]) == 0
    assert (storage.delete(older_than=FIRST + timedelta(1), scope_prefix="/x"), storage.count()) == (1, 1)
    assert (storage.delete(), storage.count()) == (1, 0)


def test_an_update_replaces_a_record(tmp_path: Path) -> None:
    storage, old = KeepstoneStorage(tmp_path), record()
    storage.save([old])
    storage.update(old.model_copy(update={"content": "We use npm", "embedding": [0.0, 1.0]}))
    assert contents(storage.search([0, 1], min_score=0.9)) == ["We use npm"]
    storage.touch_records([old.id])
    touched = storage.get_record(old.id)
    assert touched is not None
    assert (touched.last_accessed > old.last_accessed, touched.created_at) == (True, FIRST)
    assert touched.embedding == [0.0, 1.0]


def test_vectors_of_another_dimension_are_refused_whole(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save([record()])
    for refused in (
        lambda: storage.save([record("fine"), record(embedding=[1.0, 0.0, 0.0])]),
        lambda: storage.search([1.0, 0.0, 0.0]),
    ):
        with pytest.raises(EmbeddingDimensionMismatchError):
            refused()
    assert storage.count() == 1


def test_one_bad_record_stores_none_of_its_batch(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    with pytest.raises((TypeError, ValueError)):
        storage.save([record(), record(metadata={"x": object()})])
    assert storage.count() == 0


def test_a_locked_session_is_a_plain_timeout_and_reads_go_on(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save([record()])
    (log,) = tmp_path.glob("agents/default/memory/sessions/*.ndjson")
    with locked(log.with_suffix(".lock")):
        with pytest.raises(TimeoutError) as raised:
            storage.save([record("never stored")])
        assert type(raised.value) is TimeoutError
        assert storage.count() == 1


def test_an_invalid_agent_is_a_built_in_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  Its message is the library's.
        KeepstoneStorage(tmp_path, agent="../other")
    assert type(raised.value).__module__ == "builtins"


def test_a_reset_removes_every_byte_of_a_scope(tmp_path: Path) -> None:
    storage = KeepstoneStorage(tmp_path)
    storage.save([record("The password is swordfish", scope="/a"), record(scope="/b")])
    storage.reset("/a")
    assert storage.count() == 1
    assert not any(b"swordfish" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    storage.reset()
    assert storage.count() == 0


def test_the_async_methods_do_the_same(tmp_path: Path) -> None:
    async def main() -> tuple[list[str], int]:
        storage = KeepstoneStorage(tmp_path)
        await storage.asave([record("a", scope="/x"), record("b")])
        found = await storage.asearch([1.0, 0.0], scope_prefix="/x", limit=5)
        return contents(found), await storage.adelete(scope_prefix="/x")

    assert asyncio.run(main()) == (["a"], 1)


def test_storages_of_one_home_see_each_others_records(tmp_path: Path) -> None:
    one, other = KeepstoneStorage(tmp_path), KeepstoneStorage(tmp_path)
    assert other.count() == 0
    one.save([record()])
    assert (other.count(), KeepstoneStorage(tmp_path, agent="coder").count()) == (1, 0)
    assert copy.deepcopy(one).count() == 1


def test_records_are_recalled_by_their_words_and_corrected(tmp_path: Path) -> None:
    KeepstoneStorage(tmp_path).save([record(id="r1")])
    agent = keepstone.open(tmp_path).agent("default")
    assert agent.recall("pnpm")[0].text == "We use pnpm"
    agent.update("r1", text="We use npm")
    assert contents(KeepstoneStorage(tmp_path).list_records()) == ["We use npm"]
