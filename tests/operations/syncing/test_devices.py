"""The folder that homes share: its format, a name for each home, and manifests."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import SYNC
from keepstone.operations.syncing.devices import (
    MANIFEST,
    Device,
    check_format,
    content,
    content_or_none,
    device_name,
    digest,
    listing,
    write_manifest,
)

PLACE = "devices/one"
FILES = {("a", "x.ndjson"): b"first\n", ("a", ".archive/x.ndjson"): b"old\n"}


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "shared", create=True) as folder:
        yield folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / SYNC).mkdir(parents=True)
    return tmp_path / "home"


def given(shared: Folder, home: Path, place: str = PLACE) -> Device:
    """Return a device that published the files."""
    for (agent, file), raw in FILES.items():
        path = shared.path / place / agent / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    files = {key: (len(raw), digest(raw)) for key, raw in FILES.items()}
    write_manifest(home, shared, place, listing(files))
    return Device(shared, place)


def test_a_file_counts_as_its_manifest_says(shared: Folder, home: Path) -> None:
    device = given(shared, home)
    assert device.is_whole
    assert {key: device.read(*key) for key in device.listed} == FILES


@pytest.mark.parametrize("raw", [b"", b"first", b"other\n", b"first\nmore"])
def test_a_file_that_is_not_as_its_manifest_says_does_not_count(
    shared: Folder, home: Path, raw: bytes
) -> None:
    device = given(shared, home)
    (shared.path / PLACE / "a" / "x.ndjson").write_bytes(raw)
    assert device.read("a", "x.ndjson") is None


def test_a_missing_file_does_not_count(shared: Folder, home: Path) -> None:
    device = given(shared, home)
    (shared.path / PLACE / "a" / "x.ndjson").unlink()
    assert device.read("a", "x.ndjson") is None


def test_a_link_in_place_of_a_file_is_not_followed(shared: Folder, home: Path, tmp_path: Path) -> None:
    device = given(shared, home)
    path = shared.path / PLACE / "a" / "x.ndjson"
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert device.read("a", "x.ndjson") is None


def test_a_manifest_without_its_end_is_not_whole(shared: Folder, home: Path) -> None:
    given(shared, home)
    path = shared.path / PLACE / MANIFEST
    path.write_bytes(path.read_bytes().removesuffix(b'{"end":true}\n'))
    assert not Device(shared, PLACE).is_whole


def test_a_folder_without_a_manifest_has_no_files(shared: Folder) -> None:
    device = Device(shared, PLACE)
    assert (device.is_whole, device.listed) == (False, {})


def test_files_of_an_agent_that_is_left_out_are_not_listed(shared: Folder, home: Path) -> None:
    device = given(shared, home)
    device.leave_out("b")
    assert len(device.listed) == 2
    device.leave_out("a")
    assert device.listed == {}


def test_a_rewritten_device_is_as_whole_as_before(shared: Folder, home: Path) -> None:
    given(shared, home).rewrite({("a", "x.ndjson"): b"less\n", ("a", ".archive/x.ndjson"): b""})
    device = Device(shared, PLACE)
    assert device.is_whole
    assert {key: device.read(*key) for key in device.listed} == {("a", "x.ndjson"): b"less\n"}
    assert not (shared.path / PLACE / "a" / ".archive" / "x.ndjson").exists()


def test_a_home_keeps_its_name(shared: Folder, home: Path) -> None:
    name = device_name(home, shared)
    assert device_name(home, shared) == name
    given(shared, home, f"devices/{name}")
    assert device_name(home, shared) == name


def test_a_home_knows_its_folder_after_others_rewrote_it_twice(shared: Folder, home: Path) -> None:
    name = device_name(home, shared)
    device = given(shared, home, f"devices/{name}")
    device.rewrite({("a", "x.ndjson"): b"less\n"})
    device.rewrite({("a", "x.ndjson"): b"even less\n"})
    assert device_name(home, shared) == name


def test_a_home_whose_name_a_copy_uses_takes_another(shared: Folder, home: Path, tmp_path: Path) -> None:
    name = device_name(home, shared)
    copied = tmp_path / "copy"
    (copied / SYNC).mkdir(parents=True)
    shared.make_folder(f"devices/{name}")
    write_manifest(copied, shared, f"devices/{name}", listing({("a", "y"): (1, "0")}))
    assert device_name(home, shared) != name


def test_a_manifest_that_is_still_arriving_takes_no_name_away(shared: Folder, home: Path) -> None:
    name = device_name(home, shared)
    (shared.path / "devices" / name).mkdir(parents=True)
    (shared.path / "devices" / name / MANIFEST).write_text('{"agent": "a"')
    assert device_name(home, shared) == name


def test_a_home_remembers_only_its_newest_manifests(
    shared: Folder, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.operations.syncing.devices._REMEMBERED", 3)
    name = device_name(home, shared)
    place = f"devices/{name}"
    given(shared, home, place)
    first = (shared.path / place / MANIFEST).read_bytes()
    for number in range(3):
        write_manifest(home, shared, place, listing({("a", "x"): (number, "0")}))
    (shared.path / place / MANIFEST).write_bytes(first)
    assert device_name(home, shared) != name


def test_a_new_folder_is_marked_and_an_own_one_is_taken(shared: Folder) -> None:
    check_format(shared)
    check_format(shared)
    assert json.loads((shared.path / "keepstone-sync.json").read_text()) == {"format": 1}


@pytest.mark.parametrize(
    ("mark", "said"),
    [
        ('{"format": 2}', "is of format 2, newer than 1: update keepstone"),
        ('{"format": 0}', "does not say a format"),
        ('{"format": true}', "does not say a format"),
        ("photo", "it begins with b'photo'"),
    ],
)
def test_a_folder_of_another_format_is_refused(shared: Folder, mark: str, said: str) -> None:
    (shared.path / "keepstone-sync.json").write_text(mark)
    with pytest.raises(ValueError, match=said):
        check_format(shared)


def test_a_mark_that_a_service_emptied_counts_as_ours(shared: Folder) -> None:
    (shared.path / "keepstone-sync.json").write_text("")
    check_format(shared)


def test_a_longer_file_than_its_bound_is_refused(shared: Folder) -> None:
    (shared.path / "x").write_bytes(b"four")
    assert content(shared, "x", 4) == b"four"
    with pytest.raises(ValueError, match="x has 4 bytes, more than 3: remove it"):
        content(shared, "x", 3)
    assert content_or_none(shared, "y") is None


def test_a_listing_is_in_one_order() -> None:
    files = {("b", "y"): (1, "2"), ("a", "x"): (3, "4")}
    assert listing(files) == listing(dict(reversed(files.items())))
    assert json.loads(listing(files)[0]) == {"agent": "a", "file": "x", "size": 3, "sha256": "4"}
