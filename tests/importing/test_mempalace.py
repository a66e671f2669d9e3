"""Palaces of MemPalace: drawers and facts."""

from __future__ import annotations

import json
import struct
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import FIXTURES, auto, chroma, entries, items, read, reasons

from keepstone.agent import Agent
from keepstone.importing.mempalace import is_mempalace, read_mempalace
from keepstone.importing.origin import Origin


def test_drawers_and_facts_of_mempalace(agent: Agent, tmp_path: Path) -> None:
    palace = tmp_path / "palace"
    palace.mkdir()
    connection = apsw.Connection(str(palace / "sqlite_exact.sqlite3"))
    connection.execute(
        "CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE documents (collection_id, id TEXT, document TEXT, metadata_json TEXT, embedding BLOB, "
        "created_at TEXT); INSERT INTO collections VALUES (1, 'mempalace_drawers');"
    )
    metadata = json.dumps({"wing": "app", "room": "auth", "filed_at": "2026-01-11T14:31:00"})
    values = ("d1", "Use passkeys", metadata, struct.pack("<2f", 0, 1), "2026-01-12")
    connection.execute("INSERT INTO documents VALUES (1, ?, ?, ?, ?, ?)", values)
    connection.close()
    connection = apsw.Connection(str(palace / "knowledge_graph.sqlite3"))
    connection.execute(
        "CREATE TABLE entities (id TEXT, name TEXT);"
        "CREATE TABLE triples (id TEXT, subject TEXT, predicate TEXT, "
        "object TEXT, valid_from TEXT, valid_to TEXT, confidence REAL, extracted_at TEXT);"
        "INSERT INTO entities VALUES ('ada', 'Ada');"
        "INSERT INTO triples VALUES ('t', 'ada', 'works_on', 'app', '2026-01-01', NULL, 1.0, '2026-01-11');"
    )
    connection.close()
    assert auto(agent, palace, "mempalace").imported == 2
    drawer = entries(agent, "app/auth")["d1"]
    assert (drawer.text, drawer.ts.isoformat()) == ("Use passkeys", "2026-01-11T14:31:00+00:00")
    fact = agent.get("t")
    assert (fact.text, fact.line["valid_from"]) == ("Ada works on app", "2026-01-01T00:00:00.000000Z")


def exact(folder: Path, *rows: tuple[object, ...]) -> Path:
    """A palace with drawers in SQLite: id, document, metadata and embedding of each."""
    folder.mkdir()
    with closing(apsw.Connection(str(folder / "sqlite_exact.sqlite3"))) as database:
        database.execute(
            "CREATE TABLE collections(id INTEGER PRIMARY KEY, name);"
            "CREATE TABLE documents(collection_id, id, document, metadata_json, embedding, created_at);"
            "INSERT INTO collections VALUES(1, 'mempalace_drawers'), (2, 'mempalace_closets');"
            "INSERT INTO documents VALUES(2, 'made', 'A summary', '{}', NULL, NULL)"
        )
        database.executemany("INSERT INTO documents VALUES(1, ?, ?, ?, ?, '2026-01-12')", rows)
    return folder


def test_only_drawers_are_read_and_nothing_that_is_made_of_them(tmp_path: Path) -> None:
    found = items(read_mempalace, exact(tmp_path / "palace", ("d", "Tea", "{}", None)))
    assert [(item.session, item.line["id"], item.line["text"]) for item in found] == [("palace", "d", "Tea")]


def test_a_drawer_without_a_room_is_in_its_wing(tmp_path: Path) -> None:
    (found,) = items(read_mempalace, exact(tmp_path / "palace", ("d", "Tea", '{"wing": "app"}', None)))
    assert (found.session, found.line["data"]) == ("app", {"wing": "app"})
    assert found.line["ts"] == "2026-01-12T00:00:00.000000Z"


@pytest.mark.parametrize("metadata", ["{", "[" * 200_000])
def test_metadata_that_is_not_json_is_named_and_the_rest_is_read(tmp_path: Path, metadata: str) -> None:
    rows = (("d", "Tea", metadata, None), ("e", "Tea", "", None))
    found = read(read_mempalace, exact(tmp_path / "palace", *rows))
    ((place, reason),) = reasons(found)
    assert (place, len(found)) == ("sqlite_exact.sqlite3: d", 2)
    assert reason.startswith("its metadata is not JSON")


def test_bytes_that_are_not_float32_are_no_vector(tmp_path: Path) -> None:
    rows = (("d", "Tea", "{}", b"abc"), ("e", "Tea", "{}", b"\0\0\x80\x3f"))
    first, second = items(read_mempalace, exact(tmp_path / "palace", *rows))
    assert "embedding" not in first.line
    assert second.line["embedding"].tolist() == [1.0]


def test_a_fact_names_its_entities_and_keeps_ids_of_unknown_ones(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "knowledge_graph.sqlite3"))) as database:
        database.execute(
            "CREATE TABLE entities(id, name);"
            "CREATE TABLE triples(id, subject, predicate, object, valid_from, valid_to);"
            "INSERT INTO entities VALUES('e1', 'Ada');"
            "INSERT INTO triples VALUES('t', 'e1', 'works_on', 'e2', NULL, '2026-02-01')"
        )
    assert is_mempalace(Origin(tmp_path))
    (found,) = items(read_mempalace, tmp_path)
    assert (found.session, found.line["text"]) == ("knowledge-graph", "Ada works on e2")
    assert (found.line.get("valid_from"), found.line["valid_to"]) == (None, "2026-02-01T00:00:00.000000Z")


def test_a_folder_of_chroma_alone_is_no_palace(tmp_path: Path) -> None:
    assert not is_mempalace(Origin(FIXTURES / "chroma"))
    assert not is_mempalace(Origin(tmp_path))


def test_other_collections_of_a_palace_in_chroma_are_made_of_the_drawers(tmp_path: Path) -> None:
    script = (
        "UPDATE collections SET name = 'mempalace_drawers' WHERE name = 'notes';"
        "UPDATE collections SET name = 'mempalace_closets' WHERE name = 'big'"
    )
    folder = chroma(tmp_path / "palace", script)
    assert is_mempalace(Origin(folder))
    assert [item.line["id"] for item in items(read_mempalace, folder)] == ["a", "b"]
