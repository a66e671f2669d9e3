"""What a home must not forget lies beside the folder of derived data."""

from __future__ import annotations

import shutil
from pathlib import Path

import keepstone


def test_a_language_kept_with_the_indexes_is_taken_over(tmp_path: Path) -> None:
    (tmp_path / ".index").mkdir()
    (tmp_path / ".index" / ".language").write_text("de\n")
    keepstone.open(tmp_path, embedder="none").close()
    shutil.rmtree(tmp_path / ".index")
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("a").session("main").add("note", text="Die Häuser sind alt", id="x")
        assert [hit.entry.id for hit in home.agent("a").recall("Haus")] == ["x"]


def test_the_index_of_an_agent_that_was_renamed_goes(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        home.agent("ada").session("main").add("note", text="walnut")
        home.agent("ada").recall("walnut")
    (tmp_path / "agents" / "ada").rename(tmp_path / "agents" / "bob")
    keepstone.open(tmp_path, embedder="none").close()
    assert not (tmp_path / ".index" / "ada").exists()
