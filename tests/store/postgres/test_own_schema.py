"""Two homes in one database never meet: each is the first schema of its ``search_path``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql
from tests.postgres_server import PASSWORD

import keepstone
from keepstone.errors import StoreError
from keepstone.store.postgres import administration, own_schema, vector_rows
from keepstone.store.postgres.postgres_store import PostgresStore

_SECOND = "Größe, zwei"


@pytest.fixture
def second(dsn: str) -> Iterator[str]:
    """The URL of an empty schema whose next schema is that of the first home, which has an entry."""
    with keepstone.open(dsn, embedder="none") as home:
        home.agent("a").session("s").add("note", text="of the first", id="one")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(_SECOND)))
        [(first,)] = connection.execute("SELECT current_schema()").fetchall()
    yield _with_path(dsn, f'"{_SECOND}",{first},public')
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(_SECOND)))


def _with_path(dsn: str, path: str) -> str:
    value = f"-csearch_path={path}".replace(" ", "\\ ")
    return f"{dsn.partition('?')[0]}?options={quote(value)}"


def test_a_second_schema_is_a_home_of_its_own(dsn: str, second: str) -> None:
    assert administration.init(second, None) == administration.status(second)["schema"]
    with keepstone.open(second, embedder="none") as home:
        assert home.agents() == []
        home.agent("a").session("s").add("note", text="of the second", id="two")
    with keepstone.open(dsn, embedder="none") as home:
        assert [entry.id for entry in home.agent("a").entries()] == ["one"]
    assert [administration.status(one)["entries"] for one in (dsn, second)] == [1, 1]


def test_status_does_not_show_the_home_of_another_schema(second: str) -> None:
    with pytest.raises(StoreError, match="keepstone postgres init"):
        administration.status(second)


def test_scrub_leaves_the_tables_of_another_home(dsn: str, second: str) -> None:
    administration.init(second, None)
    with psycopg.connect(dsn, autocommit=True) as connection:
        before = connection.execute("SELECT pg_relation_filepath('lines')").fetchall()
        administration.scrub(second)
        assert connection.execute("SELECT pg_relation_filepath('lines')").fetchall() == before


def test_a_watch_hears_nothing_of_another_home(dsn: str, second: str) -> None:
    with closing(PostgresStore(second)) as other, closing(PostgresStore(dsn)) as store:
        other.create("a", "secret")
        poll, heard = store.changes(None, None), other.changes(None, None)
        assert poll() == heard() == []
        other.purge_agent("a")
        assert [change.session for change in heard()] == ["secret"]
        assert poll() == []


def test_a_graph_of_another_home_does_not_count(
    dsn: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_rows, "HNSW_FROM", 1)
    for url in (dsn, second):
        with keepstone.open(url, embedder="none") as home:
            home.agent("a").session("v").add("note", text="near", embedding=[1, 0])
    with keepstone.open(dsn, embedder="none") as home:
        assert [one.level for one in home.doctor(fix=True) if one.subject == "graph"] == ["ok"]
    with keepstone.open(second, embedder="none") as home:
        assert [one.level for one in home.doctor() if one.subject == "graph"] == ["warning"]


def test_a_locked_file_does_not_lock_that_of_another_home(dsn: str, second: str) -> None:
    with closing(PostgresStore(second)) as other, closing(PostgresStore(dsn)) as store:

        def write(text: bytes | None) -> bytes:
            other.files("a").write("plan.md", "of the second")
            return b"of the first" + (text or b"")

        store.files("a")._change("plan.md", None, write)  # noqa: SLF001  The lock is held while it runs.
        assert store.files("a").read("plan.md") == "of the first"


def test_a_missing_first_schema_is_refused_by_name(dsn: str, second: str) -> None:
    missing = second.replace(quote(_SECOND.replace(" ", "\\ ")), "kb_missing").replace("%22", "")
    for call in (keepstone.open, administration.status, administration.scrub):
        with pytest.raises(StoreError, match='CREATE SCHEMA "kb_missing"'):
            call(missing)
    with keepstone.open(dsn) as home:
        assert home.agents() == ["a"]


def test_a_schema_that_the_role_may_not_use_is_refused(second: str) -> None:
    with psycopg.connect(second, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS keepstone_guest")
        connection.execute("CREATE ROLE keepstone_guest LOGIN PASSWORD 'guest-word'")
    try:
        with pytest.raises(StoreError, match='GRANT USAGE ON SCHEMA "Größe, zwei" TO "keepstone_guest"'):
            keepstone.open(second.replace(f"postgres:{PASSWORD}", "keepstone_guest:guest-word"))
    finally:
        with psycopg.connect(second, autocommit=True) as connection:
            connection.execute("DROP ROLE keepstone_guest")


def test_a_schema_that_is_dropped_later_is_refused(
    dsn: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.store.postgres.connecting.POOL_SECONDS", 0.5)
    with closing(PostgresStore(second)) as store:
        store.close()  # Its next connection is a new one.
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO kb_other").format(sql.Identifier(_SECOND)))
        try:
            with pytest.raises(StoreError, match='CREATE SCHEMA "Größe, zwei"'):
                store.create("a", "s2")
        finally:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute(
                    sql.SQL("ALTER SCHEMA kb_other RENAME TO {}").format(sql.Identifier(_SECOND))
                )


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ('"$user", public', "public"),
        ('KB, "$user"', "kb"),
        ('"$user", "K""B, x",public', 'K"B, x'),
        ("", None),
    ],
)
def test_a_home_is_the_first_schema_of_the_path(path: str, first: str | None) -> None:
    assert own_schema._first(path, "public", "ada") == first  # noqa: SLF001
    assert own_schema._first(path, "ada", "ada") == ("ada" if path.startswith('"$') else first)  # noqa: SLF001


def test_a_path_without_schemas_is_refused(dsn: str) -> None:
    with pytest.raises(StoreError, match="search_path names no schema"):
        keepstone.open(_with_path(dsn, ""))
