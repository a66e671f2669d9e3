"""The walk of one call: how many functions of the package it calls, in how many modules."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import keepstone
from keepstone import Agent

OURS = os.path.dirname(keepstone.__file__) + os.sep


class Toy:
    """An embedder for which all texts mean the same."""

    id, dim = "toy", 8

    def embed_documents(self, texts: list[str]) -> Any:
        return np.ones((len(texts), 8), np.float32)

    def embed_query(self, text: str) -> Any:
        return self.embed_documents([text])[0]


def walk(call: Callable[[], object]) -> tuple[int, int, list[str]]:
    """Return the number of calls and of changes of module, and the modules."""
    files: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            files.append(frame.f_code.co_filename.removeprefix(OURS))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(files), sum(one != other for one, other in pairwise(files)), sorted(set(files))


WALKS: dict[str, tuple[object, Callable[[Agent], object], int, int, int]] = {
    "recall by words": ("none", lambda agent: agent.recall("oauth walnut"), 450, 200, 29),
    "recall with vectors": (Toy(), lambda agent: agent.recall("oauth walnut"), 545, 248, 34),
    "add": ("none", lambda agent: agent.session("main").add("note", {"content": "Use pnpm"}), 138, 92, 33),
    "get": ("none", lambda agent: agent.get("walnut-7"), 46, 34, 16),
}


@pytest.mark.parametrize("name", WALKS)
def test_a_warm_call_stays_within_its_bounds(tmp_path: Path, name: str) -> None:
    embedder, call, most_calls, most_changes, most_modules = WALKS[name]
    with keepstone.open(tmp_path, embedder=embedder) as home:  # type: ignore[arg-type]
        agent = home.agent("coder")
        agent.session("main").add_many(
            # Each of another length, as all entries with the score of the last hit are loaded.
            {
                "type": "message",
                "id": f"walnut-{n}",
                "data": {"role": "user", "content": f"walnut {n} {'shell ' * n}oauth"},
            }
            for n in range(30)
        )
        for _ in range(3):
            agent.recall("oauth walnut")
        while agent.recall("oauth walnut").pending:  # On a busy machine each makes only some of the vectors.
            continue
        # Now and then a call also looks whether others wrote, or gives way to the background; most do not.
        calls, changes, modules = min(walk(lambda: call(agent)) for _ in range(30))
    assert calls <= most_calls
    assert changes <= most_changes
    assert len(modules) <= most_modules, " ".join(modules)


def test_a_given_vector_in_any_of_many_sessions_stays_within_its_bounds(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(80, 20, 8))
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("coder")
        for number, vectors in enumerate(rows):
            items = [{"type": "note", "text": "oauth walnut", "embedding": vector} for vector in vectors]
            agent.session(f"s{number}").add_many(items)
        agent.recall(None, vector=rows[0, 0], sessions=["s0"])
        # More sessions than logs are held open: a recall need not open theirs to see that nothing changed.
        calls, changes, modules = min(
            walk(lambda n=n: agent.recall(None, vector=rows[0, 0], sessions=[f"s{n}"]))  # type: ignore[misc]
            for n in range(40)
        )
    assert (calls <= 400, changes <= 205) == (True, True), (calls, changes)
    assert len(modules) <= 35, " ".join(modules)
