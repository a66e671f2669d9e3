"""The file of an agent's suggestions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from keepstone.store.files.suggestion_file import change, read

ONE, TWO = (
    b'{"id":"%s","ts":"2026-01-11T14:31:00Z","do":"delete","session":"s","ids":["x"],"why":"old"}\n' % name
    for name in (b"one", b"two")
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory" / "suggestions.ndjson"


def changed(path: Path, revision: Callable[[list[bytes]], list[bytes]]) -> list[set[str]]:
    """Change the file; return the ids that were to be forgotten before."""
    forgotten: list[set[str]] = []
    change(path, path.parent.parent, revision, forgotten.append, durable=False)
    return forgotten


def test_without_a_file_there_are_no_lines(path: Path) -> None:
    assert read(path, path.parent.parent) == []
    assert not path.parent.exists()


def test_the_first_line_makes_the_file(path: Path) -> None:
    assert changed(path, lambda _: [ONE]) == []
    assert read(path, path.parent.parent) == [ONE]


def test_lines_that_are_added_are_appended(path: Path) -> None:
    changed(path, lambda _: [ONE])
    inode = path.stat().st_ino
    changed(path, lambda lines: [*lines, TWO])
    assert path.read_bytes() == ONE + TWO
    assert path.stat().st_ino == inode


def test_a_change_of_nothing_writes_nothing(path: Path) -> None:
    changed(path, lambda _: [ONE])
    before = path.stat()
    assert changed(path, lambda lines: lines) == []
    assert path.stat().st_mtime_ns == before.st_mtime_ns


def test_removed_suggestions_are_reported_before_they_go(path: Path) -> None:
    changed(path, lambda _: [ONE, TWO])
    assert changed(path, lambda _: [TWO]) == [{"one"}]
    assert read(path, path.parent.parent) == [TWO]


def test_a_suggestion_stays_while_nothing_can_be_told(path: Path) -> None:
    changed(path, lambda _: [ONE])

    def refuse(_: set[str]) -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        change(path, path.parent.parent, lambda _: [], refuse, durable=False)
    assert read(path, path.parent.parent) == [ONE]
