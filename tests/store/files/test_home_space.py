"""The record of which space the vectors of a home are of."""

from __future__ import annotations

import json
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.store.files.home_space import HomeSpace
from keepstone.vector import Space

SPACE = Space("concepts", 5)


def opened(root: Path) -> HomeSpace:
    return HomeSpace(root)


def record_of(root: Path) -> Path:
    return root / ".keepstone" / "space.json"


def test_a_home_without_a_record_has_no_space_and_none_is_made(tmp_path: Path) -> None:
    assert opened(tmp_path).get() is None
    assert opened(tmp_path / "none").get() is None
    assert list(tmp_path.iterdir()) == []


@given(st.text(min_size=1, max_size=200), st.integers(0, 1 << 40))
def test_another_process_reads_the_space_that_was_recorded(
    tmp_path_factory: pytest.TempPathFactory, name: str, dim: int
) -> None:
    root = tmp_path_factory.mktemp("home")
    opened(root).set(SPACE)
    opened(root).set(Space(name, dim))
    assert opened(root).get() == Space(name, dim)
    assert [path.name for path in (root / ".keepstone").iterdir()] == ["space.json"]


@pytest.mark.parametrize("bit", range(8))
def test_no_flipped_bit_makes_another_space(tmp_path: Path, bit: int) -> None:
    opened(tmp_path).set(SPACE)
    raw = record_of(tmp_path).read_bytes()
    for at in range(len(raw)):
        record_of(tmp_path).write_bytes(raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :])
        assert opened(tmp_path).get() in (None, SPACE)


@pytest.mark.parametrize(
    "change", [{"id": ""}, {"id": 5}, {"dim": -1}, {"dim": True}, {"dim": 5.0}, {"dim": None}, {"home": 1}]
)
def test_a_record_that_says_no_space_of_this_home_counts_as_none(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    said = {"id": "concepts", "dim": 5, "home": tmp_path.stat().st_ino} | change
    record_of(tmp_path).parent.mkdir()
    record_of(tmp_path).write_text(json.dumps(said | {"sum": zlib.crc32(json.dumps(said).encode())}))
    assert opened(tmp_path).get() is None


def test_the_record_of_a_copied_home_says_nothing_of_the_copy(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    opened(tmp_path / "one").set(SPACE)
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    assert (opened(tmp_path / "one").get(), opened(tmp_path / "two").get()) == (SPACE, None)


def test_a_home_that_moved_keeps_its_space(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    opened(tmp_path / "one").set(SPACE)
    (tmp_path / "one").rename(tmp_path / "two")
    assert opened(tmp_path / "two").get() == SPACE


@pytest.mark.parametrize("where", [".keepstone", ".keepstone/space.json"])
def test_where_nothing_can_be_recorded_the_process_remembers(tmp_path: Path, where: str) -> None:
    if where == ".keepstone":
        (tmp_path / where).write_text("a file in the place of the folder")
    else:
        (tmp_path / where).mkdir(parents=True)
    space = opened(tmp_path)
    space.set(SPACE)
    assert (space.get(), opened(tmp_path).get()) == (SPACE, None)


def test_what_another_process_records_is_seen_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100.0
    monkeypatch.setattr("keepstone.store.files.home_space.time.monotonic", lambda: now)
    space = opened(tmp_path)
    assert space.get() is None
    opened(tmp_path).set(SPACE)
    assert space.get() is None
    now += 1
    assert space.get() == SPACE
