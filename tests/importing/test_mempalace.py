"""Palaces of MemPalace: drawers and facts."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import apsw
from tests.importing.sources import auto, entries

from keepstone.agent import Agent


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
