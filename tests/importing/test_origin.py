"""Hostile and odd places to import from."""

from __future__ import annotations

import os
import stat
import tracemalloc
import zipfile
from pathlib import Path

import pytest
from tests.importing.sources import FIXTURES, zipped

import keepstone
from keepstone.importing import SourceError, import_memory
from keepstone.importing.origin import MOST_MEMBERS, Origin


@pytest.mark.parametrize(
    "name", ["../conversations.json", "/etc/conversations.json", "a/../../x.json", "C:x.json"]
)
def test_a_member_with_a_dangerous_path_is_refused(tmp_path: Path, name: str) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": "[]", name: "[]"})
    with pytest.raises(SourceError, match="dangerous path"):
        Origin(source)


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("conversations.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    with pytest.raises(SourceError, match="link"):
        Origin(tmp_path / "x.zip")


def test_a_zip_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": b"0" * (64 << 20)})
    with pytest.raises(SourceError, match="zip bomb"):
        Origin(source)


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"a.md": os.urandom(5_000), "b.md": b""})
    raw = bytearray(source.read_bytes())
    # In the directory the second member gets the sizes, check and place of the first one.
    first, second = raw.index(b"PK\x01\x02"), raw.rindex(b"PK\x01\x02")
    for field in (slice(10, 12), slice(16, 28), slice(42, 46)):
        raw[second + field.start : second + field.stop] = raw[first + field.start : first + field.stop]
    source.write_bytes(raw)
    with pytest.raises(SourceError, match="zip bomb"):
        Origin(source)


def test_a_member_that_hides_its_ratio_of_compression_is_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": b"0" * (64 << 20)})
    raw = bytearray(source.read_bytes())
    place = raw.rindex(b"PK\x01\x02") + 20
    raw[place : place + 4] = (1 << 20).to_bytes(4, "little")
    source.write_bytes(raw)
    with pytest.raises(SourceError, match="zip bomb"):
        Origin(source)


def test_a_truncated_archive_is_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": os.urandom(10_000)})
    source.write_bytes(source.read_bytes()[:5_000])
    with pytest.raises(SourceError, match="zip"):
        Origin(source)


def test_damaged_bytes_in_an_archive_are_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"conversations.json": "[" + "{}," * 5_000 + "{}]"})
    raw = bytearray(source.read_bytes())
    raw[60] ^= 0xFF
    source.write_bytes(raw)
    with keepstone.open(tmp_path / "home", embedder="none") as home, pytest.raises(SourceError):
        import_memory(home.agent("a"), "chatgpt", source)
    assert not (tmp_path / "home" / "agents").exists()


def test_an_archive_of_too_many_members_is_refused_before_they_take_memory(tmp_path: Path) -> None:
    source = tmp_path / "x.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("a", b"")
    # The directory has its only member again and again, and the number of members at the end still says 1.
    raw = source.read_bytes()
    begin, end = raw.index(b"PK\x01\x02"), raw.index(b"PK\x05\x06")
    directory = raw[begin:end] * (MOST_MEMBERS + 1)
    size = len(directory).to_bytes(4, "little")
    source.write_bytes(raw[:begin] + directory + raw[end : end + 12] + size + raw[end + 16 :])
    tracemalloc.start()
    try:
        with pytest.raises(SourceError, match="200,001 members.*unpack it"):
            Origin(source)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(directory)
    finally:
        tracemalloc.stop()


def test_a_directory_of_an_archive_that_is_too_long_is_refused_unread(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"a.md": "a"})
    raw = source.read_bytes()
    end = raw.index(b"PK\x05\x06")
    size = 1 << 30
    with source.open("r+b") as file:
        file.truncate(size)  # A hole, which takes no room on the disk.
        file.seek(size)
        file.write(raw[end : end + 12] + size.to_bytes(4, "little") + bytes(6))
    with pytest.raises(SourceError, match=r"directory of 1,073,741,824 bytes"):
        Origin(source)


def test_a_stored_member_may_be_longer_than_a_directory(tmp_path: Path) -> None:
    source = tmp_path / "x.zip"
    with zipfile.ZipFile(source, "w") as archive:
        archive.writestr("a.json", b" " * ((64 << 20) + 1))
    with Origin(source) as origin, origin.open("a.json") as member:
        assert len(member.read(65 << 20)) == (64 << 20) + 1


def test_the_archive_that_was_checked_is_the_one_that_is_read(tmp_path: Path) -> None:
    source = zipped(tmp_path / "x.zip", {"a.md": "checked"})
    with Origin(source) as origin:
        zipped(tmp_path / "other.zip", {"a.md": "another"}).replace(source)
        assert origin.read("a.md") == b"checked"


def test_a_link_in_a_folder_is_listed_and_not_followed(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "note.md").write_text("here", encoding="utf-8")
    (tmp_path / "secret.md").write_text("outside", encoding="utf-8")
    (vault / "link.md").symlink_to(tmp_path / "secret.md")
    os.mkfifo(vault / "pipe.md")
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        result = import_memory(home.agent("a"), "obsidian", vault)
        assert [entry.text for entry in home.agent("a").iter_entries()] == ["here"]
    assert [(one.place, "link" in one.reason) for one in result.failed] == [("link.md", True)]


def test_a_folder_behind_a_link_is_not_searched(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "elsewhere").symlink_to(FIXTURES / "chroma")
    assert Origin(tmp_path / "folder").near("chroma.sqlite3") == []
    assert Origin(FIXTURES).near("chroma.sqlite3") == [FIXTURES / "chroma" / "chroma.sqlite3"]


def test_a_file_whose_bytes_cannot_be_read_is_refused() -> None:
    # It is a regular file that can be opened, and the system refuses to read its beginning.
    with pytest.raises(SourceError, match=r"/proc/self/mem cannot be read: "):
        Origin(Path("/proc/self/mem"))
