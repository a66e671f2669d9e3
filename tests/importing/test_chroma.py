"""Chroma folders: documents, metadata and vectors of its collections."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.importing.sources import FIXTURES, auto, chroma, entries

from keepstone.agent import Agent
from keepstone.importing import import_memory


def test_documents_of_chroma_keep_ids_metadata_and_vectors(agent: Agent) -> None:
    assert auto(agent, FIXTURES / "chroma", "chroma", vectors=True).imported == 31
    notes = entries(agent, "notes")
    assert (notes["a"].line["text"], notes["a"].data) == ("Use pnpm 9", {"n": 1, "role": "user"})
    assert notes["b"].data == {"ok": True, "f": 0.5}
    assert notes["b"].embedding is not None
    assert notes["b"].embedding.tolist() == [0, 1, 0]
    big = entries(agent, "big")
    assert "i3" not in big
    vector = big["i0"].embedding  # Only in the files of HNSW, no longer in the queue.
    assert vector is not None
    assert vector.tolist() == [0, 1, 0]


OTHER_NOTES = """
INSERT INTO collections(id, name, dimension, database_id) VALUES('c2', 'notes', 3, 'd2');
INSERT INTO segments VALUES('s2', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'c2');
INSERT INTO embeddings(id, segment_id, embedding_id, seq_id) VALUES(900, 's2', 'a', 900);
INSERT INTO embedding_metadata(id, key, string_value) VALUES(900, 'chroma:document', 'Other');
"""


def test_collections_of_two_chroma_databases_stay_apart(agent: Agent, tmp_path: Path) -> None:
    script = "INSERT INTO databases VALUES('d2', 'second', 'default_tenant');" + OTHER_NOTES
    result = import_memory(agent, "chroma", chroma(tmp_path / "chroma", script))
    assert (result.imported, result.failed) == (32, [])
    assert agent.get("a", "default_database/notes").line["text"] == "Use pnpm 9"
    assert agent.get("a", "second/notes").text == "Other"


def test_collections_of_two_chroma_tenants_stay_apart(agent: Agent, tmp_path: Path) -> None:
    script = (
        "INSERT INTO tenants VALUES('ada'); INSERT INTO databases VALUES('d2', 'default_database', 'ada');"
    )
    import_memory(agent, "chroma", chroma(tmp_path / "chroma", script + OTHER_NOTES))
    assert agent.get("a", "default_tenant/default_database/notes").line["text"] == "Use pnpm 9"
    assert agent.get("a", "ada/default_database/notes").text == "Other"


def test_lists_in_metadata_of_chroma_are_kept(agent: Agent, tmp_path: Path) -> None:
    script = """
    CREATE TABLE IF NOT EXISTS embedding_metadata_array(
        id INTEGER, key TEXT, string_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER);
    INSERT INTO embedding_metadata_array
        SELECT id, 'tags', 'red', NULL, NULL, NULL FROM embeddings WHERE embedding_id = 'a'
        UNION ALL SELECT id, 'tags', 'blue', NULL, NULL, NULL FROM embeddings WHERE embedding_id = 'a'
        UNION ALL SELECT id, 'nums', NULL, 2, NULL, NULL FROM embeddings WHERE embedding_id = 'a';
    """
    import_memory(agent, "chroma", chroma(tmp_path / "chroma", script))
    data = agent.get("a", "notes").data
    assert (data["tags"], data["nums"], data["n"]) == (["red", "blue"], [2], 1)


def test_vectors_of_chroma_behind_a_link_are_not_read(agent: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "chroma"
    shutil.copytree(FIXTURES / "chroma", folder)
    pickles = list(folder.glob("*/index_metadata.pickle"))
    for number, path in enumerate(pickles):
        path.symlink_to(path.rename(tmp_path / f"{number}.pickle"))
    result = import_memory(agent, "chroma", folder)
    assert len([one for one in result.failed if "index_metadata.pickle" in one.reason]) == len(pickles) > 0
