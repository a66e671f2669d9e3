"""Graphs are built after a load, saved unfinished, and go on after a restart."""

from __future__ import annotations

import threading

import pytest
from tests.index.vectors.test_search import ask, few_are_newer, fill, home, near, store_of, vectors

from keepstone import Home
from keepstone.index import index as index_module
from keepstone.index.vectors import graph_upkeep, hnsw
from keepstone.recall import selection
from keepstone.store.files.maintenance import file_maintenance

__all__ = ["few_are_newer", "home"]


def test_a_graph_is_built_in_the_background_after_a_load(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MANY_GIVEN", 100)
    monkeypatch.setattr(index_module, "BLOCK", 100)
    monkeypatch.setattr(file_maintenance, "HNSW_FROM", 100)
    fill(home)
    for thread in threading.enumerate():
        if thread.name == "keepstone":
            thread.join()
    assert ask(home, hnsw_from=100).searched == "hnsw"


@pytest.fixture
def unfinished(home: Home, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home that was closed when 120 of 300 rows were in the graph of them all, and opened again."""
    monkeypatch.setattr(hnsw, "_STEP", 40)
    monkeypatch.setattr(graph_upkeep, "_WORTH_SAVING", 1)
    fill(home)
    ask(home, hnsw_from=100)
    for _ in range(4):
        assert store_of(home).maintenance.upkeep("a")
    home.close()
    return home


def test_an_unfinished_graph_goes_on_after_a_restart(
    unfinished: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    real = hnsw.Growing.step

    def step(growing: hnsw.Growing) -> bool:
        steps.append(growing.done)
        return real(growing)

    monkeypatch.setattr(hnsw.Growing, "step", step)
    ask(unfinished, hnsw_from=100)
    unfinished.sync()
    assert steps == [120, 160, 200, 240, 280]
    assert ask(unfinished, hnsw_from=100).searched == "hnsw"
    assert near(unfinished, vectors()[3], hnsw_from=100)[0] == 3
    assert [path.name.split("-")[2] for path in unfinished.root.rglob("*.hnsw")] == ["0"]


def test_a_damaged_unfinished_graph_is_begun_again(unfinished: Home) -> None:
    (file,) = unfinished.root.rglob("*.hnsw")
    file.write_bytes(file.read_bytes()[:-1])
    ask(unfinished, hnsw_from=100)
    unfinished.sync()
    assert near(unfinished, vectors()[3], hnsw_from=100)[0] == 3


def test_a_purge_removes_an_unfinished_graph(unfinished: Home) -> None:
    unfinished.agent("a").purge("3")
    assert list(unfinished.root.rglob("*.hnsw")) == []
