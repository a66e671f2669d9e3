"""The marks of sessions that were dropped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import DROPPED
from keepstone.store.files.dropped import mark_dropped

TS = "2026-01-11T14:31:00.000000Z"
LATER = "2026-01-12T00:00:00.000000Z"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path) as folder:
        yield folder


def marks(folder: Folder) -> list[object]:
    return [json.loads(line) for line in (folder.path / DROPPED).read_bytes().splitlines()]


def test_each_drop_is_kept_and_the_same_one_once(folder: Folder) -> None:
    for session, ts in (("s", TS), ("s", TS), ("t", TS), ("s", LATER), ("s", TS)):
        mark_dropped(folder, session, ts)
    assert marks(folder) == [
        {"session": "s", "ts": TS},
        {"session": "t", "ts": TS},
        {"session": "s", "ts": LATER},
    ]


@pytest.mark.parametrize("damage", [b"no mark\n", b'{"session":"s"', b"\xff\n[]\n{}\n"])
def test_a_mark_beside_damage_is_whole_and_takes_nothing_away(folder: Folder, damage: bytes) -> None:
    (folder.path / DROPPED).write_bytes(damage)
    mark_dropped(folder, "s", TS)
    mark_dropped(folder, "s", TS)
    data = (folder.path / DROPPED).read_bytes()
    assert data.startswith(damage)
    assert [json.loads(line) for line in data[len(damage) :].split()] == [{"session": "s", "ts": TS}]


def test_any_name_of_a_session_is_one_line(folder: Folder) -> None:
    names = ["x/y", "two\nlines", "東京", "\ud800", '"']
    for name in names:
        mark_dropped(folder, name, TS)
    assert [mark["session"] for mark in marks(folder) if isinstance(mark, dict)] == names
