"""LanceDB folders: how they are recognised, and what a row becomes."""

from __future__ import annotations

import pytest
from tests.importing.sources import FIXTURES, auto, entries

from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory


def test_lance_without_its_package_says_what_to_install(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.importing.lance.find_spec", lambda _: None)
    with pytest.raises(SourceError, match=r"keepstone\[lancedb\]"):
        import_memory(agent, "auto", FIXTURES / "lance")


def test_rows_of_lancedb_keep_ids_times_and_vectors(agent: Agent) -> None:
    pytest.importorskip("lancedb")
    assert auto(agent, FIXTURES / "lance", "lancedb", vectors=True).imported == 2
    row = entries(agent, "notes")["b"]
    assert (row.line["text"], row.ts.isoformat(), row.data["topic"]) == (
        "Use tea",
        "2026-01-02T00:00:00+00:00",
        "tea",
    )
    assert row.embedding is not None
    assert row.embedding.tolist() == [0, 1]
