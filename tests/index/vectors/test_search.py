"""Vectors at scale: a generation, what is newer, graphs, and everything that may happen to their files."""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import shutil
import signal
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

import keepstone
from keepstone import Home
from keepstone.filesystem.confine import Folder
from keepstone.index.vectors import building, cache, segment
from keepstone.model import Scope
from keepstone.store.protocol import Store
from keepstone.store.reader import Reader, Similar, with_reader
from keepstone.testing import START
from keepstone.vector import Matrix, unit

DIM, ROWS = 24, 300
SPACE = f"given:{DIM}"
NEVER = 1_000_000
SEAL = "keepstone.index.vectors.building.seal"


@pytest.fixture(autouse=True)
def few_are_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation is due from 32 vectors on, so that small homes have one."""
    monkeypatch.setattr(cache, "NEWER", 32)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os", embedder="none") as home:
        yield home


def vectors(count: int = ROWS, seed: int = 1) -> Matrix:
    made = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def fill(home: Home, matrix: Matrix | None = None, first: int = 0) -> None:
    """Entry n has the text n, the session s0, s1 or s2, and one of two types."""
    rows = enumerate(vectors() if matrix is None else matrix, first)
    items = [
        {
            "id": str(row),
            "text": str(row),
            "type": ("note", "fact")[row % 2],
            "ts": START + timedelta(minutes=row),
            "tags": ["x"] if row % 7 == 0 else [],
            "embedding": vector,
        }
        for row, vector in rows
    ]
    for number in range(3):
        home.agent("a").session(f"s{number}").add_many(items[number::3])


def store_of(home: Home) -> Store:
    return home._store  # noqa: SLF001  A store is what says how it searched.


def ask(home: Home, vector: Any = None, limit: int = 10, hnsw_from: int = NEVER, **scope: Any) -> Similar:
    query = vectors(1, 9)[0] if vector is None else unit(vector)
    with store_of(home).reader("a") as reader:
        return reader.similar(query, SPACE, Scope("a", **scope), limit, hnsw_from)


def texts(home: Home, found: Similar) -> list[int]:
    with store_of(home).reader("a") as reader:
        loaded = reader.load([candidate.key for candidate in found])
    return [int(loaded[candidate.key].text) for candidate in found]


def near(home: Home, *arguments: Any, **options: Any) -> list[int]:
    return texts(home, ask(home, *arguments, **options))


def nearest(rows: list[int], limit: int = 10, matrix: Matrix | None = None) -> list[int]:
    """What brute force finds."""
    scores = (vectors() if matrix is None else matrix)[rows] @ vectors(1, 9)[0]
    return [rows[place] for place in np.argsort(-scores)[:limit]]


def files(home: Home, pattern: str) -> list[Path]:
    return sorted(home.root.glob(f".index/a/*/vectors/{pattern}"))


def bytes_of(vector: Any) -> list[bytes]:
    """How a vector may lie in a file: in float32, and in int8."""
    quantized = np.rint(vector / (np.abs(vector).max() / 127)).astype(np.int8)
    return [vector.astype("<f4").tobytes()[:32], quantized.tobytes()[:16]]


def holding(home: Home, forms: list[bytes]) -> list[Path]:
    paths = [path for path in home.root.rglob("*") if path.is_file()]
    return [path for path in paths if any(form in path.read_bytes() for form in forms)]


# Generations


@pytest.mark.parametrize(
    ("scope", "rows"),
    [
        ({}, range(ROWS)),
        ({"sessions": ("s1",)}, range(1, ROWS, 3)),
        ({"sessions": ("s2", "none", "s0")}, [row for row in range(ROWS) if row % 3 != 1]),
        ({"sessions": ("none",)}, []),
        ({"types": ("fact",)}, range(1, ROWS, 2)),
        ({"types": ("other",)}, []),
        ({"since": START + timedelta(minutes=100)}, range(100, ROWS)),
        ({"until": START + timedelta(minutes=30), "sessions": ("s0",)}, range(0, 30, 3)),
        (
            {
                "types": ("fact",),
                "since": START + timedelta(minutes=50),
                "until": START + timedelta(minutes=90),
            },
            range(51, 90, 2),
        ),
        ({"tags": ("x",)}, range(0, ROWS, 7)),
        ({"tags": ("x",), "sessions": ("s1",), "types": ("note",)}, range(28, ROWS, 42)),
    ],
)
@pytest.mark.parametrize("newer", [0, 21])
def test_every_scope_finds_what_brute_force_finds(
    home: Home, scope: dict[str, Any], rows: Any, newer: int
) -> None:
    fill(home, vectors()[: ROWS - newer])
    ask(home)
    assert len(files(home, "*.int8")) == 1
    fill(home, vectors()[ROWS - newer :], ROWS - newer)
    assert near(home, **scope) == nearest(list(rows))


def test_few_vectors_need_no_generation(home: Home) -> None:
    fill(home, vectors(20))
    assert near(home) == nearest(list(range(20)), matrix=vectors(20))
    assert files(home, "*") == []


def test_equally_near_entries_come_oldest_first_from_generation_and_after(home: Home) -> None:
    fill(home, vectors(1).repeat(40, axis=0))
    ask(home)
    fill(home, vectors(1).repeat(9, axis=0), 40)
    found = ask(home, vectors(1)[0], limit=45)
    assert [candidate.key for candidate in found] == sorted(candidate.key for candidate in found)


def test_a_tenth_more_vectors_make_a_new_generation(home: Home) -> None:
    fill(home)
    ask(home)
    [first] = files(home, "*.int8")
    fill(home, vectors(40, 2), ROWS)
    assert near(home) == nearest(list(range(ROWS + 40)), matrix=np.concatenate([vectors(), vectors(40, 2)]))
    assert [path.name for path in files(home, "*.int8")] != [first.name]
    assert len(files(home, "*.int8")) == 1


@pytest.mark.parametrize("newer", [False, True])
def test_removed_entries_are_not_found_and_changed_ones_are(home: Home, *, newer: bool) -> None:
    fill(home)
    if not newer:
        ask(home)
    best = nearest(list(range(ROWS)), 3)
    agent = home.agent("a")
    agent.delete(str(best[0]))
    agent.update(str(best[1]), text="another")
    agent.update(str(best[2]), embedding=-vectors(1, 9)[0])
    rest = [row for row in range(ROWS) if row not in best]
    assert near(home, limit=ROWS - 3) == nearest(rest, ROWS - 3)
    assert near(home, -vectors(1, 9)[0], limit=1) == [best[2]]


def test_an_entry_that_changes_its_type_is_found_under_the_new_one(home: Home) -> None:
    fill(home)
    ask(home)
    best = nearest(list(range(ROWS)))[0]
    home.agent("a").update(str(best), type="other")
    assert near(home, types=("other",)) == [best]
    assert best not in near(home, types=("note", "fact"), limit=ROWS)
    assert near(home) == nearest(list(range(ROWS)))


def test_two_spaces_have_a_generation_each(home: Home) -> None:
    fill(home)
    entries = home.agent("a").session("s0").entries()
    store_of(home).keep_vectors("a", "letters", [(entry, vectors(1, 9)[0]) for entry in entries])
    assert near(home) == nearest(list(range(ROWS)))
    with store_of(home).reader("a") as reader:
        found = reader.similar(vectors(1, 9)[0], "letters", Scope("a"), ROWS)
    assert [round(candidate.score, 6) for candidate in found] == [1.0] * len(entries)
    assert len(files(home, "*.int8")) == 2


def test_another_process_uses_the_same_generation(home: Home) -> None:
    fill(home)
    expected = near(home)
    [before] = files(home, "*.int8")
    state = before.stat()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_near_in, (home.root,)) == expected
    assert files(home, "*.int8")[0].stat() == state


def _near_in(root: Path) -> list[int]:
    cache.NEWER = 32
    with keepstone.open(root, embedder="none") as home:
        return near(home)


def test_while_another_builds_everything_is_compared_all_the_same(home: Home) -> None:
    fill(home)
    [index] = home.root.glob(".index/a/*")
    with Folder(index / "vectors", create=True) as folder, building.alone(folder) as allowed:
        assert allowed
        assert near(home) == nearest(list(range(ROWS)))
        assert near(home, types=("fact",)) == nearest(list(range(1, ROWS, 2)))
    assert files(home, "*.int8") == []


def test_where_nothing_can_be_written_everything_is_compared_all_the_same(home: Home) -> None:
    fill(home)
    [index] = home.root.glob(".index/a/*")
    (index / "vectors").write_text("a file in the place of the folder")
    assert near(home) == nearest(list(range(ROWS)))


# Damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(at: float) -> Callable[[Path], None]:
    def flip_at(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[int(at * (len(data) - 1))] ^= 4
        path.write_bytes(data)

    return flip_at


def fold(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


DAMAGES = [Path.unlink, cut, empty, fold, link, *(flip(at / 16) for at in range(17))]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_generation_is_made_again(home: Home, damage: Callable[[Path], None]) -> None:
    fill(home)
    expected = near(home)
    home.close()
    damage(files(home, "*.int8")[0])
    assert near(home) == expected
    assert near(home, types=("fact",)) == nearest(list(range(1, ROWS, 2)))
    # What was put in its place is left to its owner, and named.
    assert damage is fold or {finding.level for finding in home.doctor(deep=True)} == {"ok"}


def test_a_generation_cut_short_under_an_open_home_is_made_again(home: Home) -> None:
    fill(home)
    expected = near(home)
    os.truncate(files(home, "*.int8")[0], 5000)
    assert near(home) == expected


@pytest.mark.parametrize(
    ("place", "pattern"),
    [
        ("keepstone.index.vectors.exact_scan.ExactScan._query", "*.int8"),
        ("keepstone.index.vectors.exact_scan.ExactScan._products", "*.int8"),
        ("keepstone.index.vectors.hnsw._empty", "*.hnsw"),
        ("keepstone.index.vectors.segment.sums_of", "*.int8"),
    ],
)
def test_a_file_cut_short_amid_a_question_ends_no_process(home: Home, place: str, pattern: str) -> None:
    fill(home)
    ask(home, hnsw_from=20)
    home.sync()
    expected = near(home)
    home.close()
    arguments = (home.root, place, pattern, expected)
    process = multiprocessing.get_context("spawn").Process(target=_ask_while_cut, args=arguments)
    process.start()
    process.join()
    assert process.exitcode == 0


def _ask_while_cut(root: Path, place: str, pattern: str, expected: list[int]) -> None:
    cache.NEWER = 32
    module, _, name = place.rpartition(".")
    owner: Any = pkgutil.resolve_name(module)
    act = getattr(owner, name)

    def cut_and_go_on(*arguments: Any) -> Any:
        for path in files(opened, pattern):
            os.truncate(path, 5000)
        return act(*arguments)

    with keepstone.open(root, durability="os", embedder="none") as opened:
        setattr(owner, name, cut_and_go_on)
        assert [near(opened, hnsw_from=20), near(opened)] == [expected] * 2
        assert all(path.stat().st_size == 5000 for path in files(opened, pattern))
        setattr(owner, name, act)
        assert near(opened) == expected


@pytest.mark.parametrize("number", [np.nan, np.inf, -3e38, 7.0])
@pytest.mark.parametrize("rows", [20, ROWS])
def test_a_vector_in_which_a_bit_flipped_is_read_from_its_line_again(
    home: Home, number: float, rows: int
) -> None:
    fill(home, vectors()[:rows])
    expected = near(home)
    home.close()
    with apsw.Connection(str(next(home.root.glob(".index/a/*/index.db")))) as connection:
        rows_of: Any = connection.execute("SELECT vid, f32 FROM vector").fetchall()
        for vid, raw in rows_of:
            damaged = np.frombuffer(raw, "<f4").copy()
            damaged[3] = number
            connection.execute("UPDATE vector SET f32=? WHERE vid=?", (damaged.tobytes(), vid))

    def cosines(reader: Reader) -> list[float]:
        keys = [candidate.key for candidate in reader.search(["7"], Scope("a"), 5)]
        return list(reader.cosines(vectors()[7], SPACE, keys).values())

    assert with_reader(store_of(home), "a", cosines) == [pytest.approx(1.0)]
    assert near(home) == expected


def test_a_generation_of_another_home_is_never_used(home: Home, tmp_path: Path) -> None:
    fill(home)
    near(home)
    with keepstone.open(tmp_path / "other", durability="os", embedder="none") as other:
        fill(other, vectors(seed=5))
        expected = near(other)
        other.close()
        shutil.copy(files(home, "*.int8")[0], files(other, "*.int8")[0])
        assert near(other) == expected


def test_an_older_generation_is_never_used(home: Home, tmp_path: Path) -> None:
    fill(home)
    ask(home)
    old = shutil.copy(files(home, "*.int8")[0], tmp_path / "old")
    best = nearest(list(range(ROWS)))[0]
    home.agent("a").purge(str(best))
    fill(home, vectors(40, 2), ROWS)
    expected = near(home)
    home.close()
    shutil.copy(old, files(home, "*.int8")[0])
    assert near(home) == expected


def test_a_generation_without_its_index_is_removed(home: Home) -> None:
    fill(home)
    expected = near(home)
    home.close()
    for path in home.root.glob(".index/a/*/index.db*"):
        path.unlink()
    assert near(home) == expected
    assert len(files(home, "*.int8")) == 1


# Purge


@pytest.mark.parametrize("end", ["purge", "clear", "remove", "drop", "delete first"])
@pytest.mark.parametrize("hnsw_from", [NEVER, 50])
def test_no_byte_of_a_purged_vector_stays_beside_the_index(home: Home, end: str, hnsw_from: int) -> None:
    fill(home)
    ask(home, hnsw_from=hnsw_from)
    home.sync()
    session, secret = home.agent("a").session("s0"), vectors()[3]
    assert len(holding(home, bytes_of(secret)[1:])) >= 1
    if end == "delete first":
        session.delete("3")
    getattr(session, end.replace("delete first", "purge"))(*["3"][: "purge" in end or " " in end])
    assert holding(home, bytes_of(secret)) == []
    assert 3 not in near(home, secret, hnsw_from=hnsw_from)
    if end == "purge":
        assert near(home, limit=ROWS) == nearest([row for row in range(ROWS) if row != 3], ROWS)


def test_a_build_that_began_before_a_purge_is_thrown_away(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)

    def purge_then_seal(*arguments: Any) -> int:
        monkeypatch.setattr(SEAL, segment.seal)
        home.agent("a").purge("3")
        return segment.seal(*arguments)

    monkeypatch.setattr(SEAL, purge_then_seal)
    assert near(home, limit=ROWS) == nearest([row for row in range(ROWS) if row != 3], ROWS)
    assert holding(home, bytes_of(vectors()[3])) == []


def test_a_graph_that_began_before_a_purge_is_thrown_away(home: Home) -> None:
    fill(home)
    ask(home, hnsw_from=50)
    assert store_of(home).maintenance.upkeep("a")
    home.agent("a").purge("3")
    home.sync()
    assert holding(home, bytes_of(vectors()[3])) == []
    assert 3 not in near(home, vectors()[3], hnsw_from=50)


def test_a_process_killed_while_it_builds_leaves_nothing_that_matters(home: Home) -> None:
    fill(home)
    process = multiprocessing.get_context("spawn").Process(target=_die_while_building, args=(home.root,))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    assert len(files(home, "*.tmp")) == 1
    assert near(home) == nearest(list(range(ROWS)))
    assert files(home, "*.tmp") == []


def _die_while_building(root: Path) -> None:
    cache.NEWER = 32
    pytest.MonkeyPatch().setattr(SEAL, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with keepstone.open(root, embedder="none") as home:
        near(home)


# Graphs


@pytest.mark.requirement("vectors.create.enters-hnsw", "vectors.query.hnsw")
@pytest.mark.parametrize("scope", [{}, {"sessions": ("s1",)}])
def test_a_graph_is_made_after_the_first_query_and_finds_the_same(home: Home, scope: dict[str, Any]) -> None:
    fill(home)
    first = ask(home, hnsw_from=50, **scope)
    home.sync()
    second = ask(home, hnsw_from=50, **scope)
    assert (first.searched, first.is_due, second.searched, second.is_due) == ("exact", True, "hnsw", False)
    assert list(first) == list(second)
    assert len(files(home, "*.hnsw")) == 1


def test_fewer_vectors_than_a_generation_needs_have_a_graph_too(home: Home) -> None:
    fill(home, vectors(30))
    assert ask(home, hnsw_from=30).searched == "exact"
    home.sync()
    assert ask(home, hnsw_from=30).searched == "hnsw"
    assert ask(home, hnsw_from=31).searched == "exact"


@pytest.mark.parametrize(
    "scope",
    [
        {"types": ("note",)},
        {"since": START},
        {"tags": ("x",)},
        {"where": {"a": 1}},
        {"sessions": ("s0", "s1")},
        {"sessions": ()},
    ],
)
def test_a_part_of_a_session_is_always_compared_exactly(home: Home, scope: dict[str, Any]) -> None:
    fill(home)
    assert not ask(home, hnsw_from=1, **scope).is_due
    home.sync()
    assert ask(home, hnsw_from=1, **scope).searched == "exact"
    assert files(home, "*.hnsw") == []


def test_what_is_newer_than_the_graph_is_found_with_it(home: Home) -> None:
    fill(home)
    ask(home, hnsw_from=50)
    home.sync()
    fill(home, vectors(1, 9), ROWS)
    home.agent("a").delete(str(nearest(list(range(ROWS)))[0]))
    found = ask(home, hnsw_from=50)
    assert found.searched == "hnsw"
    assert texts(home, found) == [ROWS, *nearest(list(range(ROWS)), 10)[1:]]


def test_the_graph_is_there_for_the_next_process(home: Home) -> None:
    fill(home)
    ask(home, hnsw_from=50)
    home.sync()
    home.close()
    assert ask(home, hnsw_from=50).searched == "hnsw"


@pytest.mark.requirement("vectors.query.cosine-fallback")
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_graph_is_followed_by_the_exact_search(home: Home, damage: Callable[[Path], None]) -> None:
    fill(home)
    expected = ask(home, hnsw_from=50)
    rows, scores = texts(home, expected), [candidate.score for candidate in expected]
    home.sync()
    home.close()
    damage(files(home, "*.hnsw")[0])
    found = ask(home, hnsw_from=50)
    assert [candidate.score for candidate in found] == scores
    assert (texts(home, found), found.searched) == (rows, "exact")
    home.sync()
    assert ask(home, hnsw_from=50).searched == "hnsw"


@pytest.mark.requirement("vectors.query.cosine-fallback")
def test_a_graph_that_answers_nothing_is_followed_by_the_exact_search(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(home)
    expected = list(ask(home, hnsw_from=50))
    home.sync()
    nothing = (np.empty(0, np.intp), np.empty(0, np.float32))
    monkeypatch.setattr("keepstone.index.vectors.hnsw.Graph.nearest", lambda *_: nothing)
    found = ask(home, hnsw_from=50)
    assert (list(found), found.searched) == (expected, "exact")


def test_a_new_generation_makes_the_old_graph_useless(home: Home) -> None:
    fill(home)
    ask(home, hnsw_from=50)
    home.sync()
    fill(home, vectors(40, 2), ROWS)
    assert ask(home, hnsw_from=50).searched == "exact"
    home.sync()
    assert ask(home, hnsw_from=50).searched == "hnsw"
    assert len(files(home, "*.hnsw")) == 1


def test_a_large_graph_is_read_by_upkeep_and_not_by_a_query(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.index.vectors.hnsw._QUICK", 100)
    fill(home)
    ask(home, hnsw_from=50)
    home.sync()
    home.close()
    first = ask(home, hnsw_from=50)
    home.sync()
    assert (first.searched, first.is_due, ask(home, hnsw_from=50).searched) == ("exact", True, "hnsw")


def test_closing_leaves_an_unfinished_graph_to_the_next_query(home: Home) -> None:
    fill(home)
    ask(home, hnsw_from=50)
    assert store_of(home).maintenance.upkeep("a")
    home.close()
    assert ask(home, hnsw_from=50).searched == "exact"
    home.sync()
    assert ask(home, hnsw_from=50).searched == "hnsw"


# What was made of texts


def test_made_vectors_outlive_a_log_that_is_read_from_its_start(home: Home) -> None:
    session = home.agent("a").session("s1")
    entries = [session.add("note", text=text) for text in ("kept", "changed", "removed")]
    store_of(home).keep_vectors("a", SPACE, list(zip(entries, vectors(3), strict=True)))
    [log] = home.root.rglob("s1.ndjson")
    lines = log.read_text().replace('"changed"', '"other"').splitlines(keepends=True)
    log.write_text("".join(lines[:2]))
    made = store_of(home).vectors("a", "s1", SPACE, [entry.id for entry in entries])
    assert {key: vector.tolist() for key, vector in made.items()} == {entries[0].id: vectors(3)[0].tolist()}
    assert holding(home, [vectors(3)[2].tobytes()]) == [*home.root.glob(".index/a/*/index.db-wal")]
    session.purge(entries[0].id)
    assert holding(home, [vector.tobytes() for vector in vectors(3)]) == []
