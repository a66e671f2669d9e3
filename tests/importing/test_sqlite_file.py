"""SQLite files of strangers: nothing of them runs, nothing beside them is changed, no link is followed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.importing.sources import FIXTURES
from tests.rollback_journals import lay_beside

from keepstone.agent import Agent
from keepstone.importing import SourceError, import_memory
from keepstone.importing.sqlite_file import foreign_database, is_sqlite

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS point FROM n"


def database(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute(script)
    return path


def test_a_rollback_journal_is_refused_and_deletes_nothing(agent: Agent, tmp_path: Path) -> None:
    live = tmp_path / "live" / "agents.db"
    live.parent.mkdir()
    shutil.copy(FIXTURES / "agents.db", live)
    named = tmp_path / "named"
    named.write_text("not ours")
    journal = lay_beside(live, named)
    with pytest.raises(SourceError, match="unfinished transaction"):
        import_memory(agent, "openai-agents", live)
    assert (named.read_text(), journal.exists(), agent.sessions()) == ("not ours", True, [])


def test_a_finished_rollback_journal_is_ignored(agent: Agent, tmp_path: Path) -> None:
    live = shutil.copy(FIXTURES / "agents.db", tmp_path / "agents.db")
    (tmp_path / "agents.db-journal").write_bytes(bytes(512))
    assert import_memory(agent, "openai-agents", live).imported == 5


def test_a_link_beside_a_database_is_not_followed(agent: Agent, tmp_path: Path) -> None:
    live = shutil.copy(FIXTURES / "agents.db", tmp_path / "agents.db")
    (tmp_path / "agents.db-wal").symlink_to(FIXTURES / "agents.db")
    with pytest.raises(SourceError, match=r"agents\.db-wal is a link"):
        import_memory(agent, "openai-agents", live)


@pytest.mark.parametrize(
    "schema",
    [
        "CREATE VIRTUAL TABLE t USING fts5(x, y)",
        f"CREATE VIEW t AS {ENDLESS}",
    ],
)
def test_only_tables_of_stored_values_are_read(tmp_path: Path, schema: str) -> None:
    path = database(tmp_path / "x.db", f"{schema}; CREATE TABLE plain(x)")
    with foreign_database(path) as found:
        assert "t" not in found.tables
        assert "plain" in found.tables
        with pytest.raises(SourceError):
            list(found.rows("SELECT * FROM t"))


def test_a_computed_column_is_not_read(tmp_path: Path) -> None:
    table = "CREATE TABLE t(x, y AS (hex(zeroblob(30000000)))); INSERT INTO t VALUES(1)"
    with foreign_database(database(tmp_path / "x.db", table)) as found:
        assert list(found.records("t")) == [{"x": 1}]
        with pytest.raises(SourceError, match=r"t\.y is prohibited"):
            list(found.rows("SELECT y FROM t"))


def test_a_query_without_end_is_a_named_failure(tmp_path: Path) -> None:
    with (
        foreign_database(database(tmp_path / "x.db", "CREATE TABLE t(x)")) as found,
        pytest.raises(SourceError, match=r"x\.db takes more work than a file of its size should"),
    ):
        for _ in found.rows(ENDLESS):
            pass


def digests(folder: Path) -> dict[str, str]:
    files = [folder] if folder.is_file() else [path for path in folder.rglob("*") if path.is_file()]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.parametrize("name", ["agents.db", "store.db", "checkpoints.db", "chroma", "mem0"])
def test_a_source_and_its_folder_are_left_as_they_were(agent: Agent, tmp_path: Path, name: str) -> None:
    source = tmp_path / "source" / name
    source.parent.mkdir()
    (shutil.copytree if (FIXTURES / name).is_dir() else shutil.copy)(FIXTURES / name, source)
    before = digests(source.parent)
    import_memory(agent, "auto", source)
    assert digests(source.parent) == before


def test_what_is_still_in_a_journal_is_read_from_a_copy(agent: Agent, tmp_path: Path) -> None:
    live = tmp_path / "live" / "agents.db"
    live.parent.mkdir()
    shutil.copy(FIXTURES / "agents.db", live)
    connection = apsw.Connection(str(live))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0")
    connection.execute(
        "INSERT INTO agent_messages (session_id, message_data) VALUES ('user-7', ?)",
        (json.dumps({"role": "user", "content": "New"}),),
    )
    before = {path.name for path in live.parent.iterdir()}
    assert import_memory(agent, "openai-agents", live).imported == 6
    assert {path.name for path in live.parent.iterdir()} == before
    connection.close()


def test_a_damaged_database_is_refused(agent: Agent, tmp_path: Path) -> None:
    raw = bytearray((FIXTURES / "agents.db").read_bytes())
    raw[4096:] = bytes(len(raw) - 4096)
    (tmp_path / "agents.db").write_bytes(raw)
    with pytest.raises(SourceError):
        import_memory(agent, "openai-agents", tmp_path / "agents.db")
    assert agent.sessions() == []


def test_a_name_with_quotation_marks_is_a_name(tmp_path: Path) -> None:
    path = database(tmp_path / "x.db", 'CREATE TABLE "a""b"("c""d"); INSERT INTO "a""b" VALUES(1)')
    with foreign_database(path) as found:
        assert found.columns('a"b') == ['c"d']
        assert list(found.records('a"b')) == [{'c"d': 1}]


@pytest.mark.parametrize("name", ["a?mode=rwc&x#y.db", "a%2Fb.db", "ä b.db"])
def test_a_file_name_is_no_part_of_an_address(tmp_path: Path, name: str) -> None:
    with foreign_database(database(tmp_path / name, "CREATE TABLE t(x)")) as found:
        assert (found.name, [*found.tables]) == (name, ["t"])
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("statement", ["INSERT INTO t VALUES(1)", "DROP TABLE t", "PRAGMA user_version = 7"])
def test_nothing_can_be_written(tmp_path: Path, statement: str) -> None:
    path = database(tmp_path / "x.db", "CREATE TABLE t(x)")
    before = path.read_bytes()
    with foreign_database(path) as found, contextlib.suppress(SourceError):
        list(found.rows(statement))
    assert path.read_bytes() == before


def test_nothing_of_a_copy_with_a_journal_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(apsw.Connection(str(path))) as live:
        live.execute("PRAGMA journal_mode = WAL").fetchall()
        live.execute("CREATE TABLE t(x)")
        with foreign_database(path) as found:
            assert found.tables == {"t"}
            with pytest.raises(SourceError, match="readonly|read-only|attempt to write"):
                list(found.rows("INSERT INTO t VALUES(1)"))


def test_a_value_of_more_than_64_mebibytes_is_refused(tmp_path: Path) -> None:
    table = f"CREATE TABLE t(x); INSERT INTO t VALUES(zeroblob({(64 << 20) + 1}))"
    with (
        foreign_database(database(tmp_path / "x.db", table)) as found,
        pytest.raises(SourceError, match="too big"),
    ):
        list(found.records("t"))


@pytest.mark.parametrize("raw", [b"", b"SQLite format 3", b"text"])
def test_another_file_is_not_a_database(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.db").write_bytes(raw)
    assert not is_sqlite(tmp_path / "x.db")
    with (
        pytest.raises(SourceError, match=r"x\.db is not an SQLite database"),
        foreign_database(tmp_path / "x.db"),
    ):
        pass


def test_a_missing_file_is_not_a_database(tmp_path: Path) -> None:
    assert not is_sqlite(tmp_path / "x.db")
