"""Lives of agents' own files on homes that sync: which deletion ends which file."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from tests.synced_homes import Devices

import keepstone


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    return Devices(tmp_path, 2)


def test_a_write_of_the_very_text_that_was_deleted_elsewhere_stays(devices: Devices) -> None:
    devices.write(0, "today.md", "one")
    devices.sync(0)
    devices.agent(0).files.delete("today.md")
    devices.sync(0)

    devices.sync(1)
    devices.write(1, "today.md", "one")

    assert devices.settled() == {"today.md": "one"}


def test_a_deletion_leaves_a_file_of_the_same_text_alone_that_its_device_never_had(devices: Devices) -> None:
    devices.write(0, "today.md", "one")
    devices.write(1, "today.md", "one")
    devices.sync(1)

    devices.agent(0).files.delete("today.md")

    assert devices.settled() == {"today.md": "one"}


def test_a_second_deletion_leaves_a_file_alone_that_its_device_never_had(devices: Devices) -> None:
    for text in ("one", "two"):
        devices.write(0, "today.md", text)
        devices.sync(0)
        devices.agent(0).files.delete("today.md")
        devices.sync(0)

    devices.write(1, "today.md", "mine")

    assert devices.settled() == {"today.md": "mine"}


def test_deletions_on_two_devices_of_their_own_files_leave_none(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 3)
    devices.write(0, "today.md", "one")
    devices.sync(0, 1)
    devices.write(2, "today.md", "two")
    devices.agent(2).files.delete("today.md")
    devices.sync(2, 1)
    devices.agent(0).files.delete("today.md")

    assert devices.settled() == {}


@pytest.mark.parametrize("last", ["one", "two"])
def test_a_backup_from_before_a_file_was_exchanged_does_not_bring_it_back(
    devices: Devices, tmp_path: Path, last: str
) -> None:
    devices.sync()
    devices.write(0, "today.md", "one")
    copy = tmp_path / "copy"
    shutil.copytree(devices.root(0), copy)
    devices.write(0, "today.md", last)
    devices.sync()
    devices.agent(0).files.delete("today.md")
    devices.sync()

    devices.homes[1].close()
    shutil.rmtree(devices.root(1))
    shutil.copytree(copy, devices.root(1))
    devices.reopen(1)

    assert "today.md" not in devices.settled()


def test_a_deletion_of_a_clone_without_the_journal_counts(devices: Devices) -> None:
    devices.sync(1)
    devices.write(0, "today.md", "one")
    devices.sync(0)
    there = next(devices.root(0).rglob("today.md")).parent
    shutil.copytree(there, devices.root(1) / there.relative_to(devices.root(0)))
    devices.agent(1).files.delete("today.md")

    assert devices.settled() == {}


def test_an_edit_that_a_purge_of_the_agent_did_not_know_goes_too(devices: Devices) -> None:
    devices.agent(0, "ana").files.write("today.md", "one")
    devices.sync()
    devices.agent(1, "ana").files.write("today.md", "two")

    devices.homes[0].purge_agent("ana")
    devices.settled()

    assert [home.agents() for home in devices.homes] == [[], []]
    held = [path for path in devices.folder.rglob("*") if path.is_file() and b"two" in path.read_bytes()]
    assert held == []


def test_a_home_that_never_synced_keeps_no_journal_of_files(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        files = home.agent("coder").files
        files.write("today.md", "one")
        files.delete("today.md")
    assert not (tmp_path / "home/.keepstone/sync").exists()


def clone(devices: Devices) -> None:
    """Make the second home, which nobody used, a copy of the first."""
    devices.homes[1].close()
    shutil.copytree(devices.root(0), devices.root(1))
    devices.reopen(1)


def test_a_file_that_a_purge_of_its_agent_did_not_know_stays(devices: Devices) -> None:
    devices.agent(0, "ana").session("main").add("note", text="an entry")
    devices.agent(0, "ana").files.write("old.md", "old")
    devices.sync()
    devices.sync()
    devices.agent(1, "ana").files.write("new.md", "new")

    devices.homes[0].purge_agent("ana")
    devices.settled()

    for number in (0, 1):
        agent = devices.agent(number, "ana")
        assert [*agent.entries()] == []
        assert {path: agent.files.read(path) for path in agent.files.list()} == {"new.md": "new"}


def test_an_agent_is_gone_once_the_file_that_outlived_its_purge_is_deleted(devices: Devices) -> None:
    devices.agent(0, "ana").session("main").add("note", text="an entry")
    devices.sync()
    devices.agent(1, "ana").files.write("new.md", "new")
    devices.homes[0].purge_agent("ana")
    devices.settled()

    devices.agent(0, "ana").files.delete("new.md")
    devices.settled()

    assert [home.agents() for home in devices.homes] == [[], []]


def test_files_of_an_agent_purged_before_the_first_sync_do_not_come_back(devices: Devices) -> None:
    devices.agent(0, "ana").files.write("today.md", "one")
    clone(devices)
    devices.homes[0].purge_agent("ana")
    devices.settled()

    assert [home.agents() for home in devices.homes] == [[], []]


def test_names_that_differ_by_case_both_travel(devices: Devices) -> None:
    devices.write(0, "Today.md", "one")
    devices.write(1, "today.md", "two")
    devices.write(1, "caf\u00e9.md", "three")
    devices.write(0, "cafe\u0301.md", "")

    assert devices.settled() == {
        "Today.md": "one",
        "today.md": "two",
        "caf\u00e9.md": "three",
        "cafe\u0301.md": "",
    }


def test_a_purged_binary_file_is_gone_everywhere(devices: Devices) -> None:
    devices.agent(0, "ana").files.write("note.md", "text")
    place = next(devices.root(0).rglob("note.md")).parent
    (place / "bin").write_bytes(b"\xff\xfeSECRET")
    devices.sync()

    devices.homes[0].purge_agent("ana")
    devices.settled()

    held = [path for path in devices.folder.rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]
    assert held == []


def test_a_purged_agent_whose_files_no_sync_took_is_not_brought_back(devices: Devices) -> None:
    devices.agent(0, "ana").files.write("note.md", "text")
    devices.sync()
    devices.agent(0, "ana").files.write("note.md", "later")
    devices.agent(0, "ana").files.write("more.md", "later")
    devices.homes[0].purge_agent("ana")
    devices.agent(0, "ana").files.write("note.md", "again")
    devices.settled()
    for number in (0, 1):
        files = devices.agent(number, "ana").files
        assert {path: files.read(path) for path in files.list()} == {"note.md": "again"}


def test_a_file_of_before_1970_travels(devices: Devices) -> None:
    devices.write(0, "today.md", "one")
    os.utime(next(devices.root(0).rglob("today.md")), (-100, -100))

    assert devices.settled() == {"today.md": "one"}


def test_files_and_folders_of_one_name_settle_in_two_rounds(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 3)
    for number, path in enumerate(("a", "a/b", "a/b/c")):
        devices.write(number, path, path)

    found = devices.settled()

    assert found["a/b/c"] == "a/b/c"
    assert sorted(found.values()) == ["a", "a/b", "a/b/c"]


def test_a_file_takes_the_place_of_folders_in_folders_that_are_empty(devices: Devices) -> None:
    devices.write(0, "a/b/c", "one")
    devices.agent(0).files.delete("a/b/c")
    devices.write(1, "a", "two")

    assert devices.settled() == {"a": "two"}
