"""The files of one device as a stream, packed and unpacked."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest

from keepstone.filesystem.confine import Folder
from keepstone.operations.syncing.devices import MANIFEST, Device, digest
from keepstone.operations.syncing.stream import pack, unpack

NAME = "0190a5b0-0000-4000-8000-000000000000"
FILES = {"a/x.ndjson": b"first\n" * 1000, "a/.archive/x.ndjson": b"old\n", "b/" + "n" * 200: b""}


def published(place: Path, files: dict[str, bytes] = FILES, name: str = NAME) -> Path:
    """Return a folder in which a device published files."""
    lines = []
    for file, raw in files.items():
        path = place / "devices" / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
        agent, _, rest = file.partition("/")
        line = {"agent": agent, "file": rest, "size": len(raw), "sha256": digest(raw)}
        lines.append(json.dumps(line) + "\n")
    (place / "devices" / name / MANIFEST).write_text("".join(lines) + '{"end":true}\n')
    return place


def packed(place: Path) -> io.BytesIO:
    stream = io.BytesIO()
    pack(place, NAME, stream)
    stream.seek(0)
    return stream


def test_packed_files_come_back(tmp_path: Path) -> None:
    unpack(packed(published(tmp_path / "here")), tmp_path / "there")
    with Folder(tmp_path / "there") as folder:
        device = Device(folder, f"devices/{NAME}")
        assert device.is_whole
        found = {f"{agent}/{file}": device.read(agent, file) for agent, file in device.listed}
    assert found == FILES


def test_files_that_come_have_the_modes_of_a_home(tmp_path: Path) -> None:
    here = published(tmp_path / "here")
    for path in here.rglob("*.ndjson"):
        path.chmod(0o777)
    unpack(packed(here), tmp_path / "there")
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "there").rglob("*") if path.is_file()}
    assert modes == {0o600}


def test_a_link_among_the_files_is_not_sent(tmp_path: Path) -> None:
    here = published(tmp_path / "here")
    (tmp_path / "secret").write_text("secret")
    (here / "devices" / NAME / "a" / "link").symlink_to(tmp_path / "secret")
    assert b"secret" not in gzip.decompress(packed(here).getvalue())
    unpack(packed(here), tmp_path / "there")


def test_only_the_named_device_is_sent(tmp_path: Path) -> None:
    here = published(tmp_path / "here")
    published(here, {"a/other": b"others"}, NAME.replace("0190", "0191"))
    assert b"others" not in gzip.decompress(packed(here).getvalue())


def test_as_many_bytes_as_are_allowed_may_come_and_not_one_more(tmp_path: Path) -> None:
    here = published(tmp_path / "here")
    total = sum(map(len, FILES.values()))
    unpack(packed(here), tmp_path / "there", total)
    with pytest.raises(ValueError, match="the other side sends"):
        unpack(packed(here), tmp_path / "elsewhere", total - 1)


@pytest.mark.parametrize("part", [0, 0.3, 0.6, 0.95])
def test_a_truncated_stream_is_refused(tmp_path: Path, part: float) -> None:
    raw = packed(published(tmp_path / "here", {"a/x": bytes(range(256)) * 50})).getvalue()
    with pytest.raises(ValueError, match="the other side sent no files that can be read"):
        unpack(io.BytesIO(raw[: int(part * len(raw))]), tmp_path / "there")


def test_a_file_that_the_manifest_has_not_is_refused_and_not_written(tmp_path: Path) -> None:
    here = published(tmp_path / "here")
    (here / "devices" / NAME / "a" / "more").write_text("more")
    with pytest.raises(ValueError, match="'devices/.*/a/more' is not a file that keepstone sync sends"):
        unpack(packed(here), tmp_path / "there")
    assert not list((tmp_path / "there").rglob("more"))
