"""Grants of agents and tests of the home on homes that sync."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import keepstone
from keepstone.filesystem.layout import LAYOUTS, TESTS
from keepstone.operations.syncing import Synced, sync
from keepstone.store.memory_tests import MemoryTest, add_test, purge_text, remove_test
from keepstone.store.sharing.grants import MOST_BYTES

START = datetime(2026, 1, 11, 12, tzinfo=UTC)


class Devices:
    """Homes that share a folder, each with a clock of its own."""

    def __init__(self, folder: Path, *hours: int) -> None:
        self.folder = folder
        self.shared = folder / "shared"
        self.times = [START + timedelta(hours=one) for one in hours]
        self.homes = [self.opened(number) for number in range(len(hours))]
        for home in self.homes:
            home.agent("team").session("main").add("note", text="of the team", id="t")
            home.agent("coder").session("main").add("note", text="of the coder", id="c")

    def root(self, number: int) -> Path:
        return self.folder / f"home{number}"

    def opened(self, number: int) -> keepstone.Home:
        def now() -> datetime:
            self.times[number] += timedelta(seconds=1)
            return self.times[number]

        return keepstone.open(self.root(number), embedder="none", durability="os", clock=now)

    def sync(self, *numbers: int) -> Synced:
        for number in numbers or range(len(self.homes)):
            result = sync(self.homes[number], LAYOUTS["default"], self.shared)
        return result

    def settled(self) -> list[list[str]]:
        """Sync all twice; return for each home to whom the team grants."""
        self.sync()
        self.sync()
        files = {path.read_bytes() for path in self.folder.glob("home*/agents/team/memory/grants.ndjson")}
        assert len(files) <= 1
        return self.granted()

    def granted(self) -> list[list[str]]:
        return [[one.to for one in home.agent("team").grants()] for home in self.homes]

    def grants(self, number: int) -> Path:
        return self.root(number) / "agents/team/memory/grants.ndjson"

    def asked(self, number: int) -> list[str]:
        file = self.root(number) / TESTS
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line)["ask"] for line in lines]


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    made = Devices(tmp_path, 0, 0)
    made.homes[0].agent("team").grant("coder", "read")
    made.sync()
    return made


def test_a_grant_travels_and_counts(devices: Devices) -> None:
    assert devices.granted() == [["coder"], ["coder"]]
    found = devices.homes[1].agent("coder").recall("team", shared=["team"])
    assert [hit.entry.text for hit in found] == ["of the team"]


def test_a_revocation_travels(devices: Devices) -> None:
    devices.homes[1].agent("team").revoke("coder")
    assert devices.settled() == [[], []]


def test_grants_of_two_devices_both_stay(devices: Devices) -> None:
    devices.homes[0].agent("team").grant("ada")
    devices.homes[1].agent("team").grant("bo")
    assert [sorted(one) for one in devices.settled()] == [["ada", "bo", "coder"]] * 2


def test_a_grant_that_a_person_removed_from_the_file_stays_removed(devices: Devices) -> None:
    devices.grants(1).unlink()
    assert devices.settled() == [[], []]


def test_a_revocation_by_a_clock_that_is_behind_holds_everywhere(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 3, 0)
    devices.homes[0].agent("team").grant("coder", "write")
    devices.sync()
    devices.homes[1].agent("team").revoke("coder")
    assert devices.settled() == [[], []]


def test_a_grant_after_such_a_revocation_holds_everywhere(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 3, 0)
    devices.homes[0].agent("team").grant("coder", "write")
    devices.sync()
    devices.homes[1].agent("team").revoke("coder")
    devices.settled()
    devices.homes[1].agent("team").grant("coder", "read")
    assert devices.settled() == [["coder"], ["coder"]]
    assert {one.may for home in devices.homes for one in home.agent("team").grants()} == {"read"}


def test_a_purged_agent_is_granted_nothing_by_a_device_that_left(tmp_path: Path) -> None:
    devices = Devices(tmp_path, 0, 0, 0)
    devices.homes[2].agent("team").grant("coder", "read")
    devices.sync(2, 0, 1)
    devices.homes[0].purge_agent("coder")
    devices.sync(0, 1, 0, 1)
    devices.homes[0].agent("coder").session("main").add("note", text="another one")
    devices.sync(0, 1, 0, 1)
    assert devices.granted()[:2] == [[], []]
    assert not [path for path in devices.shared.rglob(".grants.ndjson") if b"coder" in path.read_bytes()]


def test_a_damaged_line_elsewhere_is_named_and_not_taken(devices: Devices) -> None:
    text = devices.grants(0).read_bytes() + b'{"to": "*", "may": "write"}\n'
    devices.grants(0).write_bytes(text)
    result = devices.sync(0)
    assert [one for one in result.skipped if "team/grants.ndjson" in one]
    assert [one for one in devices.shared.rglob(".grants.ndjson") if b"*" in one.read_bytes()] == []
    devices.sync(1)
    assert devices.granted() == [[], ["coder"]]


def test_grants_that_would_make_the_file_too_long_are_not_taken(devices: Devices) -> None:
    line = devices.grants(0).read_bytes()
    for number in (0, 1):
        long = json.loads(line) | {"to": f"x{number}", "by": "x" * (MOST_BYTES // 2)}
        with devices.grants(number).open("ab") as file:
            file.write(json.dumps(long).encode() + b"\n")
    devices.sync(0)
    assert any("more than" in one for one in devices.sync(1).skipped)
    assert [sorted(one) for one in devices.granted()] == [["coder", "x0"], ["coder", "x1"]]


def test_a_link_in_place_of_the_grants_is_not_followed(devices: Devices, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"")
    devices.grants(1).unlink()
    devices.grants(1).symlink_to(tmp_path / "elsewhere")
    assert any("team/grants.ndjson" in one for one in devices.sync(1).skipped)
    assert (tmp_path / "elsewhere").read_bytes() == b""


def test_tests_of_two_devices_both_stay_in_one_order(devices: Devices) -> None:
    add_test(devices.root(0), MemoryTest("1", "team", "first?", expect=("t",)))
    add_test(devices.root(1), MemoryTest("2", "team", "second?", expect=("t",)))
    devices.settled()
    assert sorted(devices.asked(0)) == ["first?", "second?"]
    assert devices.asked(0) == devices.asked(1)


def test_a_removed_test_stays_removed_and_leaves_no_byte(devices: Devices) -> None:
    add_test(devices.root(0), MemoryTest("1", "team", "about Ada?", expect=("t",)))
    devices.settled()
    purge_text(devices.root(1), "team", "ada")
    devices.sync(1)
    assert not [path for path in devices.shared.rglob(".tests.ndjson") if b"Ada" in path.read_bytes()]
    devices.settled()
    assert devices.asked(0) == devices.asked(1) == []


def test_a_removed_test_can_be_added_again(devices: Devices) -> None:
    test = MemoryTest("1", "team", "first?", expect=("t",))
    add_test(devices.root(0), test)
    devices.settled()
    remove_test(devices.root(1), "1")
    devices.settled()
    add_test(devices.root(0), test)
    devices.settled()
    assert devices.asked(1) == ["first?"]


def test_a_purge_takes_ids_out_of_the_tests_everywhere(devices: Devices) -> None:
    home = devices.homes[0]
    home.agent("team").session("main").add("note", text="x", id="private-id")
    add_test(home.root, MemoryTest("1", "team", "who?", expect=("private-id", "t")))
    devices.settled()
    home.agent("team").purge("private-id")
    devices.settled()
    for one in devices.homes:
        one.close()
    shutil.rmtree(devices.folder / "home0/.index")
    files = [path for path in devices.folder.rglob(f"*{TESTS}") if path.is_file()]
    assert not [path for path in files if b"private-id" in path.read_bytes()]
    assert devices.asked(1) == ["who?"]
