"""Vectors that a recall makes of entries that have none yet, and background work that gives way."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keepstone
from keepstone import Agent
from keepstone.embed.embedder import Turns


class Toy:
    """An embedder for which all texts mean the same."""

    id, dim = "toy", 8

    def embed_documents(self, texts: list[str]) -> Any:
        return np.ones((len(texts), 8), np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def slow(agent: Agent) -> None:
    """Let the maker believe that each text takes ten seconds."""
    agent.recall("walnut")
    maker = agent._shared.meaning._maker  # noqa: SLF001
    assert maker is not None
    maker._pace = 10.0  # noqa: SLF001


@pytest.mark.parametrize(("entries", "left"), [(200, 200), (30, 30)])
def test_a_recall_does_not_wait_for_a_slow_embedder(tmp_path: Path, entries: int, left: int) -> None:
    with keepstone.open(tmp_path, embedder=Toy()) as home:
        agent = home.agent("coder")
        agent.session("other").add("note", text="walnut")
        with agent._shared.meaning.turns.ahead():  # noqa: SLF001  The background makes none.
            slow(agent)
            agent.session("main").add_many({"type": "note", "text": f"oauth {n}"} for n in range(entries))
            assert agent.recall("oauth", sessions=["main"]).pending == left


def test_background_work_begins_nothing_while_a_call_is_answered() -> None:
    turns = Turns()
    with turns.ahead(), turns.later() as mine:
        assert not mine
    with turns.later() as mine:
        assert mine


def test_a_recall_keeps_background_work_from_beginning(tmp_path: Path) -> None:
    begun: list[bool] = []

    class Asked(Toy):
        def embed_query(self, text: str) -> Any:
            with agent._shared.meaning.turns.later() as mine:  # noqa: SLF001
                begun.append(mine)
            return super().embed_query(text)

    with keepstone.open(tmp_path, embedder=Asked()) as home:
        agent = home.agent("coder")
        agent.session("main").add("note", text="walnut")
        agent._shared.meaning.turns.are_wanted = True  # noqa: SLF001  As while the background is at work.
        agent.recall("walnut")
    assert set(begun) == {False}


def test_a_recall_waits_a_moment_only_for_a_slow_embedder(tmp_path: Path) -> None:
    released = threading.Event()

    class Slow(Toy):
        def embed_documents(self, texts: list[str]) -> Any:
            if any("slow" in text for text in texts):
                released.wait(30)
            return super().embed_documents(texts)

        def embed_query(self, text: str) -> Any:  # noqa: ARG002
            return np.ones(8, np.float32)

    with keepstone.open(tmp_path, embedder=Slow()) as home:
        agent = home.agent("coder")
        agent.session("s").add_many({"type": "note", "text": f"worker {n} penguin"} for n in range(20))
        home.embed()
        with agent._shared.meaning.turns.ahead():  # noqa: SLF001  The background makes none.
            added = agent.session("s").add("note", text="slow worker 1 penguin")
            hits = agent.recall("slow worker 1 penguin")
        assert (hits[0].entry.id, hits.pending) == (added.id, 1)
        assert hits.took_ms < 2000
        released.set()
