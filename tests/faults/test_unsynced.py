"""When the power fails, what was acknowledged has been synced, and what was purged stays away.

``durability="os"`` leaves syncing to the system and promises none of this.
"""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.conftest import ROUNDS, THOROUGH
from tests.faults.operations import Inventor, Model, check, do, spelled
from tests.faults.power import Choice, Disk

import keepstone
from keepstone import Home, Notes

EACH = ("write", "append", "note", "note", "unnote", "add", "add_many", "put", "patch", "delete", "purge")
SHORT = (*EACH, "compact", "put", "compact", "purge", "unlink", "clear", "add", "put", "compact", "drop")
LONG = (*SHORT, *EACH, "compact", "remove", *EACH, "drop", *EACH)


@pytest.fixture
def script(thorough: bool) -> tuple[str, ...]:  # noqa: FBT001
    return LONG if thorough else SHORT


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk", monkeypatch)
    yield disk
    disk.close()


@pytest.fixture
def home(tmp_path: Path, disk: Disk) -> Iterator[Home]:  # noqa: ARG001  Watched from its first byte on.
    with keepstone.open(tmp_path / "disk" / "home", embedder="none") as home:
        yield home


def after_cut(disk: Disk, kept: Choice, *allowed: Model) -> None:
    """The power fails; a home with what is left holds one of the models."""
    target = disk.cut(Path(f"{disk.root}.cut"), kept=kept)
    assert (target / "home").exists() or not any(allowed[0].seen().values())
    check(target / "home", *allowed)
    shutil.rmtree(target)


@pytest.mark.parametrize("seed", range(12 if ROUNDS >= THOROUGH else 2))
def test_what_is_acknowledged_survives_a_power_cut(
    home: Home,
    disk: Disk,
    script: tuple[str, ...],
    seed: int,
) -> None:
    model, inventor, chance = Model(), Inventor(seed), random.Random(seed)
    for kind in script:
        operation = inventor.surely(kind, model)
        do(home, operation)
        model = model.after(operation)
        # The first time all that was not synced is lost, then each of it or not.
        after_cut(disk, lambda: seed > 0 and chance.random() < 0.5, model)


def test_a_power_cut_amid_an_operation_leaves_all_of_it_or_nothing(
    home: Home, disk: Disk, script: tuple[str, ...]
) -> None:
    model, inventor = Model(), Inventor(5)
    for kind in script:
        operation = inventor.surely(kind, model)
        allowed = (model, model.after(operation))
        disk.after_sync = lambda allowed=allowed: after_cut(disk, lambda: False, *allowed)
        do(home, operation)
        disk.after_sync = None
        model = allowed[1]


def test_a_purged_agent_does_not_come_back_after_a_power_cut(home: Home, disk: Disk, tmp_path: Path) -> None:
    home.agent("a").session("s0").add("note", {"content": "bcdfghsecretword"})
    home.agent("a").files.write("plan.md", "bcdfghsecretword")
    home.purge_agent("a")
    with keepstone.open(disk.cut(tmp_path / "left") / "home", embedder="none") as again:
        assert again.agents() == []
        assert spelled(tmp_path / "left", {"bcdfghsecretword"}) == set()


def test_the_first_note_of_a_user_survives_a_power_cut(disk: Disk, tmp_path: Path) -> None:
    Notes(disk.root, disk.root / "new/folder/memory.md").add("Use pnpm", "User")
    left = disk.cut(tmp_path / "left")
    assert [note.content for note in Notes(left, left / "new/folder/memory.md").entries("User")] == [
        "Use pnpm"
    ]


@pytest.mark.parametrize("opened", ["by a reader", "by the writer"])
@pytest.mark.parametrize("depth", range(1, 6))
def test_a_write_syncs_folders_that_a_killed_process_made(
    disk: Disk, tmp_path: Path, depth: int, opened: str
) -> None:
    parts = ("home", "agents", "a", "memory", "sessions")[:depth]
    disk.root.joinpath(*parts).mkdir(parents=True)  # Not synced.
    with keepstone.open(disk.root / "home", embedder="none") as home:
        if opened == "by a reader":
            home.agent("a").session("s").entries()
        home.agent("a").session("s").add("note", {"content": "walnut"})
    with keepstone.open(disk.cut(tmp_path / "left") / "home", embedder="none") as again:
        assert [entry.text for entry in again.agent("a").session("s").entries()] == ["walnut"]


@pytest.mark.parametrize("first", [True, False])
def test_a_written_file_syncs_folders_that_a_killed_process_made(
    disk: Disk,
    tmp_path: Path,
    first: bool,  # noqa: FBT001
) -> None:
    with keepstone.open(disk.root / "home", embedder="none") as home:
        files, folder = home.agent("a").files, disk.root / "home/agents/a/files"
        if first:
            folder.mkdir(parents=True)
        else:
            files.write("other.md", "walnut")
            (folder / "plans").mkdir()
        files.write("plans/today.md", "walnut")
    with keepstone.open(disk.cut(tmp_path / "left") / "home", embedder="none") as again:
        assert again.agent("a").files.read("plans/today.md") == "walnut"
