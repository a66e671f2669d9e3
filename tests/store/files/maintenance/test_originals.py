"""What is kept of logs before lines are taken out of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.damage import NAME, Damaged, entry

from keepstone.errors import StoreError
from keepstone.filesystem.layout import ARCHIVE
from keepstone.log import kept
from keepstone.store.files.maintenance.originals import keep_original, log_of, original_names, originals

STAMP = "20260111T143100000000Z"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "logs")
    session.append(entry("a", "walnut"))
    yield session
    session.close()


def put(session: Damaged, name: str) -> Path:
    path = session.path.parent / ARCHIVE / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x")
    return path


@pytest.mark.parametrize(
    ("name", "log"),
    [
        (f"s1.ndjson.{STAMP}.original", "s1.ndjson"),
        (f"s1.ndjson.{STAMP}.original.{STAMP}.original", f"s1.ndjson.{STAMP}.original"),
        ("s1.ndjson", None),
        ("s1.ndjson.original", None),
        (f".{STAMP}.original", None),
        (f"s1.ndjson.{STAMP}.original.tmp", None),
        ("s1.ndjson.20260111T1431Z.original", None),
    ],
)
def test_an_original_is_known_by_its_whole_name(name: str, log: str | None) -> None:
    assert log_of(name) == log


@given(st.text(min_size=1))
@example("two\nlines")
def test_an_original_of_any_log_names_it(name: str) -> None:
    assert log_of(f"{name}.{STAMP}.original") == name


def test_originals_of_one_log_come_oldest_first_and_no_others(session: Damaged) -> None:
    names = [f"{NAME}.2026{month:02}01T000000000000Z.original" for month in range(1, 13)]
    for name in (*names[::2], f"s2{NAME}.{STAMP}.original", *names[1::2]):
        put(session, name)
    assert [log.name for log in originals(session.folder, session.log)] == [
        f"{ARCHIVE}/{name}" for name in names
    ]


def test_a_folder_or_a_link_is_not_an_original(session: Damaged) -> None:
    path = put(session, f"{NAME}.{STAMP}.original")
    path.with_name(f"b.{STAMP}.original").symlink_to(path)
    path.with_name(f"c.{STAMP}.original").mkdir()
    assert list(original_names(session.folder)) == [path.name]


def test_a_home_without_archives_has_no_originals(session: Damaged) -> None:
    assert list(original_names(session.folder)) == []
    (session.path.parent / ARCHIVE).write_text("a file in the place of the folder")
    assert list(original_names(session.folder)) == []


@pytest.mark.parametrize("archive", [False, True])
def test_a_log_is_kept_as_it_is_and_found_again(session: Damaged, *, archive: bool) -> None:
    session.archive_path.parent.mkdir()
    session.archive_path.write_bytes(b"archived\n")
    name = keep_original(session.folder, session.archive if archive else session.log)
    [original] = originals(session.folder, session.log)
    assert original.name == f"{ARCHIVE}/{name}"
    source = session.archive_path if archive else session.path
    assert (session.path.parent / original.name).read_bytes() == source.read_bytes()


def test_a_disk_that_fails_leaves_no_part_of_an_original(
    session: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(kept, "sync_file", fail)
    with pytest.raises(StoreError, match="full"):
        keep_original(session.folder, session.log)
    assert list((session.path.parent / ARCHIVE).iterdir()) == []
