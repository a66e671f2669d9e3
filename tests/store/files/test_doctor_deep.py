"""That the doctor compares all that is derived with what it is derived from, and mends it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import apsw
import numpy as np
import pytest
from tests.memories import Letters

import keepstone
from keepstone import Home
from keepstone.index.row_text import with_vector
from keepstone.index.vectors import cache
from keepstone.model import Finding, Scope
from keepstone.vector import unit

DIM = 8


def given(count: int) -> list[dict[str, object]]:
    """Entries with vectors that callers gave."""
    chance = np.random.default_rng(7)
    return [
        {"id": f"v{at}", "type": "note", "text": f"walnut {at}", "embedding": chance.normal(size=DIM)}
        for at in range(count)
    ]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path, durability="os", embedder="none") as home:
        session = home.agent("a").session("s")
        session.add_many(given(40))
        session.update("v1", pinned=True, tags=["x"], priority=0.5)
        session.update("v2", text="pecan")
        session.delete("v3")
        session.count({"v4": 3})
        home.sync()
        yield home


def wrong(home: Home, *, fix: bool = False) -> list[Finding]:
    findings = home.doctor(deep=True, fix=fix)
    return [each for each in findings if each.level != "ok" and each.subject != "embedder"]


def write(home: Home, *statements: str) -> None:
    """Change the index behind the program's back."""
    home.close()
    path = next(home.root.glob(".index/a/v*/index.db"))
    connection = apsw.Connection(str(path))
    connection.create_scalar_function("with_vector", with_vector, flags=apsw.SQLITE_INNOCUOUS)
    try:
        connection.execute("PRAGMA trusted_schema=1; PRAGMA ignore_check_constraints=1")
        for statement in statements:
            connection.execute(statement)
    finally:
        connection.close()


def test_a_sound_index_is_as_the_logs_say(home: Home) -> None:
    assert wrong(home) == []


@pytest.mark.parametrize(
    "change",
    [
        "record=json_set(record, '$.text', 'more')",
        "ts=ts+1",
        "type='other'",
        "id='other'",
        "pinned=NULL",
        "tags=NULL",
        "priority=0.6",
        "access=9",
        "head='x'",
        "digest=digest+1",
    ],
)
def test_a_row_that_differs_from_its_line_is_found_and_mended(home: Home, change: str) -> None:
    write(
        home,
        "DROP TRIGGER entry_text",
        "DROP TRIGGER entry_scope",
        f"UPDATE entry SET {change} WHERE id='v1'",  # noqa: S608  Damage of our own.
    )
    (error,) = wrong(home)
    assert (error.level, error.subject) == ("error", "a/s")
    assert error.message == "the index holds 1 entry otherwise than the log"
    assert wrong(home, fix=True) == []


def test_a_row_without_a_line_is_found(home: Home) -> None:
    write(home, "UPDATE entry SET id='v3', number=number+1000 WHERE id='v5'")
    assert [each.message for each in wrong(home)] == ["the index holds 1 entry otherwise than the log"]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM words_docsize WHERE id=1", "the index: the table of words has"),
        ("UPDATE words_data SET block=zeroblob(40) WHERE id>10", "the index: SQLite cannot read it"),
        ("UPDATE vector SET eid=eid+1000 WHERE vid=1", "the index: 1 vector(s) of no entry"),
        (
            "UPDATE vector SET f32=zeroblob(12) WHERE vid=1",
            "the index: 1 vector(s) of no entry, or of another",
        ),
        (
            "UPDATE vector SET f32=(SELECT CAST(substr(f32, 1, 28) || x'00004040' AS BLOB)) WHERE vid=1",
            "the index: a vector is not of unit length",
        ),
    ],
)
def test_damage_inside_the_index_is_named_and_mended(home: Home, statement: str, message: str) -> None:
    write(home, statement)
    assert any(each.level == "error" and each.message.startswith(message) for each in wrong(home))
    assert wrong(home, fix=True) == []
    assert len(home.agent("a").recall("walnut", limit=50)) == 39


def test_a_text_without_a_vector_is_not_damage(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, durability="os", embedder=Letters(4)) as home:
        home.agent("a").session("s").add_many({"type": "event", "text": text} for text in ("xyz", "abba"))
        assert home.embed() == 2
        assert wrong(home) == []
        assert {hit.entry.text for hit in home.agent("a").recall("abba")} == {"xyz", "abba"}


def test_a_given_vector_that_is_not_its_line_s_is_found(home: Home) -> None:
    other = unit(np.ones(DIM)).astype("<f4").tobytes().hex()
    write(home, f"UPDATE vector SET f32=x'{other}' WHERE vid=1")  # noqa: S608  Damage of our own.
    assert [each.message for each in wrong(home)] == ["the index holds 1 entry otherwise than the log"]


def test_a_page_with_a_flipped_bit_is_found_and_mended(home: Home) -> None:
    write(home, "PRAGMA wal_checkpoint(TRUNCATE)")
    path = next(home.root.glob(".index/a/v*/index.db"))
    data = bytearray(path.read_bytes())
    at = data.index(b"walnut 17")
    data[at] ^= 0x20
    path.write_bytes(data)
    assert wrong(home)
    assert wrong(home, fix=True) == []


def build(home: Home, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let the vectors get the files beside the index, and return their folder."""
    monkeypatch.setattr(cache, "NEWER", 32)  # Vectors from which on files are due.
    home.agent("a").session("t").add_many(given(300))
    agent = home.agent("a")
    agent.recall(None, vector=np.ones(DIM))
    home.sync()
    return next(home.root.glob(".index/a/v*")) / "vectors"


def test_damaged_or_orphaned_vector_files_are_named_and_removed(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = build(home, monkeypatch)
    (generation,) = folder.glob("*.int8")
    data = bytearray(generation.read_bytes())
    data[-1000] ^= 0x40
    generation.write_bytes(data)
    (folder / "9-9.int8").write_bytes(b"left")
    os.chmod(folder / "9-9.int8", 0o600)
    (warning,) = wrong(home)
    assert (warning.level, warning.subject) == ("warning", "a")
    assert warning.message.startswith("2 file(s) of vectors or graphs damaged or left over: ")
    assert wrong(home, fix=True) == []
    assert not generation.exists()
    assert len(home.agent("a").recall(None, vector=np.ones(DIM))) == 10


def test_concurrent_adds_are_not_a_difference(home: Home) -> None:
    with (home.root / "agents/a/memory/sessions/s.ndjson").open("a") as log:
        log.write('{"id":"v5","type":"note","text":"changed by an editor"}\n')
    assert [each.message for each in wrong(home)] == ["the index is behind the log of 1 session(s)"]
    assert wrong(home, fix=True) == []


@pytest.mark.parametrize("change", ["ts=9000000000000000000", "ts='soon'", "record=x'ff00'"])
def test_rows_whose_times_or_texts_are_damaged_are_recalled_as_their_lines_say(
    home: Home, change: str
) -> None:
    expected = home.agent("a").recall("walnut", limit=5)
    write(home, "UPDATE entry SET " + change)  # noqa: S608  Damage of our own.
    assert home.agent("a").recall("walnut", limit=5) == expected


def test_rows_whose_numbers_are_damaged_are_not_neighbours(home: Home) -> None:
    write(home, "DROP INDEX entry_number", "UPDATE entry SET number=7")
    with home._store.reader("a") as reader:  # noqa: SLF001  What neighbours are is the store's to say.
        keys = [found.key for found in reader.search(["walnut"], Scope("a"), 5)]
        assert reader.neighbours(keys, 2, Scope("a")) == []
    assert len(home.agent("a").recall("walnut", limit=5)) == 5
