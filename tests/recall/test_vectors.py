"""Vectors of an agent's entries where the embedder refuses texts, or the index cannot keep them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.recall.concepts import Concepts

import keepstone
from keepstone import Agent, Home, MemoryService
from keepstone.embed.embedder import Patient
from keepstone.index import Index
from keepstone.model import Scope
from keepstone.recall.filling import AT_ONCE, fill_some
from keepstone.recall.vectors import Vectors
from keepstone.store.files.file_store import FileStore


class Refusing(Concepts):
    """One that fails each batch with a text that says POISON, and counts the texts that it is given."""

    texts = 0

    def embed_documents(self, texts: list[str]) -> Any:
        self.texts += len(texts)
        if any("POISON" in text for text in texts):
            raise ValueError("400: too long")
        return super().embed_documents(texts)


@pytest.fixture
def embedder() -> Refusing:
    return Refusing()


@pytest.fixture
def home(tmp_path: Path, embedder: Refusing) -> Iterator[Home]:
    with keepstone.open(tmp_path, embedder=embedder, durability="os") as home:
        yield home


@pytest.fixture
def agent(home: Home, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """An agent whose background work the test does by itself, and whose recalls have time."""
    monkeypatch.setattr("keepstone.recall.vectors.SECONDS", 30)
    monkeypatch.setattr(home._background, "wake", lambda _: None)  # noqa: SLF001
    home._shared.meaning.wake = lambda _: None  # noqa: SLF001
    return home.agent("a")


def remember(agent: Agent, *texts: str) -> None:
    agent.session("s").add_many({"type": "event", "id": text, "content": text} for text in texts)


def test_one_refused_text_leaves_all_others_found_by_meaning(agent: Agent, embedder: Refusing) -> None:
    remember(agent, "POISON", "her brother", *(f"text {number}" for number in range(60)))
    hits = agent.recall("a sibling")
    assert hits[0].entry.id == "her brother"
    assert hits.pending == 1
    assert "400: too long" in hits.reason
    paid = embedder.texts
    assert [agent.recall("a sibling").pending for _ in range(6)] == [1] * 6
    assert embedder.texts == paid


def test_more_refused_texts_than_a_recall_embeds_block_none(agent: Agent) -> None:
    remember(agent, "her brother", *(f"POISON {number}" for number in range(100)))
    pending = [agent.recall("a sibling").pending for _ in range(20)]
    assert pending[-1] == 100
    assert agent.recall("a sibling")[0].entry.id == "her brother"


def test_a_recall_and_background_work_read_a_page_of_pending_keys(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    pending = Index.pending

    def counted(*of: Any, **options: Any) -> list[int]:
        found = pending(*of, **options)
        read.append(len(found))
        return found

    monkeypatch.setattr(Index, "pending", counted)
    remember(agent, *(f"text {number}" for number in range(300)))
    assert agent.recall("a sibling", limit=5).pending > 200
    assert fill_some(agent.vectors(), Scope("a"))
    assert 0 < max(read) <= AT_ONCE + 1


def test_filling_makes_all_vectors_page_by_page(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.recall.filling._PAGE", 3)
    remember(agent, "POISON", *(f"text {number}" for number in range(7)))
    agent.vectors().fill(Scope("a"))
    assert agent.recall("a sibling").pending == 1


def test_a_refused_entry_that_is_changed_gets_its_vector(agent: Agent) -> None:
    remember(agent, "POISON")
    assert agent.recall("a sibling").pending == 1
    agent.session("s").update("POISON", text="her brother")
    hits = agent.recall("a sibling")
    assert hits.pending == 0
    assert hits[0].why.cosine == pytest.approx(1, abs=1e-3)


def test_similar_memories_are_found_beside_a_refused_text(home: Home, agent: Agent) -> None:
    remember(agent, "POISON", "her brother", "in porto")
    service = MemoryService(home, agent="a")
    found = service.query_similar_memories([1, 0, 0, 0, 0], "s")
    assert [memory.text for memory in found] == ["her brother", "in porto"]


def test_background_work_goes_past_refused_texts(home: Home, agent: Agent) -> None:
    remember(agent, *(f"POISON {number}" for number in range(20)), "her brother")
    while home._improve("a"):  # noqa: SLF001  What the background thread does.
        pass
    assert agent.recall("a sibling").pending == 20


def test_embedding_a_home_leaves_out_refused_texts(
    home: Home, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    remember(agent, "POISON", "her brother", "in porto")
    assert home.embed() == 2
    assert "refused 1 text," in caplog.text
    assert "POISON" not in caplog.text


def test_vectors_that_the_index_cannot_keep_are_paid_for_once(
    home: Home, agent: Agent, embedder: Refusing, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember(agent, *(f"text {number}" for number in range(200)))
    service = MemoryService(home, agent="a")
    with monkeypatch.context() as busy:
        busy.setattr(FileStore, "keep_vectors", lambda *_: 0)
        for _ in range(3):
            service.query_similar_memories([1, 0, 0, 0, 0], "s")
    assert len(service.query_similar_memories([1, 0, 0, 0, 0], "s", 500)) == 200
    assert embedder.texts == 200


def test_texts_that_only_wait_for_a_failed_embedder_are_not_refused(
    home: Home, agent: Agent, embedder: Refusing
) -> None:
    remember(agent, "her brother")
    maker = home._shared.meaning.maker(home._shared.meaning.choice().embedder)  # type: ignore[arg-type]  # noqa: SLF001
    maker.make(["her brother"])  # Made, and not stored yet.
    remember(agent, "in porto")
    embedder.fails = OSError("down")
    with pytest.raises(keepstone.EmbedderUnavailableError):
        maker.make(["the zoo"])
    assert agent.recall("x", vector=[1, 0, 0, 0, 0]).pending == 1
    assert home._shared.meaning.refused == {}  # noqa: SLF001


def test_a_slow_embedder_is_paid_once_for_each_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.embed.embedder.SECONDS_A_TEXT", 0)
    embedder, released = Refusing(), threading.Event()
    monkeypatch.setattr(embedder, "gate", released)
    with keepstone.open(tmp_path, embedder=embedder, durability="os") as home:
        patient = home._shared.meaning.choice().embedder  # noqa: SLF001
        home._shared.meaning.wake = lambda _: None  # noqa: SLF001
        assert isinstance(patient, Patient)
        assert patient.dim == 5
        monkeypatch.setattr(patient, "_seconds", 0.05)
        agent = home.agent("a")
        remember(agent, *(f"text {number}" for number in range(8)))
        assert agent.recall("x", vector=[1, 0, 0, 0, 0]).pending == 8
        released.set()
        late = home._shared.meaning.maker(patient).late  # noqa: SLF001
        assert late is not None
        late.thread.join(30)
        # On a busy machine a recall ends before its thread has taken up what is ready.
        until = time.monotonic() + 30
        while agent.recall("x", vector=[1, 0, 0, 0, 0]).pending and time.monotonic() < until:
            continue
        assert agent.recall("x", vector=[1, 0, 0, 0, 0]).pending == 0
    assert embedder.texts == 8


def test_a_recall_says_why_a_server_refused_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = Refusing()
    with keepstone.open(tmp_path, embedder=embedder) as home:
        monkeypatch.setattr(Vectors, "is_remote", property(lambda _: True))
        remember(home.agent("a"), "POISON pill", "her brother")
        home.embed()
        hits = home.agent("a").recall("a sibling")
    assert hits.pending == 1
    assert "400: too long" in hits.reason
