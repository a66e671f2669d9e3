"""Homes that sync over ssh; the machine on the other side is a folder of this one."""

from __future__ import annotations

import gzip
import io
import json
import shlex
import sys
import tarfile
from contextlib import nullcontext
from pathlib import Path

import pytest
from typer.testing import CliRunner

import keepstone
from keepstone import Home
from keepstone.cli.app import app
from keepstone.filesystem.layout import LAYOUTS
from keepstone.operations.syncing import one_sync, sync
from keepstone.operations.syncing.ssh import answer_over_ssh, is_remote, sync_over_ssh

LAYOUT = LAYOUTS["default"]
KEEPSTONE = shlex.join([sys.executable, "-m", "keepstone"])


class Machines:
    """A home here, and one in the user's folder of another machine."""

    def __init__(self, folder: Path) -> None:
        self.there = folder / "there"
        self.there.mkdir()
        self.folder = folder
        self.ssh = folder / "ssh"
        # As sshd does: the words after the host are a line for the shell, in the user's own folder.
        self.ssh.write_text(f'#!/bin/sh\nshift\ncd {shlex.quote(str(self.there))} && exec sh -c "$*"\n')
        self.ssh.chmod(0o755)
        self.home = self.open(folder / "home")
        with self.open(self.there / "my agents") as other:
            other.agent("a").session("main").add("note", text="there", id="there")
        self.home.agent("a").session("main").add("note", text="here", id="here")

    def open(self, path: Path) -> Home:
        return keepstone.open(path, embedder="none", durability="os")

    def sync(self) -> None:
        sync_over_ssh(self.home, LAYOUT, "ada@laptop:my agents", ssh=str(self.ssh), command=KEEPSTONE)

    def sync_at_most(self, most: int, said: str | None) -> None:
        with pytest.raises(ValueError, match=said) if said else nullcontext():
            sync_over_ssh(
                self.home, LAYOUT, "laptop:my agents", ssh=str(self.ssh), command=KEEPSTONE, most=most
            )

    def here_and_there(self) -> list[set[str]]:
        with self.open(self.there / "my agents") as other:
            return [{entry.id for entry in home.agent("a").iter_entries()} for home in (self.home, other)]


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machines:
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "none")
    return Machines(tmp_path)


def test_one_sync_brings_both_machines_to_the_same_state(machines: Machines) -> None:
    machines.sync()
    assert machines.here_and_there() == [{"here", "there"}] * 2


def test_a_deletion_travels_over_ssh(machines: Machines) -> None:
    machines.sync()
    machines.home.agent("a").session("main").delete("there")
    machines.sync()
    assert machines.here_and_there() == [{"here"}] * 2


def test_a_purge_over_ssh_leaves_no_bytes_on_either_machine(machines: Machines) -> None:
    machines.home.agent("a").session("main").add("note", text="the code is 4711-0815", id="secret")
    machines.sync()
    machines.home.agent("a").session("main").purge("secret")
    machines.sync()
    assert [
        path for path in machines.folder.rglob("*") if path.is_file() and b"4711-0815" in path.read_bytes()
    ] == []


def test_a_purged_agent_is_purged_on_the_other_machine(machines: Machines) -> None:
    machines.sync()
    machines.home.purge_agent("a")
    machines.sync()
    assert machines.here_and_there() == [set(), set()]


def test_a_machine_without_keepstone_says_so_and_nothing_changes(machines: Machines) -> None:
    with pytest.raises(keepstone.StoreError, match=r"laptop could not sync: .*not found"):
        sync_over_ssh(
            machines.home, LAYOUT, "laptop:my agents", ssh=str(machines.ssh), command="keepstone-is-missing"
        )
    assert machines.here_and_there() == [{"here"}, {"there"}]


def test_a_path_that_is_no_folder_there_is_refused_and_not_made(machines: Machines) -> None:
    with pytest.raises(keepstone.StoreError, match=r"my agnets is not a folder"):
        sync_over_ssh(machines.home, LAYOUT, "laptop:my agnets", ssh=str(machines.ssh), command=KEEPSTONE)
    assert not (machines.there / "my agnets").exists()


def test_a_missing_ssh_is_named_with_the_remedy(machines: Machines) -> None:
    with pytest.raises(keepstone.StoreError, match=r"no-such-ssh cannot be run .*give --ssh"):
        sync_over_ssh(machines.home, LAYOUT, "laptop:x", ssh="no-such-ssh")


def test_an_answer_that_is_not_ours_is_refused(machines: Machines) -> None:
    with pytest.raises(ValueError, match="no files that can be read"):
        sync_over_ssh(machines.home, LAYOUT, "laptop:x", ssh=str(machines.ssh), command="echo hello #")
    assert machines.here_and_there()[0] == {"here"}


DEVICE = "devices/0190a5b0-0000-4000-8000-000000000000"


def _stream(*files: tuple[str, bytes]) -> io.BytesIO:
    """Return a stream with files of a device."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|gz") as archive:
        for name, raw in files:
            info = tarfile.TarInfo(f"{DEVICE}/{name}")
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    stream.seek(0)
    return stream


def _manifest(size: object, file: str = "x.ndjson") -> tuple[str, bytes]:
    line = {"agent": "a", "file": file, "size": size, "sha256": "0"}
    return "manifest.ndjson", json.dumps(line).encode() + b'\n{"end":true}\n'


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([("a/x.ndjson", b"")], "no manifest first"),
        ([_manifest(10**10)], r"sends 9\.3 GiB, more than .*--max 10001"),
        ([_manifest(3), ("a/x.ndjson", bytes(4))], "is not a file that keepstone sync sends"),
        ([_manifest(3), ("a/y.ndjson", bytes(3))], "is not a file that keepstone sync sends"),
        ([_manifest(3), ("a/x.ndjson", bytes(3)), ("a/x.ndjson", bytes(3))], "is not a file"),
        ([_manifest(-1)], "without the sizes"),
        ([_manifest("3")], "without the sizes"),
        ([_manifest(1.5)], "without the sizes"),
    ],
)
def test_a_stream_brings_what_its_manifest_says(
    machines: Machines, files: list[tuple[str, bytes]], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        answer_over_ssh(machines.home, LAYOUT, _stream(*files), io.BytesIO())
    assert machines.here_and_there()[0] == {"here"}


def _headers(*blocks: bytes | bytearray) -> io.BytesIO:
    """Return a stream with headers and content as they are."""
    return io.BytesIO(gzip.compress(b"".join([*blocks, bytes(1024)]), 1))


def _header(kind: bytes, size: int, name: str = f"{DEVICE}/manifest.ndjson") -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT)


def test_a_manifest_that_unpacks_to_more_is_refused(machines: Machines) -> None:
    stream = _headers(_header(tarfile.REGTYPE, 70_000_000), bytes(70_000_000))
    with pytest.raises(ValueError, match="more than its manifest says"):
        answer_over_ssh(machines.home, LAYOUT, stream, io.BytesIO())


def test_a_sparse_file_whose_holes_unpack_to_more_is_refused(machines: Machines) -> None:
    header = bytearray(_header(tarfile.GNUTYPE_SPARSE, 512))
    # One piece of 512 bytes, and the length of the file with its holes.
    header[386:410] = b"00000000000\x0000000001000\0"
    header[483:495] = b"%011o\0" % 200_000_000
    header[148:156] = b"%06o\0 " % (sum(header[:148]) + sum(header[156:]) + 8 * ord(" "))
    with pytest.raises(ValueError, match="is not a file that keepstone sync sends"):
        answer_over_ssh(machines.home, LAYOUT, _headers(bytes(header), bytes(512)), io.BytesIO())


def test_an_extended_header_is_refused_before_it_is_parsed(machines: Machines) -> None:
    stream = _headers(_header(tarfile.XHDTYPE, 2_560), b"9" * 2_560)
    with pytest.raises(ValueError, match="is not a file that keepstone sync sends"):
        answer_over_ssh(machines.home, LAYOUT, stream, io.BytesIO())


def test_a_longer_name_than_files_have_is_refused(machines: Machines) -> None:
    stream = _headers(_header(tarfile.GNUTYPE_LONGNAME, 10_240), bytes(10_240))
    with pytest.raises(ValueError, match="is not a file that keepstone sync sends"):
        answer_over_ssh(machines.home, LAYOUT, stream, io.BytesIO())


def test_headers_of_headers_are_refused(machines: Machines) -> None:
    one = _header(tarfile.GNUTYPE_LONGNAME, 2) + b"a".ljust(512, b"\0")
    with pytest.raises(ValueError, match="no files that can be read"):
        answer_over_ssh(machines.home, LAYOUT, _headers(one * 1500), io.BytesIO())


def test_a_stream_brings_files_of_one_device(machines: Machines) -> None:
    other = DEVICE.replace("8000", "9000")
    manifest = _manifest(3)[1]
    first = _header(tarfile.REGTYPE, len(manifest)), manifest.ljust(512, b"\0")
    stream = _headers(*first, _header(tarfile.REGTYPE, 3, f"{other}/a/x.ndjson"), bytes(512))
    with pytest.raises(ValueError, match="is not a file that keepstone sync sends"):
        answer_over_ssh(machines.home, LAYOUT, stream, io.BytesIO())


def test_a_session_with_a_long_name_travels_over_ssh(machines: Machines) -> None:
    machines.home.agent("a").session("ü" * 30).add("note", text="far", id="far")
    machines.sync()
    assert machines.here_and_there() == [{"here", "there", "far"}] * 2


def test_a_larger_home_is_taken_with_a_larger_limit(machines: Machines) -> None:
    machines.sync_at_most(1, "sends .* more than 1 B: .*--max 1")
    machines.sync_at_most(10**6, None)
    assert machines.here_and_there() == [{"here", "there"}] * 2


def test_an_answer_without_end_is_cut(machines: Machines, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keepstone.operations.syncing.ssh._PACKED_MORE", 100_000)
    with pytest.raises(keepstone.StoreError, match="laptop sent more than 1000 B: give --max"):
        sync_over_ssh(machines.home, LAYOUT, "laptop:x", ssh="sh -c 'cat /dev/zero'", most=1000)


def test_the_command_passes_its_limit_to_the_other_machine(machines: Machines) -> None:
    words = ["sync", "ada@laptop:my agents", "--ssh", "sh -c 'echo \"$1\" >&2; exit 1'"]
    done = CliRunner().invoke(app, [*words, "--home", str(machines.home.root), "--max", "7"])
    assert "--max 7" in done.output


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.ndjson",
        "/outside.ndjson",
        "keepstone-sync.json",
        "devices/0190a5b0-0000-4000-8000-000000000000/../../../outside",
        "devices/0190a5b0-0000-4000-8000-000000000000/a/b/outside.ndjson",
    ],
)
def test_a_stream_writes_only_files_of_devices(machines: Machines, name: str) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|gz") as archive:
        archive.addfile(tarfile.TarInfo(name))
    stream.seek(0)
    with pytest.raises(ValueError, match="is not a file that keepstone sync sends"):
        answer_over_ssh(machines.home, LAYOUT, stream, io.BytesIO())
    assert list(machines.folder.rglob("*outside*")) == []


def test_a_link_in_a_stream_is_refused(machines: Machines) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w|gz") as archive:
        link = tarfile.TarInfo("devices/0190a5b0-0000-4000-8000-000000000000/a/x.ndjson")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    stream.seek(0)
    with pytest.raises(ValueError, match="is not a file that keepstone sync sends"):
        answer_over_ssh(machines.home, LAYOUT, stream, io.BytesIO())


@pytest.mark.parametrize(
    ("target", "remote"),
    [
        ("laptop:agents", True),
        ("ada@laptop.example:/srv/agents", True),
        ("~/Dropbox/a:b", False),
        ("./laptop:agents", False),
        ("-oProxyCommand=x:agents", False),
        ("folder", False),
        ("laptop:", False),
    ],
)
def test_a_remote_is_a_host_and_a_path(target: str, remote: bool) -> None:  # noqa: FBT001
    assert is_remote(target) is remote


@pytest.mark.parametrize("target", ["h st:x", "laptop:", ":agents", "-oProxyCommand=x:agents"])
def test_a_mistyped_remote_is_refused_and_makes_no_folder(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    done = CliRunner().invoke(app, ["sync", "--home", str(machines.home.root), "--", target])
    assert done.exit_code == 2
    assert "neither a folder nor HOST:PATH" in " ".join(done.output.split())
    assert list(Path().iterdir()) == []


def test_a_folder_whose_name_has_a_colon_is_synced(
    machines: Machines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["sync", "--home", str(machines.home.root), "./my notes: all"])
    assert done.exit_code == 0
    assert Path("my notes: all").is_dir()


def test_the_command_syncs_over_ssh(machines: Machines) -> None:
    words = ["sync", "ada@laptop:my agents", "--ssh", str(machines.ssh), "--remote-command", KEEPSTONE]
    done = CliRunner().invoke(app, [*words, "--home", str(machines.home.root), "--json"])
    answer = json.loads(done.stdout)
    assert (answer["devices"], answer["changed"], answer["pending"]) == (1, ["a/main"], [])
    assert machines.here_and_there() == [{"here", "there"}] * 2


def test_a_home_is_synced_by_one_process_at_a_time(machines: Machines, tmp_path: Path) -> None:
    from keepstone.filesystem.lock import WAIT_LIMIT

    limit = WAIT_LIMIT.set(0.01)
    try:
        with one_sync(machines.home), pytest.raises(keepstone.LockTimeoutError):
            sync(machines.home, LAYOUT, tmp_path / "shared")
    finally:
        WAIT_LIMIT.reset(limit)
