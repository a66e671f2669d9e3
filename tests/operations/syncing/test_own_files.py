"""Agents' own files on homes that sync."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.synced_homes import Devices

from keepstone.filesystem.layout import LAYOUTS, SYNC
from keepstone.operations.syncing import own_files
from keepstone.operations.syncing.devices import Device, digest
from keepstone.operations.syncing.ssh import answer_over_ssh
from keepstone.operations.syncing.stream import pack
from keepstone.store.files.file_deletions import name_digest


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    made = Devices(tmp_path, 3)
    made.write(0, "plans/today.md", "Call Ana\n")
    made.sync(0, 1, 2)
    return made


@pytest.mark.parametrize("layout", ["default", "bmad", "cache"])
def test_files_are_the_same_everywhere(tmp_path: Path, layout: str) -> None:
    devices = Devices(tmp_path, 2, layout)
    devices.write(0, "plans/today.md", "Call Ana\r\n")
    devices.write(1, "ä b.txt", "")
    assert devices.settled() == {"plans/today.md": "Call Ana\r\n", "ä b.txt": ""}


def test_an_edit_travels(devices: Devices) -> None:
    devices.write(1, "plans/today.md", "Call Bo\n")
    assert devices.settled() == {"plans/today.md": "Call Bo\n"}


def test_a_deletion_travels_and_takes_the_bytes_out_of_the_folder(devices: Devices) -> None:
    devices.agent(1).files.delete("plans/today.md")
    assert devices.settled() == {}
    assert devices.bytes_with(b"Call Ana") == []


def test_a_device_that_left_keeps_no_deleted_file_in_the_folder(devices: Devices) -> None:
    devices.agent(0).files.delete("plans/today.md")
    devices.sync(0, 1)
    left = {path for path in devices.bytes_with(b"Call Ana") if path.is_relative_to(devices.shared)}
    assert left == set()


def test_of_two_edits_the_later_one_stays_and_the_other_is_kept_beside_it(devices: Devices) -> None:
    devices.write(1, "plans/today.md", "from one\n")
    devices.write(2, "plans/today.md", "from two\n")
    os.utime(devices.root(1) / "agents/default/files/plans/today.md", ns=(1, 2**62))
    found = devices.settled()
    assert found.pop("plans/today.md") == "from one\n"
    [(name, text)] = found.items()
    assert name.startswith("plans/today (conflict ")
    assert (name[-4:], text) == (").md", "from two\n")


def test_a_copy_of_what_lost_stays_deleted(devices: Devices) -> None:
    devices.write(1, "plans/today.md", "from one\n")
    devices.write(2, "plans/today.md", "from two\n")
    devices.sync()  # Only some have resolved it, each by itself.
    [copy] = [name for name in devices.files(2) if "conflict" in name]
    devices.agent(2).files.delete(copy)
    assert list(devices.settled()) == ["plans/today.md"]


def test_the_same_edit_on_two_devices_is_no_conflict(devices: Devices) -> None:
    devices.write(1, "plans/today.md", "same\n")
    devices.write(2, "plans/today.md", "same\n")
    assert devices.settled() == {"plans/today.md": "same\n"}


def test_an_end_wins_over_an_edit_which_is_kept_beside_it(devices: Devices) -> None:
    devices.agent(1).files.delete("plans/today.md")
    devices.write(2, "plans/today.md", "edited\n")
    found = devices.settled()
    assert "plans/today.md" not in found
    assert list(found.values()) == ["edited\n"]


def test_an_end_elsewhere_leaves_a_later_life_alone(devices: Devices) -> None:
    devices.agent(1).files.delete("plans/today.md")
    devices.write(1, "plans/today.md", "again\n")
    devices.agent(2).files.delete("plans/today.md")
    assert devices.settled() == {"plans/today.md": "again\n"}


def test_an_end_leaves_a_file_alone_that_its_device_never_had(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 2)
    devices.write(0, "a.md", "of 0")
    devices.sync(0)
    devices.write(1, "a.md", "of 1")
    devices.agent(0).files.delete("a.md")
    devices.sync(0)
    assert devices.settled() == {"a.md": "of 1"}


def test_a_file_can_be_written_again_with_the_same_text(devices: Devices) -> None:
    devices.agent(1).files.delete("plans/today.md")
    devices.settled()
    devices.write(2, "plans/today.md", "Call Ana\n")
    assert devices.settled() == {"plans/today.md": "Call Ana\n"}


def test_a_deletion_survives_the_deletion_of_the_index(devices: Devices) -> None:
    devices.agent(1).files.delete("plans/today.md")
    devices.sync(1)
    for number in range(3):
        devices.homes[number].close()
        shutil.rmtree(devices.root(number) / ".index")
        devices.reopen(number)
    assert devices.settled() == {}


@pytest.mark.parametrize("before_the_first_sync", [True, False])
def test_a_backup_brings_no_deleted_file_and_no_old_text_back(
    tmp_path: Path, *, before_the_first_sync: bool
) -> None:
    devices = Devices(tmp_path, 2)
    devices.write(0, "gone.md", "gone")
    devices.write(0, "edited.md", "old")
    if not before_the_first_sync:
        devices.sync()
    devices.homes[0].backup(tmp_path / "backup")
    devices.sync()
    devices.agent(1).files.delete("gone.md")
    devices.write(1, "edited.md", "new")
    devices.settled()
    devices.homes[0].close()
    shutil.rmtree(devices.root(0))
    shutil.copytree(tmp_path / "backup", devices.root(0))
    devices.reopen(0)
    assert devices.settled() == {"edited.md": "new"}


def test_an_edit_after_a_restoration_travels(devices: Devices, tmp_path: Path) -> None:
    devices.homes[0].backup(tmp_path / "backup")
    devices.write(0, "plans/today.md", "second\n")
    devices.settled()
    devices.homes[0].close()
    shutil.rmtree(devices.root(0))
    shutil.copytree(tmp_path / "backup", devices.root(0))
    devices.reopen(0)
    devices.write(0, "new.md", "new\n")
    assert devices.settled() == {"plans/today.md": "second\n", "new.md": "new\n"}


def test_a_purged_agent_has_no_files_anywhere_and_can_be_made_again(devices: Devices) -> None:
    devices.agent(0).session("main").add("note", text="x")
    devices.settled()
    devices.homes[1].purge_agent("default")
    assert devices.settled() == {}
    assert devices.bytes_with(b"Call Ana") == []
    assert all(home.agents() == [] for home in devices.homes)
    devices.write(2, "plans/today.md", "Call Ana\n")
    assert devices.settled() == {"plans/today.md": "Call Ana\n"}


def test_a_purged_agent_that_had_only_files_is_gone_everywhere(devices: Devices) -> None:
    devices.homes[1].purge_agent("default")
    assert devices.settled() == {}
    assert all(home.agents() == [] for home in devices.homes)


def test_an_agent_whose_folder_a_person_took_away_comes_back(devices: Devices) -> None:
    shutil.rmtree(devices.root(1) / "agents/default")
    assert devices.settled() == {"plans/today.md": "Call Ana\n"}


def test_a_file_gives_way_to_a_folder_of_its_name(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 3)
    devices.write(0, "a", "file")
    devices.write(1, "a/b", "below")
    devices.sync()
    found = devices.settled()
    assert found.pop("a/b") == "below"
    [(name, text)] = found.items()
    assert (name.startswith("a (conflict "), text) == (True, "file")


def test_a_file_takes_the_place_of_a_folder_that_is_empty_now(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 2)
    devices.write(0, "a/b", "below")
    devices.settled()
    devices.agent(0).files.delete("a/b")
    (devices.root(0) / "agents/default/files/a").rmdir()
    devices.write(0, "a", "file")
    assert devices.settled() == {"a": "file"}


def test_a_link_is_neither_followed_nor_given(devices: Devices, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("outside")
    folder = devices.root(1) / "agents/default/files"
    (folder / "link.md").symlink_to(tmp_path / "secret")
    (folder / "linked").symlink_to(tmp_path)
    devices.write(0, "link.md", "a file")
    devices.write(0, "linked/x.md", "below")
    devices.sync()
    result = devices.sync(1)
    assert (folder / "link.md").is_symlink()
    assert (tmp_path / "secret").read_text() == "outside"
    assert not (tmp_path / "x.md").exists()
    assert len(result.pending) == 2
    assert not [path for path in devices.bytes_with(b"outside") if path.is_relative_to(devices.shared)]


def test_a_hard_link_is_named_and_deletes_nothing_elsewhere(devices: Devices, tmp_path: Path) -> None:
    (tmp_path / "other").hardlink_to(devices.root(1) / "agents/default/files/plans/today.md")
    assert devices.sync(1).skipped == ["default/plans/today.md, which is a hard link"]
    devices.sync(0)
    assert devices.files(0) == {"plans/today.md": "Call Ana\n"}


def test_a_path_that_leaves_the_folder_is_refused(devices: Devices) -> None:
    [place] = [path for path in devices.shared.glob("devices/*") if path.name == devices.sync(0).device]
    shared = devices.shared.stat()
    key = name_digest("../../../escaped")
    raw = b'"../../../escaped"\nx'
    version = [1, digest(raw), [digest(raw)[:16]], ["a mark"], []]
    lie(place, key, raw, version)
    result = devices.sync(1)
    assert any("would leave its folder" in one for one in result.pending)
    assert devices.bytes_with(b"escaped") == [place / f"default/.file-{key}"]
    assert shared.st_ino == devices.shared.stat().st_ino


def lie(place: Path, key: str, raw: bytes, version: list[object]) -> None:
    """Let a device tell of a file that no keepstone writes."""
    agent = place / "default"
    (agent / f".file-{key}").write_bytes(raw)
    versions = json.loads((agent / ".files.json").read_bytes()) | {key: version}
    (agent / ".files.json").write_text(json.dumps(versions))
    lines = [json.loads(line) for line in (place / "manifest.ndjson").read_bytes().splitlines()]
    lines = [line for line in lines if line.get("file") not in (".files.json", None)]
    for name in (".files.json", f".file-{key}"):
        there = (agent / name).read_bytes()
        lines.append({"agent": "default", "file": name, "size": len(there), "sha256": digest(there)})
    text = "".join(f"{json.dumps(line)}\n" for line in lines)
    (place / "manifest.ndjson").write_text(text + '{"end":true}\n')


def test_a_file_that_is_too_long_is_named_and_left(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "MOST_BYTES", 100)
    devices.write(0, "long.md", "x" * 101)
    assert devices.sync(0).skipped == ["default/long.md, which is 101 B"]
    devices.sync(1)
    assert list(devices.files(1)) == ["plans/today.md"]


def test_an_exchange_in_which_nothing_changed_reads_no_file(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.sync()

    def refuse(*_: object) -> bytes:
        raise AssertionError("a file was read")

    monkeypatch.setattr(own_files, "content", refuse)
    monkeypatch.setattr(own_files, "packed", refuse)
    devices.sync()


def test_a_sync_that_is_killed_before_it_publishes_is_taken_up_by_the_next(
    devices: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    devices.write(0, "plans/today.md", "second\n")
    devices.sync(0)
    with monkeypatch.context() as patched:
        patched.setattr("keepstone.operations.syncing.Known.save", killed)
        with pytest.raises(KeyboardInterrupt):
            devices.sync(1)
    devices.write(0, "plans/today.md", "third\n")
    assert devices.settled() == {"plans/today.md": "third\n"}


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_write_during_the_sync_is_not_lost(devices: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    devices.write(0, "plans/today.md", "from 0\n")
    devices.sync(0)
    read = Device.read

    def late(device: Device, agent: str, file: str) -> bytes | None:
        if file.startswith(".file-"):
            devices.write(1, "plans/today.md", "written during it\n")
        return read(device, agent, file)

    with monkeypatch.context() as patched:
        patched.setattr(Device, "read", late)
        assert len(devices.sync(1).pending) == 1
    assert sorted(devices.settled().values()) == ["from 0\n", "written during it\n"]


def test_files_travel_over_ssh(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 2)
    devices.write(0, "a.md", "of 0")
    sent = devices.sync(0)
    with (tmp_path / "given").open("wb") as stream:
        pack(devices.shared, sent.device, stream)
    with (tmp_path / "given").open("rb") as stream, (tmp_path / "answer").open("wb") as answer:
        answer_over_ssh(devices.homes[1], LAYOUTS["default"], stream, answer)
    assert devices.files(1) == {"a.md": "of 0"}


def test_damaged_versions_of_a_home_are_named(devices: Devices) -> None:
    (devices.root(0) / SYNC / "versions.json").write_text("{")
    with pytest.raises(ValueError, match=r"versions\.json is damaged"):
        devices.sync(0)


_STEP = st.tuples(
    st.sampled_from(["write", "write", "delete", "sync", "sync", "index"]),
    st.integers(0, 2),
    st.sampled_from(["a", "b.md", "c/d"]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(_STEP, min_size=3, max_size=25))
def test_random_histories_settle_and_lose_nothing(steps: list[tuple[str, int, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        devices = Devices(Path(folder), 3)
        written: set[str] = set()
        replaced: set[str] = set()
        for at, (do, number, path) in enumerate(steps):
            there = devices.files(number)
            if do == "write":
                replaced.add(there.get(path, ""))
                devices.write(number, path, f"text {at}")
                written.add(f"text {at}")
            elif do == "delete" and path in there:
                replaced.add(there[path])
                devices.agent(number).files.delete(path)
            elif do == "sync":
                devices.sync(number)
            elif do == "index":
                devices.homes[number].close()
                shutil.rmtree(devices.root(number) / ".index", ignore_errors=True)
                devices.reopen(number)
        found = devices.settled()
        assert written - replaced <= {*found.values()}
        for home in devices.homes:
            home.close()
