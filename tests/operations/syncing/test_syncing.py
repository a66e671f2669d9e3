"""Homes that sync over a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keepstone
from keepstone.agent import Agent
from keepstone.cli.app import app
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.syncing import Synced, sync
from keepstone.operations.syncing.devices import MOST_LISTED

LAYOUT = LAYOUTS["default"]


class Devices:
    """Some homes and the folder that they share."""

    def __init__(self, folder: Path, count: int = 2) -> None:
        self.shared = folder / "shared"
        self.homes = [
            keepstone.open(folder / f"home{n}", embedder="none", durability="os") for n in range(count)
        ]

    def agent(self, number: int) -> Agent:
        return self.homes[number].agent("a")

    def sync(self, *numbers: int) -> Synced:
        for number in numbers or range(len(self.homes)):
            result = sync(self.homes[number], LAYOUT, self.shared)
        return result

    def memory(self, number: int) -> list[tuple[str, str, str]]:
        return [(entry.session, entry.id, entry.text) for entry in self.agent(number).iter_entries()]

    def settled(self) -> list[tuple[str, str, str]]:
        """Sync all until nothing changes, and return the memory that all have then."""
        self.sync()
        self.sync()
        states = [self.memory(number) for number in range(len(self.homes))]
        assert all(state == states[0] for state in states)
        assert self.sync().changed == []
        return states[0]


@pytest.fixture
def devices(tmp_path: Path) -> Devices:
    made = Devices(tmp_path)
    made.agent(0).session("main").add_many([{"type": "note", "text": f"first {n}", "id": n} for n in "abc"])
    made.sync(0, 1)
    return made


def test_two_homes_come_to_the_same_state(devices: Devices) -> None:
    assert devices.memory(1) == devices.memory(0)
    devices.agent(0).session("main").add("note", text="from 0", id="x")
    devices.agent(1).session("main").add("note", text="from 1", id="y")
    devices.agent(1).session("other").add("note", text="new session", id="z")
    assert {name for _, name, _ in devices.settled()} == set("abcxyz")


def test_a_deletion_travels_and_wins_over_an_edit(devices: Devices) -> None:
    devices.agent(0).delete("a")
    devices.agent(0).session("main").compact()
    devices.agent(1).update("a", text="edited")
    devices.agent(1).update("b", text="edited")
    assert [text for _, _, text in devices.settled()] == ["edited", "first c"]


def test_a_deletion_can_be_undone_everywhere(devices: Devices) -> None:
    devices.agent(0).delete("a")
    devices.settled()
    devices.agent(1).restore("a")
    assert {name for _, name, _ in devices.settled()} == set("abc")


def test_a_purge_travels_and_removes_bytes(devices: Devices, tmp_path: Path) -> None:
    devices.agent(1).update("a", text="a text that must go")
    devices.settled()
    devices.agent(1).session("main").compact()
    devices.agent(0).purge("a")
    devices.settled()
    for home in devices.homes:
        home.close()
    assert {name for _, name, _ in devices.memory(1)} == set("bc")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if b"a text that must go" in path.read_bytes()]


def test_a_removed_session_and_a_purged_agent_do_not_come_back(devices: Devices) -> None:
    devices.agent(0).session("other").add("note", text="x", id="x")
    devices.homes[0].agent("b").session("main").add("note", text="of b", id="b1")
    devices.settled()
    devices.agent(0).session("other").remove()
    devices.homes[0].purge_agent("b")
    devices.settled()
    assert devices.homes[0].agents() == ["a"]
    assert devices.homes[1].agent("b").count() == 0
    assert {session for session, _, _ in devices.memory(1)} == {"main"}


def test_a_compaction_elsewhere_repeats_nothing_here(devices: Devices) -> None:
    devices.agent(0).update("a", text="second")
    devices.settled()
    devices.agent(0).session("main").compact()
    devices.settled()
    sizes = [devices.agent(number).session("main").info() for number in (0, 1)]
    devices.settled()
    assert [devices.agent(number).session("main").info() for number in (0, 1)] == sizes


def test_a_half_copied_file_is_left_for_the_next_time(devices: Devices) -> None:
    devices.agent(0).session("main").add("note", text="new", id="new")
    devices.sync(0)
    (file,) = [path for path in devices.shared.rglob("main.ndjson") if b"new" in path.read_bytes()]
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) - 20])
    result = devices.sync(1)
    assert [name.rpartition("/")[2] for name in result.pending] == ["main.ndjson"]
    assert "new" not in {name for _, name, _ in devices.memory(1)}
    file.write_bytes(whole)
    assert devices.sync(1).changed == ["a/main"]


def test_a_manifest_that_has_not_arrived_whole_is_left_for_the_next_time(devices: Devices) -> None:
    devices.agent(0).session("main").add("note", text="new", id="new")
    devices.sync(0)
    for manifest in devices.shared.rglob("manifest.ndjson"):
        manifest.write_bytes(manifest.read_bytes()[:-5])
    assert len(devices.sync(1).pending) == 1
    assert "new" not in {name for _, name, _ in devices.memory(1)}


@pytest.mark.parametrize(
    "name", ["main (Ada's conflicted copy 2026-01-11)", "main.sync-conflict-20260111-143100-ABCDEFG"]
)
def test_a_conflicting_copy_is_named_by_the_doctor_and_merged(devices: Devices, name: str) -> None:
    folder = devices.homes[0].root / "agents" / "a" / "memory" / "sessions"
    shutil.copy(folder / "main.ndjson", folder / f"{name}.ndjson")
    devices.agent(0).session(name).add("note", text="only in the copy", id="copy")
    findings = [one for one in devices.homes[0].doctor() if "conflicting copy" in one.message]
    assert [one.subject for one in findings] == [f"a/{name}"]
    assert devices.sync(0).merged_copies == [f"a/{name}"]
    assert [info.id for info in devices.agent(0).sessions()] == ["main"]
    assert "copy" in {one for _, one, _ in devices.settled()}


@pytest.mark.parametrize("place", ["home0/inside", ".", "home0"])
def test_a_folder_in_or_around_the_home_is_refused(devices: Devices, tmp_path: Path, place: str) -> None:
    with pytest.raises(ValueError, match="contain each other"):
        sync(devices.homes[0], LAYOUT, tmp_path / place)


def test_a_newer_folder_is_refused_and_left(devices: Devices) -> None:
    (devices.shared / "keepstone-sync.json").write_text('{"format": 2}', "utf-8")
    before = sorted(devices.shared.rglob("*"))
    with pytest.raises(ValueError, match="format 2"):
        devices.sync(0)
    assert sorted(devices.shared.rglob("*")) == before


def test_hostile_names_in_a_manifest_touch_nothing(devices: Devices, tmp_path: Path) -> None:
    evil = devices.shared / "devices" / "evil"
    evil.mkdir()
    lines = [
        '{"agent":"../../x","file":"main.ndjson","size":1,"sha256":"x"}',
        '{"agent":"a","file":"../../../etc.ndjson","size":1,"sha256":"x"}',
        '{"end":true}',
    ]
    (evil / "manifest.ndjson").write_text("\n".join(lines), "utf-8")
    before = devices.memory(0)
    assert len(devices.sync(0).pending) == 1
    assert devices.memory(0) == before
    assert not list(tmp_path.rglob("etc*"))


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        home.agent("a").session("main").add("note", text="x")
    words = ["sync", str(tmp_path / "shared"), "--home"]
    done = CliRunner().invoke(app, [*words, str(tmp_path / "home"), "--json"])
    lists: dict[str, list[str]] = {
        "changed": [],
        "pending": [],
        "skipped": [],
        "merged_copies": [],
        "files": [],
    }
    assert json.loads(done.stdout) == {"devices": 0, "purged": 0} | lists
    done = CliRunner().invoke(app, [*words, str(tmp_path / "other")])
    assert "1 other home: 1 session changed" in done.stdout


def test_a_home_and_its_copy_exchange_what_they_remember(devices: Devices, tmp_path: Path) -> None:
    devices.homes[0].close()
    shutil.copytree(tmp_path / "home0", tmp_path / "copy")
    devices.homes = [
        keepstone.open(tmp_path / name, embedder="none", durability="os") for name in ("home0", "copy")
    ]
    devices.agent(0).session("main").add("note", text="original", id="original")
    devices.agent(1).session("main").add("note", text="copy", id="copy")
    assert {"original", "copy"} <= {name for _, name, _ in devices.settled()}


def test_a_folder_below_a_missing_one_is_refused(devices: Devices, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not-mounted is not a folder: mount it"):
        sync(devices.homes[0], LAYOUT, tmp_path / "not-mounted" / "shared")
    assert not (tmp_path / "not-mounted").exists()


@pytest.mark.parametrize("mark", [b"[]", b'{"format":"9"}', b"{", b"7", b'{"format":true}', b'{"format":0}'])
def test_a_mark_that_says_no_format_is_named_and_left(devices: Devices, mark: bytes) -> None:
    path = devices.shared / "keepstone-sync.json"
    path.write_bytes(mark)
    with pytest.raises(ValueError, match=r"keepstone-sync.json does not say a format.*remove this file"):
        devices.sync(0)
    assert path.read_bytes() == mark


def test_damaged_lines_of_another_device_are_left_out_and_named(devices: Devices) -> None:
    log = devices.homes[1].root / "agents/a/memory/sessions/noise.ndjson"
    log.write_bytes(
        bytes(range(256)) * 20 + b'\n{"id":"z","ts":"2026-01-11T14:31:00Z","text":"sound"}\n[1]\n'
    )
    devices.sync(1)
    assert [one.partition(" of devices/")[0] for one in devices.sync(0).skipped] == ["22 lines"]
    written = (devices.homes[0].root / "agents/a/memory/sessions/noise.ndjson").read_bytes()
    assert written == b'{"id":"z","ts":"2026-01-11T14:31:00Z","text":"sound"}\n'
    assert devices.sync(0).changed == []


def test_a_log_of_damage_alone_makes_no_session(devices: Devices) -> None:
    (devices.homes[1].root / "agents/a/memory/sessions/noise.ndjson").write_bytes(b"\xff\x00[[[\n")
    devices.sync(1)
    result = devices.sync(0)
    assert (result.changed, len(result.skipped)) == ([], 1)
    assert [info.id for info in devices.agent(0).sessions()] == ["main"]


def test_suggestions_and_decisions_travel(devices: Devices) -> None:
    made = devices.agent(0).suggest("pin", ["a"], why="from 0")
    devices.agent(1).suggest("pin", ["b"], why="from 1")
    devices.settled()
    assert [one.why for one in devices.agent(1).suggestions()] == ["from 1", "from 0"]
    devices.agent(1).accept(made.id, by="Ada")
    devices.settled()
    [accepted] = devices.agent(0).suggestions("accepted")
    assert (accepted.id, accepted.decided_by, devices.agent(0).get("a").pinned) == (made.id, "Ada", True)


def test_a_rejection_that_was_taken_back_stays_so_on_all_devices(devices: Devices) -> None:
    made = devices.agent(0).suggest("pin", ["a"], why="from 0")
    devices.settled()
    for number in (0, 1):
        devices.agent(number).reject(made.id, by=f"person {number}")
    devices.settled()
    devices.agent(1).undo(made.id)
    devices.settled()
    assert [devices.agent(number).suggestions() for number in (0, 1)] == [[made], [made]]


def test_a_purged_suggestion_does_not_come_back(devices: Devices) -> None:
    devices.agent(0).suggest("pin", ["a"], why="secret words")
    devices.agent(0).suggest("add", item="other words", why="x")
    devices.settled()
    devices.agent(0).purge_matching("other words")
    devices.agent(1).suggest("pin", ["a"], why="more secret words")
    devices.agent(0).purge("a")
    devices.settled()
    assert [devices.agent(number).suggestions(None) for number in (0, 1)] == [[], []]
    assert not any(
        "words" in path.read_text("utf-8", "replace")
        for path in devices.shared.rglob("*.*")
        if path.is_file()
    )


def test_homes_of_one_agent_sync_without_suggestions(tmp_path: Path) -> None:
    layout = LAYOUTS["bmad"]
    for name in ("one", "two"):
        with keepstone.open(tmp_path / name, layout=layout) as home:
            home.agent("default").add(f"from {name}")
            sync(home, layout, tmp_path / "shared")
    with keepstone.open(tmp_path / "two", layout=layout) as home:
        assert {entry.text for entry in home.agent("default").entries()} == {"from one", "from two"}


def test_origins_travel_and_with_them_trust(devices: Devices) -> None:
    devices.agent(0).session("main").add("note", text="from a page", id="page", origin="tool")
    devices.agent(0).session("main").add("note", text="of it", id="of it", derived_from=["page"])
    devices.settled()
    assert [devices.agent(1).get(name).trust for name in ("a", "page", "of it")] == [
        "program",
        "tool",
        "tool",
    ]
    devices.agent(1).vouch("page")
    devices.settled()
    assert devices.agent(0).get("page").trust == "user"


@pytest.mark.parametrize("last", ["vouch", "write"])
def test_a_person_confirms_no_text_that_another_device_wrote(devices: Devices, last: str) -> None:
    other = {"id": "a", "type": "note", "text": "planted", "key": "planted", "origin": "tool"}
    steps = {
        "vouch": lambda: devices.agent(0).vouch("a"),
        "write": lambda: devices.agent(1).session("main").put(other),
    }
    for step in sorted(steps, key=lambda name: name == last):
        steps[step]()
    devices.settled()
    for number in (0, 1):
        entry = devices.agent(number).get("a")
        expected = ("first a", None, "user") if last == "vouch" else ("planted", "planted", "tool")
        assert (entry.text, entry.data.get("key"), entry.trust) == expected


@pytest.mark.parametrize("name", ["devices/other/manifest.ndjson", "keepstone-sync.json"])
def test_a_file_beyond_its_bound_is_not_read(devices: Devices, name: str) -> None:
    path = devices.shared / name
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.truncate(MOST_LISTED + 1)  # Sparse.
    with pytest.raises(ValueError, match=r"67,108,865 bytes, more than 67,108,864: remove it"):
        devices.sync(0)


def test_a_file_longer_than_its_manifest_says_waits(devices: Devices) -> None:
    for path in devices.shared.rglob("main.ndjson"):
        with path.open("ab") as file:
            file.truncate(1 << 40)  # No machine could read this.
    devices.agent(1).session("main").add("note", text="x")
    assert [name.rpartition("/a/")[2] for name in devices.sync(1).pending] == ["main.ndjson"]
