"""What the doctor says of the place where a home lies."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import keepstone
from keepstone import Home
from keepstone.filesystem import macos_mount
from keepstone.store.files.maintenance import place
from keepstone.store.files.maintenance.place import network_type, sync_service, tops

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /home/ada/far rw - nfs4 server:/export rw
41 22 0:41 / /home/ada/my\040share rw shared:9 master:2 - cifs //server/share rw
42 40 8:2 / /home/ada/far/local rw - ext4 /dev/sdb1 rw
43 22 0:43 / /ssh rw - fuse.sshfs ada@host: rw
44 22 0:44 / /bucket rw - fuse.s3fs s3fs rw
not a line of mounts
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", durability="os") as home:
        home.agent("a").session("s").add("note", {"content": "walnut"}, id="it")
        yield home


def found(home: Home) -> list[tuple[str, str]]:
    """Level and message of what is wrong with the place, or that nothing is."""
    looked, *wrong = place.examine_home(home.root, keepstone.Layout(*TEMPLATES))
    return [(each.level, each.message) for each in wrong or (looked,)]


TEMPLATES = ("agents/{agent}/memory/sessions", "agents/{agent}/files")


def test_a_home_of_our_own_making_is_in_a_good_place(home: Home) -> None:
    assert found(home) == [("ok", "a local folder that only you can read, with nothing left over")]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ada/.memory", None),
        ("/home/ada/far", "nfs4"),
        ("/home/ada/far/deep/.memory", "nfs4"),
        ("/home/ada/far/local/.memory", None),
        ("/home/ada/farther", None),
        ("/home/ada/my share/.memory", "cifs"),
        ("/ssh/.memory", "fuse.sshfs"),
        ("/bucket/.memory", "fuse.s3fs"),
    ],
)
def test_a_network_file_system_is_told_by_the_nearest_mount(path: str, kind: str | None) -> None:
    assert network_type(Path(path), MOUNTS) == kind


def test_without_a_list_of_mounts_nothing_is_said_of_them() -> None:
    assert network_type(Path("/home/ada"), "") is None


def test_of_two_mounts_on_one_place_the_later_one_counts() -> None:
    later = "45 40 8:3 / /home/ada/far rw - xfs /dev/sdc1 rw\n"
    assert network_type(Path("/home/ada/far"), MOUNTS + later) is None
    assert network_type(Path("/home/ada/far"), later + MOUNTS) == "nfs4"


@given(st.text(st.sampled_from("/a 01234\\-\n") | st.characters(), max_size=60))
def test_no_list_of_mounts_is_too_odd_to_be_read(mounts: str) -> None:
    assert network_type(Path("/home/ada"), mounts) is None


def test_a_home_on_a_network_file_system_is_a_warning(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / {tmp_path.resolve()} rw - nfs server:/ rw\n")
    monkeypatch.setattr(place, "MOUNTS", mounts)
    assert found(home) == [("warning", "on a network file system (nfs)")]


@pytest.mark.parametrize("kind", ["9p", "drvfs", "virtiofs", "fakeowner", "fuse.grpcfuse", "vboxsf"])
def test_a_home_on_a_shared_folder_of_the_host_is_a_warning(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / {tmp_path.resolve()} rw - {kind} host rw\n")
    monkeypatch.setattr(place, "MOUNTS", mounts)
    shared = f"on a folder of the host that is shared into this machine ({kind})"
    assert found(home) == [("warning", shared)]


class MacosLibrary:
    """A C library whose ``statfs`` answers as macOS does."""

    def __init__(self, kind: str, *, local: bool) -> None:
        self.kind, self.flags = kind.encode(), 0x1000 if local else 0

    def statfs(self, path: bytes, buffer: Any) -> int:
        if not Path(os.fsdecode(path)).exists():
            return -1
        struct.pack_into("<I", buffer, 64, self.flags)
        struct.pack_into("16s", buffer, 72, self.kind)
        return 0


@pytest.mark.parametrize(("kind", "local"), [("apfs", True), ("smbfs", False), ("webdav", False)])
def test_macos_names_the_file_system_and_whether_it_is_local(
    tmp_path: Path, kind: str, *, local: bool
) -> None:
    assert macos_mount.file_system(tmp_path, MacosLibrary(kind, local=local)) == (kind, local)
    assert macos_mount.file_system(tmp_path / "missing", MacosLibrary(kind, local=local)) is None


@pytest.mark.parametrize(
    ("kind", "local", "expected"),
    [
        ("apfs", True, []),
        ("smbfs", False, ["on a network file system (smbfs)"]),
        ("macfuse", False, ["on a network file system (macfuse)"]),
        ("virtiofs", True, ["on a folder of the host that is shared into this machine (virtiofs)"]),
    ],
)
def test_doctor_knows_the_file_system_on_macos(
    home: Home, monkeypatch: pytest.MonkeyPatch, kind: str, *, local: bool, expected: list[str]
) -> None:
    library = MacosLibrary(kind, local=local)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: library)
    assert [message for level, message in found(home) if level != "ok"] == expected


@pytest.mark.parametrize(
    ("path", "service"),
    [
        ("/home/ada/Dropbox/memory", "Dropbox"),
        ("/home/ada/Dropbox (Personal)/memory", "Dropbox"),
        ("/Users/ada/Library/CloudStorage/Dropbox-Team/m", "Dropbox"),
        ("/home/ada/OneDrive - Firm/memory", "OneDrive"),
        ("/Users/ada/Library/Mobile Documents/com~apple~CloudDocs/m", "iCloud"),
        ("/home/ada/iCloudDrive/m", "iCloud"),
        ("/home/ada/Google Drive/m", "Google Drive"),
        ("/Users/ada/Library/CloudStorage/GoogleDrive-ada@x.org/My Drive", "Google Drive"),
        ("/home/ada/Nextcloud/m", "Nextcloud"),
        ("/home/ada/MEGAsync/m", "MEGA"),
        ("/home/ada/pCloudDrive/m", "pCloud"),
        ("/home/ada/dropboxes/m", None),
        ("/home/ada/documents/m", None),
    ],
)
def test_a_folder_that_a_service_copies_elsewhere_is_told_by_its_name(path: str, service: str | None) -> None:
    assert sync_service(Path(path)) == service


@pytest.mark.parametrize("where", [".", ".."])
def test_a_folder_of_syncthing_is_told_by_its_mark(home: Home, where: str) -> None:
    (home.root / where / ".stfolder").mkdir()
    assert found(home) == [("warning", "in a folder that Syncthing copies elsewhere")]


@pytest.mark.parametrize("path", ["agents/a/memory/sessions/s.ndjson", "agents/a/memory", ".index"])
def test_what_others_can_read_is_named_and_closed(home: Home, path: str) -> None:
    target = home.root / path
    target.chmod(target.stat().st_mode | 0o055)
    ((level, message),) = found(home)
    assert (level, message.split(" may be read by others")[0]) == ("warning", path)
    home.doctor(fix=True)
    assert target.stat().st_mode & 0o777 == (0o700 if target.is_dir() else 0o600)
    assert found(home)[0][0] == "ok"


def test_of_much_that_others_can_read_three_are_named_and_the_rest_counted(home: Home) -> None:
    for path in (home.root / "agents").rglob("*"):
        path.chmod(path.stat().st_mode | 0o040)
    count = len(list((home.root / "agents").rglob("*")))
    ((_, message),) = found(home)
    assert message.split(" may be read")[0].endswith(f" and {count - 3} more")


def test_a_home_that_is_not_there_keeps_nothing_and_is_not_made(tmp_path: Path) -> None:
    layout = keepstone.Layout(*TEMPLATES)
    (looked,) = place.examine_home(tmp_path / "none", layout)
    assert (looked.level, looked.message) == ("ok", "nothing is kept here yet")
    assert place.mend_home(tmp_path / "none", layout) == []
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_keeps_from_us_is_an_error_and_hides_nothing_else(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: Path) -> Iterator[Path]:
        raise PermissionError(13, "Permission denied", str(path))

    (home.root / "agents/a/files").mkdir(parents=True, exist_ok=True)
    (home.root / ".stfolder").mkdir()
    monkeypatch.setattr(Path, "iterdir", refused)
    assert ("error", "the system does not let us look at it") in found(home)
    assert ("warning", "in a folder that Syncthing copies elsewhere") in found(home)


@pytest.mark.parametrize(
    ("templates", "names"),
    [
        (TEMPLATES, ["agents", ".index"]),
        (("log/{agent}", "files/{agent}"), ["files", "log", ".index"]),
        (("{agent}/log", "{agent}/files"), ["a", ".index"]),
    ],
)
def test_all_of_a_home_lies_below_its_tops_the_derived_last(
    tmp_path: Path, templates: tuple[str, str], names: list[str]
) -> None:
    for template in templates:
        (tmp_path / template.format(agent="a")).mkdir(parents=True)
    for other in (".index/a", ".git"):
        (tmp_path / other).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / ".git")
    assert [path.name for path in tops(tmp_path, keepstone.Layout(*templates))] == names


def test_other_folders_beside_the_home_s_own_are_not_judged(home: Home) -> None:
    (home.root / "notes").mkdir(0o755)
    (home.root / "notes/plan.md").touch(0o644)
    assert found(home)[0][0] == "ok"


@pytest.mark.parametrize("name", ["agents", "agents/a", "agents/b"])
def test_a_link_below_the_home_is_an_error(home: Home, tmp_path: Path, name: str) -> None:
    home.close()
    path = home.root / name
    if path.exists():
        path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    findings = place.examine_home(home.root, keepstone.Layout(*TEMPLATES))
    assert ("error", name) in [(each.level, each.subject) for each in findings]


def test_a_hard_link_among_an_agents_files_is_an_error(home: Home, tmp_path: Path) -> None:
    home.agent("a").files.write("plans/a.md", "text")
    (tmp_path / "outside.md").hardlink_to(home.root / "agents/a/files/plans/a.md")
    assert found(home) == [("error", "a hard link; its other name may lie outside the home")]


def test_the_home_itself_may_be_a_link(home: Home, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(home.root)
    with keepstone.open(tmp_path / "link") as linked:
        assert found(linked)[0][0] == "ok"


@pytest.mark.parametrize(
    "name",
    [
        "agents/a/files/.keepstone.tmp",
        ".index/.space.json.7.tmp",
        ".index/gone/v1/index.db",
        ".index/a/v4/index.db.5.aside",
    ],
)
def test_what_killed_processes_left_is_named_and_removed(home: Home, name: str) -> None:
    path = home.root / name
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)
    assert "left by a process that was killed, or by an agent that is gone" in [
        each[1] for each in found(home)
    ]
    home.doctor(fix=True)
    assert not path.exists()
    assert home.agent("a").session("s").entry_count() == 1


def test_agents_that_differ_only_by_case_are_named_together(home: Home) -> None:
    if (home.root / "AGENTS").exists():
        pytest.skip("this file system folds case")
    for slug in ("Ada", "ada", "bob"):
        home.agent(slug).session("s").add("note", text="walnut")
    messages = [finding.message for finding in home.doctor() if finding.level == "warning"]
    assert "agents 'Ada' and 'ada' differ only by letter case" in messages
    assert not [message for message in messages if "bob" in message]
