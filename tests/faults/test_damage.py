"""Damage of any file: no crash, no foreign or purged entry, and what can be answered is answered the same."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.asking import FOREIGN, PURGED, ROUNDS, asked, copy, fill, opened, purge, with_files

import keepstone
from keepstone import Home

SPACE = Path(".keepstone/space.json")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home as a kill leaves it, its index of before a purge, and the index of another home."""
    root = tmp_path_factory.mktemp("homes")
    with opened(root / "original") as home:
        fill(home)
        with_files(home)
        for part in (".index", ".keepstone"):
            shutil.copytree(root / "original" / part, root / "older" / part)
        purge(home)
        home.rebuild()  # Rows are as in any new index: their order decides between equal scores.
        home.embed()
        for name in ("s1", "s2"):  # And then have the places that a rewrite of the log gave them.
            home.agent("a").session(name).add("note", id="last", text="x")
            home.agent("a").session(name).purge("last")
        with_files(home)
        fill(home, FOREIGN, "b", 5)
        with_files(home, "b")
        copy(root / "original", root / "killed")
    with opened(root / "another") as home:
        fill(home, FOREIGN, "a", 7)
        with_files(home)
    return root


@pytest.fixture(scope="module")
def expected(homes: Path) -> Any:
    [(told, again)] = asked([homes / "original"])
    assert told == again
    assert told["wrong"] == []
    assert all(told["ids"][f"recall {word}"] for word in ("walnut", "hazel"))
    return told


def files(homes: Path) -> list[Path]:
    """All files of the agent's index, what is beside it and the home's state, relative to the home."""
    found = sorted(path for part in (".index", ".keepstone") for path in (homes / "killed" / part).rglob("*"))
    names = [path.relative_to(homes / "killed") for path in found if path.is_file()]
    wanted = [name for name in names if not name.is_relative_to(".index/b")]
    assert {name.suffix for name in wanted} >= {".db", ".db-wal", ".db-shm", ".int8", ".hnsw"}
    assert {str(name) for name in wanted} >= {".index/a/purged.seen", ".index/.erased", str(SPACE)}
    return wanted


class Cases:
    """Copies of the home, each damaged in one way."""

    def __init__(self, homes: Path, to: Path) -> None:
        self._homes, self._to = homes, to
        self.roots: list[Path] = []
        self.names: list[str] = []

    def add(self, name: str, damage: Callable[..., object], *arguments: Any, at: Path = Path()) -> None:
        """Damage what lies ``at`` a place of one more copy."""
        root = copy(self._homes / "killed", self._to / str(len(self.roots)))
        damage(root / at, *arguments)
        self.roots.append(root)
        self.names.append(name)

    def answered(self) -> Iterator[tuple[str, Any]]:
        """What each of two openings says; whatever it is, it must be true and the agent's own."""
        for name, both in zip(self.names, asked(self.roots), strict=True):
            for told in both:
                given = [key for some in told["ids"].values() for key in some]
                assert told["wrong"] == [], name
                assert not [key for key in given if "purged" in key], name
                yield name, told


def folder(path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def looped(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def put_in_place(path: Path, other: Path) -> None:
    shutil.copy(other, path)


def flip(path: Path, chance: random.Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 1, 10, 200]) if data else 0):
        at = chance.randrange(len(data))
        data[at] = chance.choice([data[at] ^ 1 << chance.randrange(8), 0xFF, 0])
    path.write_bytes(data)


def like(root: Path, name: Path) -> list[Path]:
    """The files of another index that are most like one."""
    return [
        path
        for path in (root / name).parent.glob("*")
        if path.is_file() and path.suffix == name.suffix and (path.name == name.name or ".hnsw" in path.name)
    ]


def test_an_index_gone_or_replaced_in_any_part_gives_the_same_answers(
    homes: Path, expected: Any, tmp_path: Path
) -> None:
    cases = Cases(homes, tmp_path)
    for name in files(homes):
        for damage in (Path.unlink, folder, empty, fifo, looped):
            cases.add(f"{damage.__name__} {name}", damage, at=name)
        for other in ("older", "another"):
            for path in like(homes / other, name):
                cases.add(f"swap {path}", put_in_place, path, at=name)
    for told in cases.answered():
        assert told == (told[0], expected)


def test_an_index_of_another_agent_home_or_time_gives_the_same_answers(
    homes: Path, expected: Any, tmp_path: Path
) -> None:
    cases = Cases(homes, tmp_path)
    places = [("older/.index", ".index"), ("another/.index", ".index"), ("killed/.index/b", ".index/a")]
    for source, target in places:

        def swap(root: Path, source: str = source, target: str = target) -> None:
            shutil.rmtree(root / target)
            shutil.copytree(homes / source, root / target)

        cases.add(source, swap)
    for told in cases.answered():
        assert told == (told[0], expected)


def test_an_index_cut_at_any_byte_gives_the_same_answers(homes: Path, expected: Any, tmp_path: Path) -> None:
    cases, chance = Cases(homes, tmp_path), random.Random(ROUNDS)
    for name in files(homes):
        size = (homes / "killed" / name).stat().st_size
        for at in {chance.randrange(size) for _ in range(max(3, ROUNDS // 4)) if size}:
            cases.add(f"{name} cut to {at}", os.truncate, at, at=name)
    for told in cases.answered():
        assert told == (told[0], expected)


def test_flipped_bits_crash_nothing_and_every_entry_is_as_its_line(homes: Path, tmp_path: Path) -> None:
    cases, chance = Cases(homes, tmp_path), random.Random(ROUNDS + 1)
    for name in files(homes):
        for number in range(ROUNDS if name.name == "index.db" else max(2, ROUNDS // 8)):
            cases.add(f"flip {number} {name}", flip, chance, at=name)
    assert len(list(cases.answered())) == 2 * len(cases.roots)


def test_flipped_bits_of_vectors_and_graphs_give_the_same_answers(
    homes: Path, expected: Any, tmp_path: Path
) -> None:
    cases, chance = Cases(homes, tmp_path), random.Random(ROUNDS + 2)
    for name in files(homes):
        if name.suffix in {".int8", ".hnsw", ".json"}:
            for number in range(max(3, ROUNDS // 4)):
                cases.add(f"flip {number} {name}", flip, chance, at=name)
    for told in cases.answered():
        assert told == (told[0], expected)


# Logs


LINES = [
    b'{"id":"%d","ts":"2026-01-11T14:31:00Z","type":"note","text":"walnut %d"}' % (n, n) for n in range(9)
]
BROKEN = [
    b"\0" * 500,
    b"\xff\xfe\xfd",
    b'{"id":"4","text":"cut',
    b'{"id":"4","type":"note","text":"\xc3"}',
    b'{"id":"4","type":"note","text":"a\0b"}',
    b"[1, 2]",
    b"{" * 5000,
    b'{"id":"4","type":"note","n":1e999}',
]


def opened_with(root: Path, *lines: bytes, end: bytes = b"\n") -> Home:
    path = root / "agents/a/memory/sessions/s.ndjson"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\n".join(lines) + end)
    return keepstone.open(root, durability="os", embedder="none")


def check(home: Home, ids: list[str], place: int) -> None:
    """All the other entries are there by every way, the doctor names the line, and writing goes on."""
    agent = home.agent("a")
    session = agent.session("s")
    for _ in range(2):
        assert [entry.id for entry in session.entries()] == ids
        assert [entry.id for entry in session.entries(3)] == ids[-3:]
        assert {hit.entry.id for hit in agent.recall("walnut", limit=99)} == set(ids)
        assert [agent.get(entry_id).id for entry_id in ids] == ids
        session.add("note", text="walnut", id=f"new{len(ids)}")
        ids = [*ids, f"new{len(ids)}"]
    errors = [finding for finding in home.doctor() if finding.level == "error"]
    assert [finding.subject.split(" ")[0] for finding in errors] == ["a/s"]
    assert f": line {place + 1} (byte {place * (len(LINES[0]) + 1)})" in errors[0].message
    session.compact()
    assert {entry.id for entry in session.entries()} == set(ids)


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("place", [0, 4, 9])
def test_only_a_broken_line_is_skipped(tmp_path: Path, broken: bytes, end: bytes, place: int) -> None:
    ids = [str(n) for n in range(9) if n != 4]
    lines = [LINES[int(entry_id)] for entry_id in ids]
    with opened_with(tmp_path, *lines[:place], broken, *lines[place:], end=end) as home:
        check(home, ids, min(place, 8))


def test_a_line_of_a_hundred_megabytes_is_skipped(tmp_path: Path) -> None:
    size = 100_000_000 if ROUNDS >= 100 else 17 * 1024 * 1024
    long = b'{"id":"long","type":"note","text":"' + b"x" * size + b'"}'
    with opened_with(tmp_path, *LINES[:5], long, *LINES[5:]) as home:
        [error] = [finding for finding in home.doctor() if finding.level == "error"]
        assert ": line 6 (byte 355)" in error.message
        check(home, [str(n) for n in range(9)], 0)  # The log is so long that the add compacts it.


@given(st.data())
@settings(max_examples=ROUNDS * 3)
def test_a_flipped_byte_costs_at_most_the_lines_it_touches(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    raw = bytearray(b"\n".join(LINES) + b"\n")
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255))
    touched = bytes(raw[:at]).count(b"\n")
    safe = {str(n) for n in range(9) if n not in (touched, touched + 1)}
    root = tmp_path_factory.mktemp("flipped")
    with opened_with(root, bytes(raw), end=b"") as home:
        session = home.agent("a").session("s")
        there = {entry.id: entry.text for entry in session.entries()}
        assert all(there.get(entry_id) == f"walnut {entry_id}" or there for entry_id in safe)
        assert {entry.id for entry in session.entries(99)} == set(there)
        assert safe - {"".join(chr(raw[at]))} <= set(there)
        hits = {hit.entry.id: hit.entry.text for hit in home.agent("a").recall("walnut", limit=99)}
        assert all(there[entry_id] == text for entry_id, text in hits.items())
        assert safe - {chr(raw[at])} <= set(hits)
    shutil.rmtree(root)


def test_the_words_of_these_tests_are_found_where_they_should_be(homes: Path) -> None:
    with opened(homes / "another") as home:
        assert home.agent("a").recall(FOREIGN)[0].entry.text.endswith(tuple("0123456789" + FOREIGN[-1]))
    with opened(homes / "original") as home:
        assert [hit for hit in home.agent("a").recall(PURGED) if PURGED in hit.entry.text] == []
