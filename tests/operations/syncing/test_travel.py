"""The law of memory that travels: directed cases, and random histories of devices whose clocks differ."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keepstone
from keepstone import Agent, Session
from keepstone.errors import KeepstoneError
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.syncing import Synced, sync
from keepstone.store.files import purge_digests

START = datetime(2026, 1, 11, 12, tzinfo=UTC)


class Device:
    """A home with a clock of its own."""

    def __init__(self, root: Path, hours: int = 0, *, stands_still: bool = False) -> None:
        self.root = root
        self.time = START + timedelta(hours=hours)
        self.stands_still = stands_still
        self.open()

    def open(self) -> None:
        self.home = keepstone.open(self.root, embedder="none", durability="os", clock=self.now)

    def now(self) -> datetime:
        self.time += timedelta(seconds=0 if self.stands_still else 1)
        return self.time

    def without_index(self) -> None:
        self.home.close()
        shutil.rmtree(self.root / ".index", ignore_errors=True)
        self.open()

    def agent(self) -> Agent:
        return self.home.agent("a")

    def session(self, name: str = "main") -> Session:
        return self.agent().session(name)

    def memory(self, moment: datetime | None = None) -> list[tuple[str, str, str]]:
        names = sorted(info.id for info in self.agent().sessions())
        entries = [entry for name in names for entry in self.session(name).entries(as_of=moment)]
        return [(entry.session, entry.id, entry.text) for entry in entries]


class Devices:
    """Devices that share a folder."""

    def __init__(self, folder: Path, *devices: Device) -> None:
        self.shared = folder / "shared"
        self.folder = folder
        self.all = devices

    def sync(self, *numbers: int) -> Synced:
        for number in numbers or range(len(self.all)):
            result = sync(self.all[number].home, LAYOUTS["default"], self.shared)
        return result

    def settled(self) -> list[tuple[str, str, str]]:
        self.sync()
        self.sync()
        states = [device.memory() for device in self.all]
        assert all(state == states[0] for state in states)
        assert [self.sync(number).changed for number in range(len(self.all))] == [[]] * len(self.all)
        return states[0]


@pytest.fixture
def two(tmp_path: Path) -> Devices:
    devices = Devices(tmp_path, Device(tmp_path / "one"), Device(tmp_path / "two"))
    devices.all[0].session().add_many([{"type": "note", "text": f"first {n}", "id": n} for n in "ab"])
    devices.sync(0, 1, 0)
    return devices


@pytest.mark.parametrize("how", ["purge_many", "delete", "clear", "remove", "rename"])
def test_an_id_added_again_lives_on_everywhere(two: Devices, how: str) -> None:
    session = two.all[0].session()
    given = {"purge_many": (["a"],), "delete": ("a",), "rename": ("other",)}
    getattr(session, how)(*given.get(how, ()))
    two.settled()
    two.all[0].session().add("note", text="again", id="a")
    two.all[1].session().compact()
    assert ("main", "a", "again") in two.settled()


def test_an_end_elsewhere_leaves_a_later_life_alone(two: Devices) -> None:
    two.all[0].session().delete("a")
    two.all[0].session().add("note", text="again", id="a")
    two.all[1].session().purge("a")
    assert ("main", "a", "again") in two.settled()


def test_a_renamed_session_is_there_once(two: Devices) -> None:
    two.all[0].session().rename("projects")
    assert {session for session, _, _ in two.settled()} == {"projects"}
    assert [info.id for info in two.all[1].agent().sessions()] == ["projects"]


def test_a_session_renamed_there_and_back_keeps_its_entries(two: Devices) -> None:
    two.all[0].session().rename("projects")
    two.settled()
    two.all[1].session("projects").rename("main")
    assert {name for _, name, _ in two.settled()} == {"a", "b"}


def test_a_purged_agent_is_gone_everywhere_and_can_be_made_again(two: Devices) -> None:
    two.all[0].home.purge_agent("a")
    two.sync(0, 1, 0)
    assert [device.home.agents() for device in two.all] == [[], []]
    two.all[1].session().add("note", text="new", id="a")
    assert two.settled() == [("main", "a", "new")]


def test_a_purged_agent_does_not_come_back_without_index(two: Devices) -> None:
    two.all[0].home.purge_agent("a")
    two.all[0].without_index()
    two.sync(0, 1, 0)
    assert [device.home.agents() for device in two.all] == [[], []]


def test_a_device_that_left_keeps_no_purged_bytes_in_the_folder(two: Devices) -> None:
    two.all[1].home.close()
    two.all[0].session().purge("a")
    two.sync(0)
    files = [path for path in two.shared.rglob("*") if path.is_file()]
    assert not [path for path in files if b"first a" in path.read_bytes()]


def test_a_device_knows_its_folder_again_after_another_rewrote_it(two: Devices) -> None:
    name = two.sync(1).device
    two.all[0].session().purge("a")
    two.sync(0)
    assert two.sync(1).device == name


def test_a_purge_that_fails_leaves_no_record(two: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    from keepstone.log.replacement import Replacement

    def fail(*_: object) -> None:
        raise keepstone.StoreError("the disk is full; the log is unchanged")

    with monkeypatch.context() as patch:
        patch.setattr(Replacement, "end", fail)
        with pytest.raises(keepstone.StoreError, match="unchanged"):
            two.all[0].session().purge("a")
    assert {name for _, name, _ in two.settled()} == {"a", "b"}


class KilledError(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("call", ["purge_many", "clear", "remove"])
def test_a_killed_erasure_is_finished_and_travels(
    two: Devices, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def die(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch, suppress(KilledError):
        patch.setattr(purge_digests, "record", die)
        getattr(two.all[0].session(), call)(*([["a"]] if call == "purge_many" else []))
    two.all[0].home.close()
    two.all[0].open()
    assert ("main", "a", "first a") not in two.settled()


def test_a_restored_backup_brings_nothing_back(two: Devices, tmp_path: Path) -> None:
    one = two.all[0]
    one.home.backup(tmp_path / "backup")
    one.session().purge("a")
    one.session().delete("b")
    two.settled()
    one.home.close()
    shutil.rmtree(one.root)
    shutil.copytree(tmp_path / "backup", one.root)
    one.open()
    assert two.settled() == []


def test_an_old_export_brings_nothing_back(tmp_path: Path) -> None:
    device = Device(tmp_path / "home")
    device.session().add_many([{"type": "note", "text": f"first {n}", "id": n} for n in "abc"])
    device.agent().export(tmp_path / "export.ndjson")
    device.session().purge("a")
    device.session().delete("b")
    device.session().delete("c")
    device.session().add("note", text="again", id="c")
    device.home.import_from("auto", tmp_path / "export.ndjson", agent="a")
    assert device.memory() == [("main", "c", "again")]


def refuse_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a log was read")

    for module in ("taking", "giving"):
        monkeypatch.setattr(f"keepstone.operations.syncing.{module}.read_side", refuse)
    monkeypatch.setattr("keepstone.operations.syncing.taking.side_of", refuse)


def test_an_exchange_without_changes_reads_no_log(two: Devices, monkeypatch: pytest.MonkeyPatch) -> None:
    two.settled()
    refuse_to_read(monkeypatch)
    assert two.sync().changed == []


def test_what_another_device_only_took_from_here_is_not_read(
    two: Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    two.all[0].session("long").add("note", text="walnut")
    two.sync(0)
    two.sync(1)
    refuse_to_read(monkeypatch)
    assert two.sync(0).changed == []


def test_as_of_is_the_same_after_an_edit_that_another_device_compacted(two: Devices) -> None:
    before = two.all[0].now()
    two.all[1].time = before + timedelta(hours=1)
    two.all[1].session().update("a", text="edited")
    two.all[1].session().compact()
    two.settled()
    assert two.all[0].memory(before) == two.all[1].memory(before)
    assert ("main", "a", "first a") in two.all[0].memory(before)


@contextmanager
def devices_with(clocks: list[tuple[int, bool]]) -> Iterator[Devices]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = [
            Device(folder / f"home{n}", hours, stands_still=still) for n, (hours, still) in enumerate(clocks)
        ]
        yield Devices(folder, *made)
        for device in made:
            device.home.close()


KINDS = "put put put update delete restore purge compact sync sync clear remove rename lose back many".split()
STEPS = st.lists(
    st.tuples(
        st.integers(0, 2), st.sampled_from(KINDS), st.sampled_from(["main", "other"]), st.sampled_from("ab")
    ),
    max_size=25,
)
CLOCKS = st.lists(st.tuples(st.sampled_from([0, 5, -7]), st.booleans()), min_size=2, max_size=3)


@settings(max_examples=12)
@given(CLOCKS, STEPS)
def test_any_history_ends_in_the_same_memory_everywhere(
    clocks: list[tuple[int, bool]], steps: list[tuple[int, str, str, str]]
) -> None:
    with devices_with(clocks) as devices:
        for number, (at, kind, name, entry_id) in enumerate(steps):
            device = at % len(clocks)
            with suppress(KeepstoneError, ValueError):
                step(devices, device, kind, name, entry_id, f"text {number}")
        devices.settled()
        for hours in (-6, 0, 6, 24):
            past = [device.memory(START + timedelta(hours=hours)) for device in devices.all]
            assert all(state == past[0] for state in past)


def step(devices: Devices, number: int, kind: str, name: str, entry_id: str, text: str) -> None:
    device = devices.all[number]
    session = device.session(name)
    if kind == "put":
        session.put({"id": entry_id, "type": "note", "text": text})
    elif kind == "many":
        session.add_many([{"type": "note", "text": text, "id": f"{text} {n}"} for n in range(2)])
    elif kind == "update":
        session.update(entry_id, text=text)
    elif kind == "purge":
        session.purge_many([entry_id])
    elif kind in ("delete", "restore"):
        getattr(session, kind)(entry_id)
    elif kind in ("compact", "clear", "remove"):
        getattr(session, kind)()
    elif kind == "rename":
        session.rename("other" if name == "main" else "third")
    elif kind == "sync":
        devices.sync(number)
    elif kind == "lose":
        device.without_index()
    else:
        device.time -= timedelta(hours=3)
