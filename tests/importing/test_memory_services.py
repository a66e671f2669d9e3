"""claude-mem and Hindsight: what each writes, imported with times and sources."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import links, written

import keepstone
from keepstone.agent import Agent
from keepstone.importing import ImportResult, import_memory
from keepstone.model import Entry, Record

CLAUDE_MEM = """
CREATE TABLE sdk_sessions (id INTEGER PRIMARY KEY, content_session_id TEXT, memory_session_id TEXT,
    project TEXT);
CREATE TABLE user_prompts (id INTEGER PRIMARY KEY, content_session_id TEXT, prompt_number INTEGER,
    prompt_text TEXT, created_at TEXT, created_at_epoch INTEGER);
CREATE TABLE observations (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, text TEXT, type TEXT,
    title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_read TEXT,
    files_modified TEXT, prompt_number INTEGER, created_at TEXT, created_at_epoch INTEGER);
CREATE TABLE session_summaries (id INTEGER PRIMARY KEY, memory_session_id TEXT, project TEXT, request TEXT,
    learned TEXT, next_steps TEXT, files_read TEXT, created_at TEXT, created_at_epoch INTEGER);
INSERT INTO sdk_sessions VALUES (1, 'chat-1', 'memory-1', 'ferry');
INSERT INTO user_prompts VALUES (7, 'chat-1', 1, 'Fix the timetable',
    '2026-01-11T10:00:00.000Z', 1768125600000);
INSERT INTO observations VALUES (3, 'memory-1', 'ferry', NULL, 'bugfix', 'Timetable off by one', NULL,
    '["Noon is 12:00"]', 'The parser counted from zero.', '["gotcha"]', '["a.py"]', '[]', 1,
    '2026-01-11T10:05:00.000Z', 1768125900000);
INSERT INTO observations VALUES (4, 'memory-1', 'ferry', NULL, 'change', NULL, NULL, '[]', NULL, '[]', '[]',
    '[]', 1, '2026-01-11T10:06:00.000Z', 1768125960000);
INSERT INTO session_summaries VALUES (2, 'memory-1', 'ferry', 'Fix it', 'Noon is 12:00', 'Test it',
    '["a.py"]',
    '2026-01-11T11:00:00.000Z', 1768129200000);
"""


def auto(agent: Agent, path: Path, source: str) -> ImportResult:
    """Import what must be recognised as this source, and nothing when it is imported again."""
    result = import_memory(agent, "auto", path)
    assert result.source == source
    again = import_memory(agent, source, path)
    assert (again.imported, again.unchanged) == (0, result.imported)
    return result


def entry(agent: Agent, name: str) -> Entry:
    return agent.get(name)


@pytest.fixture
def claude_mem(tmp_path: Path) -> Path:
    with apsw.Connection(str(tmp_path / "claude-mem.db")) as database:
        database.execute(CLAUDE_MEM)
    return tmp_path / "claude-mem.db"


def test_claude_mem_keeps_sessions_facts_and_prompts(agent: Agent, claude_mem: Path) -> None:
    result = auto(agent, claude_mem, "claude-mem")
    assert (result.imported, [one.place for one in result.failed]) == (3, ["claude-mem.db: observations 4"])
    found = entry(agent, "observation-3")
    assert (found.session, found.type, found.tags) == ("chat-1", "bugfix", ("gotcha",))
    assert found.text == "Timetable off by one\nThe parser counted from zero.\n- Noon is 12:00"
    assert found.data["files_read"] == ["a.py"]
    assert found.ts.isoformat() == "2026-01-11T10:05:00+00:00"
    assert links(found) == [("derived_from", "prompt-7")]
    assert entry(agent, "prompt-7").text == "user: Fix the timetable"
    assert entry(agent, "summary-2").text == "Request: Fix it\nLearned: Noon is 12:00\nNext steps: Test it"


def test_an_export_of_claude_mem_is_the_same_memory(agent: Agent, claude_mem: Path, tmp_path: Path) -> None:
    with apsw.Connection(str(claude_mem)) as database:

        def rows(table: str) -> list[Record]:
            cursor = database.execute(f"SELECT * FROM {table}")  # noqa: S608
            names = [one[0] for one in cursor.get_description()]
            return [dict(zip(names, row, strict=True)) for row in cursor]

        exported = {
            "exportedAt": "2026-01-12T00:00:00Z",
            "exportedAtEpoch": 1768176000000,
            "query": "",
            "observations": rows("observations"),
            "sessions": rows("sdk_sessions"),
            "summaries": rows("session_summaries"),
            "prompts": rows("user_prompts"),
        }
    path = written(tmp_path / "export.json", exported)
    assert auto(agent, path, "claude-mem").imported == 3
    assert import_memory(agent, "claude-mem", claude_mem).unchanged == 3


def test_lists_as_ids_in_an_export_of_claude_mem_are_ignored(agent: Agent, tmp_path: Path) -> None:
    exported = {
        "exportedAtEpoch": 1768176000000,
        "query": "",
        "sessions": [{"memory_session_id": ["m"], "content_session_id": "chat"}],
        "prompts": [{"id": 1, "prompt_text": "Fix it", "prompt_number": [1], "session_db_id": {}}],
        "observations": [{"id": 1, "title": "Fixed", "memory_session_id": ["m"], "prompt_number": {}}],
    }
    result = auto(agent, written(tmp_path / "export.json", exported), "claude-mem")
    assert (result.imported, result.failed) == (2, [])


def test_each_project_of_claude_mem_can_have_an_agent(tmp_path: Path, claude_mem: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        import_memory(home.agent("a"), "claude-mem", claude_mem, agent_from="namespace")
        assert home.agent("ferry").count() == 3


def test_an_archive_of_hindsight_keeps_facts_with_their_documents(agent: Agent, tmp_path: Path) -> None:
    fact = {
        "fact_type": "world",
        "mentioned_at": "2026-01-01T00:00:00Z",
        "entities": ["Ada"],
        "tags": ["sea"],
    }
    caused = {"causal_relations": [{"relation_type": "caused_by", "target_fact_index": 0}]}
    facts = [{**fact, "text": "Ada sails"}, {**fact, "text": "Ada is tanned", **caused}, {"text": ""}]
    document = {
        "id": "d/1",
        "original_text": "A long talk",
        "created_at": "2026-01-02T00:00:00Z",
        "facts": facts,
    }
    sources = [{"document_id": "d/1", "fact_index": 0}]
    with zipfile.ZipFile(tmp_path / "bank.zip", "w") as archive:
        archive.writestr("manifest.json", json.dumps({"schema_version": 1, "source_bank_id": "ada"}))
        archive.writestr("documents/000000.json", json.dumps(document))
        observations = [{"text": "Ada is a sailor", "sources": sources, "proof_count": 2}]
        archive.writestr("observations.json", json.dumps(observations))
    result = auto(agent, tmp_path / "bank.zip", "hindsight")
    assert (result.imported, len(result.failed)) == (4, 1)
    found = entry(agent, "d/1#1")
    assert (found.session, found.type, found.tags) == ("ada", "world", ("sea",))
    assert links(found) == [("derived_from", "d/1"), ("caused_by", "d/1#0")]
    (observed,) = agent.entries(types=["observation"])
    assert links(observed) == [("derived_from", "d/1#0")]


def test_facts_of_hindsight_keep_their_ids_when_one_before_them_goes(agent: Agent, tmp_path: Path) -> None:
    def fact(name: str, *causes: int) -> Record:
        relations = [{"relation_type": "caused_by", "target_fact_index": cause} for cause in causes]
        when = "2026-01-01T00:00:00Z"
        return {"text": name, "source_id": name, "mentioned_at": when, "causal_relations": relations}

    first = [fact("a"), fact("b"), fact("c", 1)]
    for number, facts in enumerate((first, [fact("b"), fact("c", 0)])):
        folder = tmp_path / f"bank{number}"
        (folder / "documents").mkdir(parents=True)
        written(folder / "manifest.json", {"schema_version": 1, "source_bank_id": "ada"})
        written(folder / "documents" / "000000.json", {"id": "d", "original_text": "A talk", "facts": facts})
        sources = [{"document_id": "d", "fact_index": 1 - number}]
        observations = [{"text": "Seen", "source_id": "o", "sources": sources}]
        written(folder / "observations.json", observations)
    assert import_memory(agent, "auto", tmp_path / "bank0").imported == 5
    assert import_memory(agent, "auto", tmp_path / "bank1").unchanged == 4
    assert links(entry(agent, "o")) == [("derived_from", "b")]
    assert links(entry(agent, "c")) == [("derived_from", "d"), ("caused_by", "b")]


def test_files_of_other_programs_are_not_taken_for_these(agent: Agent, tmp_path: Path) -> None:
    folder = tmp_path / "vault"
    (folder / ".obsidian").mkdir(parents=True)
    (folder / "app.json").write_text("{broken")
    (folder / "note.md").write_text("---\ntags: [a]\n---\nA note")
    assert import_memory(agent, "auto", folder).source == "obsidian"
