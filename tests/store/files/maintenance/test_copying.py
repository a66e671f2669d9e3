"""Copying files that belong together, and telling whether the copy still fits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

import pytest

from keepstone.errors import PathEscapeError
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.store.files.maintenance.copying import Copy, Unit

FILES = {"log": b'{"id":"a"}\n', "archive/log": b"old\n", "note.md": b"Call Ana", "empty": b""}
TORN = b'{"id":"b","type":"note","batch":[1,2]}\n'


class Place:
    """A folder, its copy, and what is to be copied: a log with its archive, and other files."""

    def __init__(self, path: Path) -> None:
        self.source = path / "source"
        self.made = path / "made/agents/a"
        for name, data in FILES.items():
            self.write(name, data)
        self.folder = Folder(self.source)
        self.told: list[int] = []
        self.copy = Copy(self.made, path / "made", self.told.append)
        (path / "made").mkdir()
        self.units = {
            "log": Unit(lambda: ["log", "archive/log"], nullcontext, log="log"),
            "files": Unit(lambda: ["note.md", "empty", "late.md"], nullcontext),
        }

    def write(self, name: str, data: bytes) -> None:
        (self.source / name).parent.mkdir(parents=True, exist_ok=True)
        (self.source / name).write_bytes(data)

    def follow(self) -> bool:
        return self.copy.follow(self.folder, self.units)

    def copied(self) -> dict[str, bytes]:
        files = [path for path in self.made.rglob("*") if path.is_file()]
        return {path.relative_to(self.made).as_posix(): path.read_bytes() for path in files}

    def there(self) -> dict[str, bytes]:
        return {name: (self.source / name).read_bytes() for name in FILES}


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path)
    with place.folder:
        yield place


def test_what_is_there_is_copied_once_and_counted(place: Place) -> None:
    assert (place.follow(), place.follow()) == (True, False)
    assert place.copied() == FILES
    size = sum(map(len, FILES.values()))
    assert (place.copy.count(), sum(place.told)) == ((4, size), size)
    assert list(place.copy.wrong()) == []


def test_lines_added_to_a_log_cause_no_second_copy(place: Place) -> None:
    place.follow()
    with (place.source / "log").open("ab") as log:
        log.write(b'{"id":"b"}\n')
    assert not place.follow()
    assert place.copied() == FILES


def rewrite(place: Place) -> None:
    place.write("new", FILES["log"] + b"more\n")
    (place.source / "new").replace(place.source / "log")


@pytest.mark.parametrize(
    "change",
    [
        rewrite,
        lambda place: place.write("log", b""),
        lambda place: place.write("log", b'{"id":"b"}\n{"id":"c"}\n'),
        lambda place: place.write("archive/log", b"old\nmore\n"),
        lambda place: os.utime(place.source / "note.md", ns=(1, 1)),
        lambda place: place.write("note.md", b""),
    ],
)
def test_what_changed_otherwise_is_copied_again(place: Place, change: Callable[[Place], None]) -> None:
    place.follow()
    change(place)
    assert (place.follow(), place.follow()) == (True, False)
    assert place.copied() == place.there()
    assert list(place.copy.wrong()) == []


@pytest.mark.parametrize("name", ["log", "archive/log", "note.md"])
def test_a_file_that_goes_is_taken_out_of_the_copy(place: Place, name: str) -> None:
    place.follow()
    (place.source / name).unlink()
    assert (place.follow(), place.follow()) == (True, False)
    assert place.copied() == {other: data for other, data in FILES.items() if other != name}
    assert place.copy.count()[0] == 3


def test_a_file_that_comes_later_is_copied_too(place: Place) -> None:
    place.follow()
    place.write("late.md", b"late")
    assert place.follow()
    assert place.copied()["late.md"] == b"late"


def test_a_removed_unit_is_deleted_with_all_its_files(place: Place) -> None:
    place.follow()
    del place.units["log"]
    assert (place.follow(), place.follow()) == (True, False)
    assert place.copied().keys() == {"note.md", "empty"}


def test_a_folder_in_the_place_of_an_archives_counts_as_missing(place: Place) -> None:
    (place.source / "archive/log").unlink()
    (place.source / "archive").rmdir()
    place.write("archive", b"a file")
    assert (place.follow(), place.follow()) == (True, False)
    assert place.copied().keys() == {"log", "note.md", "empty"}


def test_a_link_is_not_followed_out_of_the_folder(place: Place, tmp_path: Path) -> None:
    (place.source / "note.md").unlink()
    (place.source / "note.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PathEscapeError):
        place.follow()


def test_names_are_asked_for_and_copied_while_the_lock_is_held(place: Place) -> None:
    with closing(Lock(place.folder, "lock")) as lock:

        def names() -> list[str]:
            seen.append(lock.if_free(lambda: None))
            return ["note.md"]

        def hold() -> AbstractContextManager[object]:
            return lock.hold()

        seen: list[bool] = []
        Copy(place.made, place.made.parents[1], lambda _: seen.append(lock.if_free(lambda: None))).follow(
            place.folder, {"files": Unit(names, hold)}
        )
    assert seen == [False, False]


@pytest.mark.parametrize("damage", [b"", b"Call Bob", b"Call Ana, then Bob"])
def test_a_copy_that_rots_is_named(place: Place, damage: bytes) -> None:
    place.follow()
    (place.made / "note.md").write_bytes(damage)
    assert list(place.copy.wrong()) == ["note.md"]


@pytest.mark.parametrize(
    ("end", "kept"),
    [
        (TORN, b""),
        (TORN + b'{"id"', b""),
        (b'{"id":"b","type":"note"}', b'{"id":"b","type":"note"}'),
        (TORN + b'{"id":"c","type":"note"}', TORN + b'{"id":"c","type":"note"}'),
        (b'{"id":"b","ty', b'{"id":"b","ty'),
    ],
)
def test_of_a_log_all_is_copied_but_the_beginning_of_a_batch(place: Place, end: bytes, kept: bytes) -> None:
    place.write("log", FILES["log"] + end)
    place.follow()
    assert place.copied()["log"] == FILES["log"] + kept
    assert list(place.copy.wrong()) == []
