"""Without the packages of the extra ``vectors`` NumPy finds the same, and no graph is made."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.index.vectors.test_search import (
    ROWS,
    ask,
    few_are_newer,
    files,
    fill,
    home,
    near,
    nearest,
    test_a_damaged_generation_is_made_again,
    test_a_generation_cut_short_under_an_open_home_is_made_again,
    test_a_part_of_a_session_is_always_compared_exactly,
    test_a_tenth_more_vectors_make_a_new_generation,
    test_equally_near_entries_come_oldest_first_from_generation_and_after,
    test_every_scope_finds_what_brute_force_finds,
    test_no_byte_of_a_purged_vector_stays_beside_the_index,
    test_removed_entries_are_not_found_and_changed_ones_are,
    test_two_spaces_have_a_generation_each,
    vectors,
)

from keepstone import Home, MemoryService
from keepstone.index import index as index_module
from keepstone.index.vectors import exact_scan
from keepstone.model import Finding
from keepstone.recall import selection
from keepstone.store.files.maintenance import file_maintenance

# These tests run here again, without the packages.
__all__ = [
    "few_are_newer",
    "home",
    "test_a_damaged_generation_is_made_again",
    "test_a_generation_cut_short_under_an_open_home_is_made_again",
    "test_a_part_of_a_session_is_always_compared_exactly",
    "test_a_tenth_more_vectors_make_a_new_generation",
    "test_equally_near_entries_come_oldest_first_from_generation_and_after",
    "test_every_scope_finds_what_brute_force_finds",
    "test_no_byte_of_a_purged_vector_stays_beside_the_index",
    "test_removed_entries_are_not_found_and_changed_ones_are",
    "test_two_spaces_have_a_generation_each",
]


@pytest.fixture(autouse=True)
def missing() -> Iterator[pytest.MonkeyPatch]:
    """Neither package seems to be installed, until this is undone."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("numkong", "usearch", "usearch.index"):
            patch.setitem(sys.modules, name, None)
        yield patch


@pytest.mark.parametrize("dim", [1, 24, 384, 4096])
def test_products_equal_those_of_numkong(missing: pytest.MonkeyPatch, dim: int) -> None:
    chance = np.random.default_rng(dim)
    rows = chance.integers(-127, 128, (50, dim), dtype=np.int8)
    rows[0], rows[1] = 127, -127
    made = exact_scan._dot_product()(rows[0], rows)  # noqa: SLF001  What the package is for.
    missing.undo()
    theirs = exact_scan._dot_product()(rows[0], rows)  # noqa: SLF001
    assert made.dtype == theirs.dtype == np.float32
    assert np.array_equal(made, theirs)


def test_no_graph_is_asked_for_or_made(home: Home) -> None:
    fill(home)
    for _ in range(2):
        found = ask(home, hnsw_from=1)
        assert (found.searched, found.is_due) == ("exact", False)
        home.sync()
    assert files(home, "*.hnsw") == []


def test_a_load_makes_no_graph(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "MANY_GIVEN", 100)
    monkeypatch.setattr(index_module, "BLOCK", 100)
    monkeypatch.setattr(file_maintenance, "HNSW_FROM", 100)
    fill(home)
    for thread in threading.enumerate():
        if thread.name == "keepstone":
            thread.join()
    assert files(home, "*.hnsw") == []
    assert near(home, hnsw_from=100) == nearest(list(range(ROWS)))


def test_a_graph_that_is_there_waits_for_the_packages(home: Home, missing: pytest.MonkeyPatch) -> None:
    missing.undo()
    fill(home)
    ask(home, hnsw_from=50)
    home.sync()
    by_graph = ask(home, hnsw_from=50)
    missing.setitem(sys.modules, "usearch", None)
    exact = ask(home, hnsw_from=50)
    missing.undo()
    assert (by_graph.searched, exact.searched, ask(home, hnsw_from=50).searched) == ("hnsw", "exact", "hnsw")
    assert list(exact) == list(by_graph)


def test_the_memory_service_compares_every_memory(home: Home) -> None:
    service = MemoryService(home, hnsw_from=1)
    for row, vector in enumerate(vectors(40)):
        service.create_memory("s", str(row), vector.tolist())
    home.sync()
    found = service.query_similar_memories(vectors(40)[7], "s", 3)
    assert (found.searched, found[0].text) == ("exact", "7")


def speed(home: Home) -> list[Finding]:
    return [finding for finding in home.doctor() if finding.subject == "vectors"]


def test_the_doctor_names_the_extra_where_there_are_vectors(home: Home, missing: pytest.MonkeyPatch) -> None:
    home.agent("a").session("s").add("note", {"content": "no vector"})
    assert speed(home) == []
    fill(home)
    [finding] = speed(home)
    assert (finding.level, "numkong and usearch" in finding.message) == ("ok", True)
    assert "pip install 'keepstone[vectors]'" in finding.remedy
    missing.undo()
    assert speed(home) == []


def test_recall_by_given_vectors_imports_neither_package(tmp_path: Path) -> None:
    program = """
import sys, numpy, keepstone
from keepstone.index.vectors import cache
cache.NEWER = 8
sys.modules |= {"numkong": None, "usearch": None}
with keepstone.open(sys.argv[1], embedder="none") as home:
    rows = numpy.eye(30, dtype="float32")
    session = home.agent("a").session("s")
    session.add_many([{"text": str(row), "type": "note", "embedding": rows[row]} for row in range(30)])
    hits = home.agent("a").recall(None, vector=rows[7], limit=1)
    print(hits.searched, hits[0].entry.text)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "home")]
    assert subprocess.check_output(command, text=True) == "exact 7\n"
