"""A home moves from files to PostgreSQL and back, line by line."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import keepstone
from keepstone.errors import StoreError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.file_store import FileStore
from keepstone.store.files.purge_digests import gone_name
from keepstone.store.postgres.postgres_store import PostgresStore
from keepstone.store.removal_marks import digest
from keepstone.store.transfer import RawLine, move


def _fill(folder: Path) -> None:
    with keepstone.open(folder) as home:
        session = home.agent("a").session("s\0 1")
        session.add_many([{"type": "note", "text": f"walnut {at}\0", "id": str(at)} for at in range(5)])
        session.update("1", text="pecan")
        session.delete("2")
        session.compact()
        session.update("1", pinned=True)
        session.add("note", text="near", id="v", embedding=[1, 0])
        home.agent("a").files.write("plans/x.md", "Größe\r\n")
        home.agent("b").session("empty").add("note", text="gone", id="x")
        home.agent("b").session("empty").clear()
    with (folder / "agents/b/memory/sessions/raw.ndjson").open("wb") as log:
        log.write(b'{"role":"user","content":"Hi"}\n{damaged\n{"role":"user","content":"Hi"}\n')


def test_suggestions_move_and_stay_decided(tmp_path: Path, dsn: str) -> None:
    with keepstone.open(tmp_path / "from") as home:
        entry = home.agent("a").add("Use OAuth")
        made = home.agent("a").suggest("pin", [entry.id], why="a reason")
        home.agent("a").accept(made.id, by="Ada")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database), closing(FileStore(tmp_path / "back", LAYOUTS["default"])) as back:
        move(files, database)
        move(database, back)
        move(database, back, merge=True)
        assert back.suggestion_lines("a") == files.suggestion_lines("a")
    with keepstone.open(tmp_path / "back") as home:
        assert home.agent("a").undo(made.id).state == "undone"


def _stores(folder: Path, dsn: str) -> tuple[FileStore, PostgresStore]:
    return FileStore(folder, LAYOUTS["default"]), PostgresStore(dsn)


def _told(store: FileStore | PostgresStore) -> dict[tuple[str, str], tuple[object, ...]]:
    return {
        (agent, info.id): (
            [(line.archived, line.explicit()) for line in store.raw_lines(agent, info.id)],
            store.entries(agent, info.id, None, None),
            [store.history(agent, entry_id, info.id) for entry_id in "01234v"],
        )
        for agent in store.agents()
        for info in store.sessions(agent)
    }


def test_a_round_trip_gives_every_line_entry_and_version_back(tmp_path: Path, dsn: str) -> None:
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database), closing(FileStore(tmp_path / "back", LAYOUTS["default"])) as back:
        moved = move(files, database)
        assert (moved.agents, moved.sessions, moved.files, moved.skipped) == (2, 3, 1, [])
        move(database, back)
        assert _told(files) == _told(database) == _told(back)
        assert back.files("a").read("plans/x.md") == "Größe\r\n"
        log = "agents/a/memory/sessions/s%00%201.ndjson"
        assert (tmp_path / "from" / log).read_bytes() == (tmp_path / "back" / log).read_bytes()


@pytest.mark.parametrize("column", ["line", "id", "ts", "archived"])
def test_a_line_that_arrives_changed_is_an_error(tmp_path: Path, dsn: str, column: str) -> None:
    changed = {
        "line": "NEW.line || ' '",
        "id": "NEW.id || 'x'",
        "ts": "NEW.ts + interval '1 s'",
        "archived": "true",
    }
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database):
        with psycopg.connect(dsn) as connection:
            connection.execute(
                "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
                f"$$BEGIN NEW.{column} := {changed[column]}; RETURN NEW; END$$".encode()
            )
            connection.execute(
                b"CREATE TRIGGER spoil BEFORE INSERT ON lines FOR EACH ROW "
                b"WHEN (NEW.session = 'raw' AND NEW.seq = 3) EXECUTE FUNCTION spoil()"
            )
        with pytest.raises(StoreError, match="arrived damaged"):
            move(files, database)


def test_a_target_with_entries_is_refused_without_merge(tmp_path: Path, dsn: str) -> None:
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database):
        database.append(
            "a", "other", [{"id": "x", "ts": "2026-01-11T14:31:00Z", "type": "note", "text": "x"}]
        )
        with pytest.raises(StoreError, match="--merge"):
            move(files, database)
        assert [info.id for info in database.sessions("a")] == ["other"]
        move(files, database, merge=True)
        assert database.entry_counts("a") == {"other": 1, "s\0 1": 5}


def test_a_move_goes_on_where_it_was_cut_short(
    tmp_path: Path, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    take = PostgresStore.take_raw_lines

    def cut(store: PostgresStore, agent: str, session: str, lines: Sequence[RawLine]) -> None:
        if session == "raw":  # The last one.
            raise StoreError("the database is away")
        take(store, agent, session, lines)

    with closing(files), closing(database):
        with monkeypatch.context() as patch:
            patch.setattr(PostgresStore, "take_raw_lines", cut)
            with pytest.raises(StoreError, match="away"):
                move(files, database)
        assert move(files, database, merge=True).unchanged == 2
        assert _told(files) == _told(database)


def test_what_was_purged_does_not_come_back_after_a_move(tmp_path: Path, dsn: str) -> None:
    note = {"type": "note", "text": "walnut"}
    _fill(tmp_path / "from")
    with keepstone.open(tmp_path / "from") as home:
        (tmp_path / "from/agents/a/memory/sessions/.purged.ndjson").touch()
        home.agent("a").session("s\0 1").purge("3")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database), closing(FileStore(tmp_path / "back", LAYOUTS["default"])) as back:
        move(files, database)
        assert "3" in database.gone("a", "s\0 1")
        database.purge("a", "s\0 1", ["4"])
        database.append("a", "later", [{"id": "5", "ts": "2026-01-11T14:31:00Z", **note}])
        database.clear("a", "later")
        database.append("b", "free", [{"id": "6", "ts": "2026-01-11T14:31:00Z", **note}])
        database.purge("b", "free", ["6"])
        move(database, back)
        gone = [one in back.gone("a", "s\0 1") for one in "1345"]
        assert (gone, "5" in back.gone("a", "later")) == ([False, True, True, False], True)
        assert "6" in back.gone("b", "free")


def test_a_merge_carries_out_the_purges_of_both_homes(tmp_path: Path, dsn: str) -> None:
    _fill(tmp_path / "from")
    with keepstone.open(tmp_path / "from") as home:
        (tmp_path / "from/agents/a/memory/sessions/.purged.ndjson").touch()
        files, database = _stores(tmp_path / "from", dsn)
        with closing(files), closing(database):
            move(files, database)
            home.agent("a").session("s\0 1").purge("3")
            database.purge("a", "s\0 1", ["4"])
            move(files, database, merge=True)
            assert [entry.id for entry in database.entries("a", "s\0 1", None, None)] == ["0", "1", "v"]


def test_agents_that_were_purged_whole_stay_known_after_a_move(tmp_path: Path, dsn: str) -> None:
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database), closing(FileStore(tmp_path / "back", LAYOUTS["default"])) as back:
        files.purge_agent("b")
        move(files, database)
        database.purge_agent("a")
        move(database, back)
        assert back.agents() == []
        assert set(back.vanished_agents()) == {gone_name("a"), gone_name("b")}
        assert back.purged("b").vanished == files.purged("b").vanished != {}
        assert digest("s\0 1", "v") in back.purged("a").vanished


def test_vectors_that_were_made_move_along(tmp_path: Path, dsn: str) -> None:
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database):
        entries = files.entries("a", "s\0 1", None, None)
        vector = entries[-1].embedding
        assert vector is not None
        files.keep_vectors("a", "made", [(entries[0], vector)])
        move(files, database)
        assert database.spaces("a") == files.spaces("a")
        assert list(database.vectors("a", "s\0 1", "made", ["0", "1"])) == ["0"]


def test_marks_of_dropped_sessions_titles_and_language_move_there_and_back(tmp_path: Path, dsn: str) -> None:
    with keepstone.open(tmp_path / "from", language="de") as home:
        for name in ("s\0 1", "again", "again"):
            home.agent("a").session(name).add("note", text="Häuser")
            home.agent("a").session(name).drop()
        home.agent("b").session("plan").add("note", text="Häuser")
        home.agent("b").session("plan").set_title("Am See")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database), closing(FileStore(tmp_path / "back", LAYOUTS["default"])) as back:
        move(files, database)
        move(database, back)
        marks = files.dropped_marks("a")
        assert sorted(name for name, _ in marks) == ["again", "again", "s\0 1"]
        assert marks == database.dropped_marks("a") == back.dropped_marks("a")
        assert back.dropped("a") == ["again", "s\0 1"]
        assert [one.title for one in back.summaries("b")] == ["Am See"]
        assert database.language == back.language == "de"
    with keepstone.open(dsn) as home:
        assert len(home.agent("b").recall("Haus")) == 1


def test_a_home_with_agents_keeps_its_language_in_a_merge(tmp_path: Path, dsn: str) -> None:
    with keepstone.open(tmp_path / "from", language="de") as home:
        home.agent("a").session("s").add("note", text="Häuser")
    with keepstone.open(dsn) as home:
        home.agent("b").session("s").add("note", text="houses")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database):
        move(files, database, merge=True)
        assert database.language == "en"


@pytest.mark.parametrize(
    ("table", "said"), [("dropped", "dropped sessions"), ("purged", "digests"), ("files", "arrived damaged")]
)
def test_marks_and_files_that_do_not_arrive_are_an_error(
    tmp_path: Path, dsn: str, table: str, said: str
) -> None:
    _fill(tmp_path / "from")
    with keepstone.open(tmp_path / "from") as home:
        (tmp_path / "from/agents/a/memory/sessions/.purged.ndjson").touch()
        home.agent("a").session("s\0 1").purge("3")
        home.agent("b").session("empty").drop()
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database):
        _spoil(dsn, table, "NULL" if table != "files" else "NEW")
        with pytest.raises(StoreError, match=said):
            move(files, database)


def _spoil(dsn: str, table: str, kept: str) -> None:
    change = "NEW.content := 'other'; " if kept == "NEW" else ""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$BEGIN {change}RETURN {kept}; END$$".encode()
        )
        connection.execute(
            f"CREATE TRIGGER spoil BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION spoil()".encode()
        )


def test_a_merge_names_files_that_the_target_has_otherwise(tmp_path: Path, dsn: str) -> None:
    _fill(tmp_path / "from")
    files, database = _stores(tmp_path / "from", dsn)
    with closing(files), closing(database):
        database.files("a").write("plans/x.md", "theirs")
        moved = move(files, database, merge=True)
        assert (moved.differing, moved.skipped, moved.files) == (["a/plans/x.md"], [], 0)
        assert database.files("a").read("plans/x.md") == "theirs"
