"""Chroma folders: documents, metadata and vectors of its collections."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.importing.sources import FIXTURES, auto, chroma, entries, read, reasons

from keepstone.agent import Agent
from keepstone.errors import SourceError
from keepstone.importing import import_memory
from keepstone.importing.chroma import chroma_collections, is_chroma, read_chroma
from keepstone.importing.item import Item
from keepstone.importing.origin import Origin


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


def lines(folder: Path) -> dict[str, Any]:
    """Return the lines of the collection called notes, by id."""
    found = read(read_chroma, folder)
    return {
        item.line["id"]: item.line for item in found if isinstance(item, Item) and item.session == "notes"
    }


def metadata(key: str, column: str, value: str) -> str:
    return (
        f"INSERT INTO embedding_metadata(id, key, {column}) "  # noqa: S608
        f"SELECT id, '{key}', {value} FROM embeddings WHERE embedding_id = 'a'"
    )


@pytest.mark.parametrize("key", ["created_at", "timestamp", "date"])
def test_a_time_in_the_metadata_goes_before_that_of_the_row(tmp_path: Path, key: str) -> None:
    folder = chroma(tmp_path / "chroma", metadata(key, "string_value", "'2026-01-11T14:31:00Z'"))
    assert lines(folder)["a"]["ts"] == "2026-01-11T14:31:00.000000Z"


def test_a_date_that_is_none_leaves_the_time_of_the_row(tmp_path: Path) -> None:
    before = lines(FIXTURES / "chroma")["a"]["ts"]
    folder = chroma(tmp_path / "chroma", metadata("date", "string_value", "'soon'"))
    assert lines(folder)["a"]["ts"] == before


def test_each_value_of_metadata_keeps_its_type(tmp_path: Path) -> None:
    script = ";".join(
        [
            metadata("whole", "int_value", "0"),
            metadata("real", "float_value", "0.0"),
            metadata("no", "bool_value", "0"),
        ]
    )
    data = lines(chroma(tmp_path / "chroma", script))["a"]["data"]
    assert [data[key] for key in ("whole", "real", "no")] == [0, 0.0, False]
    assert [type(data[key]) for key in ("whole", "real", "no")] == [int, float, bool]


def test_the_newest_vector_of_the_queue_is_the_vector(tmp_path: Path) -> None:
    script = (
        "INSERT INTO embeddings_queue(operation, topic, id, vector, encoding) "
        "SELECT operation, topic, id, x'0000803F0000803F0000803F', encoding FROM embeddings_queue "
        "WHERE id = 'a' LIMIT 1"
    )
    assert lines(chroma(tmp_path / "chroma", script))["a"]["embedding"].tolist() == [1, 1, 1]


def test_damaged_hnsw_files_are_named_and_their_documents_are_read(tmp_path: Path) -> None:
    folder = chroma(tmp_path / "chroma", "SELECT 1")
    for header in folder.glob("*/header.bin"):
        # No vector lies between the end of an element's links and its label.
        fields = struct.Struct("<iQQQQQQ")
        raw = header.read_bytes()
        values = fields.unpack_from(raw)
        header.write_bytes(fields.pack(*values[:-1], values[-2]) + raw[fields.size :])
    found = read(read_chroma, folder)
    ((_, reason),) = reasons(found)
    assert reason == "its files cannot be read: header.bin does not fit data_level0.bin"
    assert len(found) == 32


def test_a_truncated_header_is_named(tmp_path: Path) -> None:
    folder = chroma(tmp_path / "chroma", "SELECT 1")
    for header in folder.glob("*/header.bin"):
        header.write_bytes(b"\0")
    assert "its files cannot be read" in reasons(read(read_chroma, folder))[0][1]


def test_a_database_of_an_unknown_version_is_refused(tmp_path: Path) -> None:
    folder = chroma(tmp_path / "chroma", "DROP TABLE embedding_metadata")
    with pytest.raises(SourceError, match="is not a Chroma database of a known version"):
        read(read_chroma, folder)


def test_a_file_of_that_name_that_is_no_database_is_not_recognised(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_text("x")
    assert not is_chroma(Origin(tmp_path))
    assert is_chroma(Origin(FIXTURES / "chroma" / "chroma.sqlite3"))


def test_the_names_of_collections_are_those_of_their_documents(tmp_path: Path) -> None:
    script = "INSERT INTO databases VALUES('d2', 'second', 'default_tenant');" + OTHER_NOTES
    origin = Origin(chroma(tmp_path / "chroma", script))
    found = {item.session for item in read(read_chroma, origin.path) if isinstance(item, Item)}
    assert chroma_collections(origin) == found
