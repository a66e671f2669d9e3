"""Publishing a home's sessions: each changed file again, the manifest last."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Home
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import ARCHIVE, LAYOUTS, PURGED, SYNC
from keepstone.operations.syncing.devices import Device
from keepstone.operations.syncing.exchanged import Exchanged
from keepstone.operations.syncing.giving import give
from keepstone.operations.syncing.taking import LocalHome, Synced

PLACE = "devices/one"
LAYOUT = LAYOUTS["default"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        home.agent("a").session("main").add("note", text="first", id="first")
        home.agent("a").session("other").add("note", text="second", id="second")
        yield home


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "shared", create=True) as folder:
        yield folder


def given(home: Home, shared: Folder) -> Device:
    """Publish a home, and return what the device has then."""
    (home.root / SYNC).mkdir(parents=True, exist_ok=True)
    exchanged = Exchanged.load(home.root)
    give(LocalHome(home, LAYOUT, Synced(), exchanged), shared, PLACE, [], [])
    exchanged.save(home.root)
    return Device(shared, PLACE)


def stamps(shared: Folder) -> dict[str, int]:
    files = [path for path in (shared.path / PLACE / "a").rglob("*") if path.is_file()]
    return {path.name: path.stat().st_ino for path in files}


def test_every_session_is_published_whole(home: Home, shared: Folder) -> None:
    device = given(home, shared)
    assert device.is_whole
    assert {file for _, file in device.listed} == {
        "main.ndjson",
        "other.ndjson",
        PURGED,
        ".suggestions.ndjson",
    }
    assert all(device.read(*key) is not None for key in device.listed)
    assert b'"first"' in (device.read("a", "main.ndjson") or b"")


def test_only_what_changed_is_written_again(home: Home, shared: Folder) -> None:
    given(home, shared)
    before = stamps(shared)
    home.agent("a").session("main").add("note", text="more")
    given(home, shared)
    after = stamps(shared)
    assert {name for name in after if after[name] != before.get(name)} == {"main.ndjson"}


def test_a_session_that_was_removed_goes_from_the_folder(home: Home, shared: Folder) -> None:
    given(home, shared)
    home.agent("a").session("other").remove()
    device = given(home, shared)
    assert ("a", "other.ndjson") not in device.listed
    assert not (shared.path / PLACE / "a" / "other.ndjson").exists()


def test_a_purged_entry_leaves_no_byte_in_the_folder(home: Home, shared: Folder) -> None:
    given(home, shared)
    home.agent("a").session("main").purge("first")
    device = given(home, shared)
    assert not [path for path in shared.path.rglob("*") if path.is_file() and b"first" in path.read_bytes()]
    assert device.read("a", PURGED)


def test_a_compacted_session_is_published_with_its_archive(home: Home, shared: Folder) -> None:
    home.agent("a").session("main").update("first", text="changed")
    home.agent("a").session("main").compact()
    device = given(home, shared)
    archived = device.read("a", f"{ARCHIVE}/main.ndjson")
    assert archived is not None
    assert b'"text":"first"' in archived.replace(b": ", b":")


def test_a_file_that_was_changed_in_the_folder_is_written_again(home: Home, shared: Folder) -> None:
    device = given(home, shared)
    wanted = device.read("a", "main.ndjson")
    (shared.path / PLACE / "manifest.ndjson").unlink()
    (shared.path / PLACE / "a" / "main.ndjson").write_bytes(b"changed by a service")
    assert given(home, shared).read("a", "main.ndjson") == wanted


def test_a_purged_agent_is_published_as_a_digest_with_its_journal_alone(home: Home, shared: Folder) -> None:
    given(home, shared)
    home.purge_agent("a")
    device = given(home, shared)
    assert "a" not in {agent for agent, _ in device.listed}
    assert {file for _, file in device.listed} == {PURGED}
