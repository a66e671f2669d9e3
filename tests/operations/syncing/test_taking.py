"""Taking in what other devices published, file by file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import keepstone
from keepstone import Home
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import LAYOUTS, PURGED, SYNC
from keepstone.log.sides import side_of
from keepstone.operations.syncing.devices import Device, digest, listing, write_manifest
from keepstone.operations.syncing.exchanged import Exchanged
from keepstone.operations.syncing.taking import LocalHome, Synced, entries, published, sessions

LAYOUT = LAYOUTS["default"]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        home.agent("a").session("main").add("note", text="ours", id="ours", ts="2026-01-11T14:31:00Z")
        (home.root / SYNC).mkdir(parents=True, exist_ok=True)
        yield home


@pytest.fixture
def shared(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "shared", create=True) as folder:
        yield folder


def note(name: str, text: str = "theirs", second: int = 1) -> dict[str, Any]:
    return {"id": name, "ts": f"2026-01-11T14:31:{second:02}Z", "type": "note", "text": text}


def lines(*records: Any) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def device(shared: Folder, root: Path, agent: str = "a", **files: bytes) -> Device:
    """Return a device that published these files of an agent, ``_`` for the dot of a name."""
    listed = {}
    for name, raw in files.items():
        file = name.replace("__", "/").replace("_", ".")
        path = shared.path / "devices" / "other" / agent / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        listed[agent, file] = len(raw), digest(raw)
    write_manifest(root, shared, "devices/other", listing(listed))
    return Device(shared, "devices/other")


def local(home: Home) -> LocalHome:
    return LocalHome(home, LAYOUT, Synced(), Exchanged({}))


def ids(home: Home, session: str = "main") -> list[str]:
    return [entry.id for entry in home.agent("a").session(session).entries()]


def test_lines_of_another_device_are_merged_by_time(home: Home, shared: Folder) -> None:
    taking = local(home)
    taking.take(device(shared, home.root, main_ndjson=lines(note("theirs"))))
    assert taking.result.changed == ["a/main"]
    home.sync()
    assert ids(home) == ["ours", "theirs"]


def test_taking_the_same_again_changes_nothing(home: Home, shared: Folder) -> None:
    other = device(shared, home.root, main_ndjson=lines(note("theirs")))
    local(home).take(other)
    again = local(home)
    again.take(other)
    assert again.result.changed == []


def test_a_file_that_has_not_arrived_whole_waits(home: Home, shared: Folder) -> None:
    other = device(shared, home.root, main_ndjson=lines(note("theirs")))
    (shared.path / "devices/other/a/main.ndjson").write_bytes(b"half")
    taking = local(home)
    taking.take(other)
    assert (taking.result.changed, taking.result.pending) == ([], ["devices/other/a/main.ndjson"])


def test_a_damaged_line_is_left_there_and_counted(home: Home, shared: Folder) -> None:
    raw = lines(note("theirs")) + b"{damaged\n"
    taking = local(home)
    taking.take(device(shared, home.root, main_ndjson=raw))
    home.sync()
    assert ids(home) == ["ours", "theirs"]
    assert taking.result.skipped == ["1 line of devices/other/a/main.ndjson"]


def test_a_session_of_damage_alone_makes_neither_session_nor_agent(home: Home, shared: Folder) -> None:
    local(home).take(device(shared, home.root, agent="b", new_ndjson=b"{damaged\n"))
    assert home.agents() == ["a"]


def test_a_manifest_that_is_not_whole_gives_nothing(home: Home, shared: Folder) -> None:
    device(shared, home.root, main_ndjson=lines(note("theirs")))
    path = shared.path / "devices/other/manifest.ndjson"
    path.write_bytes(path.read_bytes().removesuffix(b'{"end":true}\n'))
    taking, other = local(home), Device(shared, "devices/other")
    taking.take_erasures(other)
    taking.take(other)
    assert (taking.result.pending, taking.result.changed) == (["devices/other/manifest.ndjson"], [])


def test_what_was_purged_here_is_not_taken_and_goes_from_the_folder(home: Home, shared: Folder) -> None:
    session = home.agent("a").session("main")
    session.add("note", text="the secret", id="secret", ts="2026-01-11T14:31:05Z")
    raw = lines(note("theirs"), note("secret", "the secret", 5))
    session.purge("secret")
    taking = local(home)
    taking.take(device(shared, home.root, main_ndjson=raw))
    home.sync()
    assert ids(home) == ["ours", "theirs"]
    published_now = (shared.path / "devices/other/a/main.ndjson").read_bytes()
    assert (b"secret" in published_now, b"theirs" in published_now) == (False, True)


def test_an_erasure_elsewhere_is_carried_out_here(home: Home, shared: Folder, tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "other", embedder="none", durability="os") as other:
        other.agent("a").session("main").add("note", text="ours", id="ours", ts="2026-01-11T14:31:00Z")
        other.agent("a").session("main").purge("ours")
        (journal,) = (tmp_path / "other").rglob(PURGED)
        raw = journal.read_bytes()
    path = shared.path / "devices" / "other" / "a" / PURGED
    path.parent.mkdir(parents=True)
    path.write_bytes(raw)
    write_manifest(home.root, shared, "devices/other", listing({("a", PURGED): (len(raw), digest(raw))}))
    taking = local(home)
    taking.take_erasures(Device(shared, "devices/other"))
    assert (taking.result.purged, ids(home)) == (1, [])


def test_a_folder_that_is_no_agents_slug_is_named_and_left_out(home: Home, shared: Folder) -> None:
    other = device(shared, home.root, agent="Not A Slug", main_ndjson=lines(note("theirs")))
    taking = local(home)
    taking.take_erasures(other)
    assert taking.result.pending == ["'Not A Slug': it is not an agent's slug"]
    assert other.listed == {}


def test_counts_of_accesses_are_published_for_live_entries_only() -> None:
    raw = lines(note("a"), {"id": "a", "access": 3}, note("b"), {"id": "b", "access": 2}) + lines(
        {"id": "b", "ts": "2026-01-11T14:32:00Z", "deleted": True}
    )
    side = side_of(raw)
    made = [json.loads(line) for line in published(side.log, side).splitlines()]
    assert {line["id"]: line["access"] for line in made if "access" in line} == {"a": 3}
    assert "access" not in published(side.log, None).decode()


def test_what_is_published_is_merged_back_to_the_same_lines() -> None:
    side = side_of(lines(note("a"), note("b", second=2)))
    again = side_of(published(side.log, side))
    assert [line.key for line in again.log] == [line.key for line in side.log]


def test_hidden_names_and_missing_folders_have_no_entries(shared: Folder) -> None:
    (shared.path / "x").write_text("")
    (shared.path / ".hidden").write_text("")
    assert entries(shared, "") == ["x"]
    assert entries(shared, "missing") == []
    assert entries(shared, "x") == []


def test_a_link_among_the_logs_is_no_session(home: Home, tmp_path: Path) -> None:
    folder = LAYOUT.sessions_folder(home.root, "a")
    (tmp_path / "elsewhere.ndjson").write_bytes(lines(note("x")))
    (folder / "link.ndjson").symlink_to(tmp_path / "elsewhere.ndjson")
    with Folder(folder) as opened:
        assert sessions(opened, LAYOUT) == {"main": "main.ndjson"}
