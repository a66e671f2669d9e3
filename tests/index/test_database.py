"""The index may be deleted or damaged in any way: the answers stay the same."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import numpy as np
import pytest
from tests.recall.concepts import Concepts
from tests.rollback_journals import lay_beside

import keepstone
from keepstone import Home
from keepstone.index.database import SCHEMA, Database
from keepstone.index.row_text import with_vector

QUERIES = ["walnut", "pecan 7", "hazel", "東京", "nothing of it"]


def fill(home: Home) -> None:
    """Two sessions with puts, patches, deletions and lines that another program wrote."""
    for name in ("s1", "s2"):
        session = home.agent("a").session(name)
        texts = [f"walnut {n}" if n % 2 else f"pecan {n} 東京都" for n in range(20)]
        session.add_many(
            [{"type": "event", "id": f"{name}-{n}", "content": text} for n, text in enumerate(texts)]
        )
        session.update(f"{name}-3", data={"content": "hazel"})
        session.update(f"{name}-4", tags=["x"])
        session.delete(f"{name}-5")
    with (home.root / "agents/a/memory/sessions/s1.ndjson").open("a") as log:
        log.write('{"content":"walnut of another program"}\nno line at all\n' + '{"content":"same"}\n' * 2)
    home.sync()


def answers(home: Home) -> list[object]:
    """What every way of reading says about the home."""
    agent = home.agent("a")
    found = [
        sorted((hit.entry.session, hit.entry.id) for hit in agent.recall(query, limit=99))
        for query in QUERIES
    ]
    newest = [agent.session(name).entries(7) for name in ("s1", "s2", "none")]
    return [
        found,
        newest,
        agent.recall("walnut", tags=["x"]),
        agent.get("s1-3"),
        agent.session("s2").entries(),
    ]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed home."""
    root = tmp_path_factory.mktemp("original")
    with keepstone.open(root, durability="os") as home:
        fill(home)
        answers(home)
    return root


@pytest.fixture(scope="module")
def expected(original: Path) -> list[object]:
    with keepstone.open(original) as home:
        return answers(home)


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    """A copy of the home, to damage."""
    return Path(shutil.copytree(original, tmp_path / "home"))


def index_of(root: Path) -> Path:
    return next(root.glob(".index/a/v*/index.db"))


def delete(path: Path) -> None:
    path.unlink()


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(7).randbytes(path.stat().st_size))


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def link(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.parent / "nowhere")


def another_database(path: Path) -> None:
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE meta(key, value); INSERT INTO meta VALUES('tokenizer', 'none')")
    connection.close()


DAMAGES = [delete, truncate, empty, garbage, zeros, folder, link, another_database]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_index_is_rebuilt_at_the_next_open(
    root: Path, expected: list[object], damage: Callable[[Path], None]
) -> None:
    damage(index_of(root))
    for _ in range(2):
        with keepstone.open(root) as home:
            assert answers(home) == expected


@pytest.mark.parametrize("damage", [empty, garbage, folder])
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_damaged_journal_of_a_killed_process_loses_nothing(
    root: Path, expected: list[object], damage: Callable[[Path], None], suffix: str
) -> None:
    left = Path(f"{index_of(root)}{suffix}")
    left.write_bytes(bytes(40_000))
    damage(left)
    with keepstone.open(root) as home:
        assert answers(home) == expected


def test_a_rollback_journal_beside_the_index_is_removed_unread(
    root: Path, expected: list[object], tmp_path: Path
) -> None:
    named = tmp_path / "named"
    named.write_text("not ours")
    with closing(apsw.Connection(str(index_of(root)))) as database:
        database.pragma("user_version", 77)
    journal = lay_beside(index_of(root), named)
    with keepstone.open(root) as home:
        assert answers(home) == expected
    assert (named.read_text(), journal.exists()) == ("not ours", False)
    with closing(apsw.Connection(str(index_of(root)))) as database:
        assert database.pragma("user_version") == 77


def test_an_index_deleted_while_the_home_is_open_is_made_again(root: Path, expected: list[object]) -> None:
    with keepstone.open(root) as home:
        assert answers(home) == expected
        shutil.rmtree(root / ".index")
        home.sync()
        assert answers(home) == expected
        assert index_of(root).stat().st_size > 0


def test_writes_after_the_index_was_deleted_are_found(root: Path) -> None:
    with keepstone.open(root) as home:
        home.agent("a").recall("walnut")
        shutil.rmtree(root / ".index")
        home.agent("a").session("s1").add("note", {"content": "almond"}, id="new")
        home.agent("a").session("s1").update("s1-3", data={"content": "chestnut"})
        home.sync()
        assert [hit.entry.id for hit in home.agent("a").recall("almond", limit=1)] == ["new"]
        assert [hit.entry.id for hit in home.agent("a").recall("chestnut", limit=1)] == ["s1-3"]


def test_pages_that_break_under_an_open_home_are_mended(root: Path, expected: list[object]) -> None:
    with keepstone.open(root) as home:
        home.agent("a").sessions()
        path = index_of(root)
        data = bytearray(path.read_bytes())
        data[4096:] = bytes(len(data) - 4096)
        path.write_bytes(data)
        assert answers(home) == expected


def test_a_damaged_schema_in_the_index_is_rebuilt(root: Path, expected: list[object]) -> None:
    connection = apsw.Connection(str(index_of(root)))
    connection.execute("PRAGMA writable_schema=1")
    connection.execute("UPDATE sqlite_schema SET sql=replace(sql, 'fts5', 'gts5')")
    connection.close()
    with keepstone.open(root) as home:
        assert answers(home) == expected


@pytest.mark.parametrize("seed", range(20))
def test_flipped_bits_cause_no_crash_and_no_wrong_entry(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(index_of(root).read_bytes())
    for _ in range(10 * (seed + 1)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    index_of(root).write_bytes(data)
    with keepstone.open(root) as home:
        agent = home.agent("a")
        true = {(name, entry.id): entry for name in ("s1", "s2") for entry in agent.session(name).entries()}
        given = [hit.entry for hit in agent.recall("walnut pecan hazel", limit=99)]
        given += agent.session("s1").entries(5) + agent.session("s2").entries(5)
        assert all(true[entry.session, entry.id] == entry for entry in given)
        assert agent.get("s1-3") == true["s1", "s1-3"]


def test_an_index_of_another_version_lies_beside_untouched(root: Path, expected: list[object]) -> None:
    other = root / ".index/a/v0/index.db"
    other.parent.mkdir()
    other.write_bytes(b"of another version")
    with keepstone.open(root) as home:
        assert answers(home) == expected
        home.rebuild()
    assert other.read_bytes() == b"of another version"


@pytest.mark.parametrize("place", [".index", ".index/a", f".index/a/v{SCHEMA}"])
def test_a_file_where_a_folder_of_the_index_belongs_costs_no_answer(
    root: Path, expected: list[object], place: str
) -> None:
    shutil.rmtree(root / place)
    (root / place).write_text("in the way")
    with keepstone.open(root) as home:
        assert answers(home) == expected
        home.agent("a").session("s1").delete(
            home.agent("a").session("s1").add("note", text="walnut", id="new").id
        )
        home.agent("a").purge("new")
    assert (root / place).read_text() == "in the way"


def test_rebuilding_gives_the_same_answers_and_tells_its_progress(root: Path, expected: list[object]) -> None:
    told: list[tuple[int, int]] = []
    with keepstone.open(root) as home:
        assert home.rebuild(lambda done, of: told.append((done, of))) == 2
        assert answers(home) == expected
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] == sum(path.stat().st_size for path in root.rglob("s?.ndjson"))


def test_a_row_whose_text_was_damaged_does_not_wait_for_a_vector_for_ever(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os", embedder=Concepts()) as home:
        home.agent("a").session("s").add_many(
            [{"type": "event", "text": "walnut sister"}, {"type": "event", "text": "pecan"}]
        )
        home.embed()
    connection = apsw.Connection(str(index_of(tmp_path)))
    connection.create_scalar_function("with_vector", with_vector, flags=apsw.SQLITE_INNOCUOUS)
    connection.execute("UPDATE entry SET digest=digest+1 WHERE head='pecan'")
    connection.close()
    with keepstone.open(tmp_path, durability="os", embedder=Concepts()) as home:
        assert home.agent("a").recall("walnut").pending in {0, 1}
        home.embed()
        assert home.agent("a").recall("pecan").pending == 0
        assert [hit.entry.text for hit in home.agent("a").recall("pecan", limit=1)] == ["pecan"]


TAKE_ALL = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:  # What the last connection to close takes before it removes the journal.
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)
    except BlockingIOError:
        print("held")
"""


def test_a_second_connection_of_a_process_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    with closing(Database(tmp_path / "index.db")), closing(Database(tmp_path / "index.db")):
        command = [sys.executable, "-c", TAKE_ALL, str(tmp_path / "index.db")]
        assert subprocess.run(command, check=True, capture_output=True, timeout=60).stdout == b"held\n"


def test_vectors_of_384_numbers_leave_little_of_their_pages_free(tmp_path: Path) -> None:
    rows = np.random.default_rng(1).normal(size=(500, 384))
    with keepstone.open(tmp_path, embedder="none") as home:
        items = [{"type": "note", "text": f"walnut {n}", "embedding": row} for n, row in enumerate(rows)]
        home.agent("a").session("main").add_many(items)
    (path,) = tmp_path.rglob("index.db")
    sql = "SELECT sum(unused) < 0.1 * sum(pgsize) FROM dbstat WHERE name='vector'"
    assert apsw.Connection(str(path)).execute(sql).fetchall() == [(1,)]


def test_long_journal_is_emptied_once_no_reader_uses_it_and_without_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.index.database.LONG_JOURNAL", 1)
    path = tmp_path / "index.db"
    with closing(Database(path)) as database, closing(apsw.Connection(str(path))) as reader:
        database.execute("INSERT INTO meta VALUES('x', 1)")
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM meta").fetchall()
        assert not database.shorten_journal()
        assert not database.turn.is_waiting
        reader.execute("COMMIT")
        assert database.shorten_journal()
        assert Path(f"{path}-wal").stat().st_size == 0
