"""LanceDB folders: how they are recognised, and what a row becomes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.importing.sources import FIXTURES, auto, entries

from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory
from keepstone.importing.lance import is_lance
from keepstone.importing.origin import Origin


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


def table(folder: Path, name: str = "notes") -> Path:
    (folder / f"{name}.lance" / "_versions").mkdir(parents=True)
    return folder


def test_a_database_and_one_of_its_tables_are_recognised(tmp_path: Path) -> None:
    folder = table(tmp_path / "db")
    assert is_lance(Origin(folder))
    assert is_lance(Origin(folder / "notes.lance"))


def test_a_link_to_a_table_is_not_one(tmp_path: Path) -> None:
    table(tmp_path / "db")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.lance").symlink_to(tmp_path / "db" / "notes.lance")
    assert not is_lance(Origin(tmp_path / "other"))


def test_a_file_with_the_ending_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "notes.lance").write_text("x")
    assert not is_lance(Origin(tmp_path / "notes.lance"))
    assert not is_lance(Origin(tmp_path))
