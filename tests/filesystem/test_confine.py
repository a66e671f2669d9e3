import errno
import os
import re
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keepstone.errors import (
    AccessDeniedError,
    IsAFolderError,
    KeepstoneError,
    MemoryFileNotFoundError,
    PathEscapeError,
    StoreError,
)
from keepstone.filesystem.atomic import write_all
from keepstone.filesystem.confine import (
    Folder,
    border,
    check_file,
    check_path,
)

NEW = os.O_WRONLY | os.O_CREAT


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    with Folder(tmp_path / "inside", create=True) as folder:
        yield folder


@pytest.fixture
def outside(folder: Folder) -> Path:
    """A folder beside ``folder`` that has a file, and to which ``link`` in ``folder`` leads."""
    outside = folder.path.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (folder.path / "link").symlink_to(outside)
    return outside


def put(folder: Folder, name: str, data: bytes = b"data") -> None:
    fd = folder.open(name, NEW | os.O_TRUNC)
    write_all(fd, data)
    os.close(fd)


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("a", ("a",)),
        ("a/b.md", ("a", "b.md")),
        ("..a/b..", ("..a", "b..")),
        ("%2e%2e/a", ("%2e%2e", "a")),
        ("~/é/ﬀ\n", ("~", "é", "ﬀ\n")),
        ("．．／a", ("．．／a",)),
        ("12:30", ("12:30",)),
    ],
)
def test_an_ordinary_path_is_split_into_names(path: str, names: tuple[str, ...]) -> None:
    assert check_path(path) == names


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../a",
        "a/..",
        "a/../a",
        "/",
        "/a",
        "//a",
        "\\",
        "a\\b",
        "a\0",
        "\0",
        "C:",
        "c:x",
        "C:/x",
        "a/D:x",
        "../\ud800",
    ],
)
def test_a_path_that_could_leave_is_an_escape(path: str) -> None:
    with pytest.raises(PathEscapeError, match="relative path"):
        check_path(path)


@pytest.mark.parametrize("path", ["", ".", "./a", "a/.", "a//b", "a/", "\ud800", "é" * 128, "a/" * 512 + "a"])
def test_a_malformed_path_is_a_value_error(path: str) -> None:
    with pytest.raises(ValueError, match="empty name|surrogate|too long"):
        check_path(path)


@pytest.mark.parametrize("path", [None, 7, b"a", Path("a"), ["a"]])
def test_a_path_that_is_not_a_string_is_a_type_error(path: object) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        check_path(path)


@given(st.text() | st.text(alphabet="./\\:aC\0%2e", max_size=12))
@example("a/../../b")
def test_a_path_that_passes_lies_inside_and_names_itself(path: str) -> None:
    try:
        names = check_path(path)
    except (ValueError, PathEscapeError):
        return
    assert "/".join(names) == path
    assert os.path.normpath(f"/root/{path}") == f"/root/{path}"


def test_a_missing_folder_is_not_made_unless_asked(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Folder(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_and_its_parents_are_made_private(tmp_path: Path) -> None:
    Folder(tmp_path / "a" / "b", create=True).close()
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700


def test_a_file_in_the_place_of_a_folder_is_an_answer(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    for create in (False, True):
        with pytest.raises(NotADirectoryError):
            Folder(tmp_path / "a", create=create)


def test_a_link_to_nowhere_is_not_made_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("none")
    with pytest.raises(NotADirectoryError):
        Folder(tmp_path / "a", create=True)


def test_a_folder_may_itself_be_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    with Folder(tmp_path / "home") as folder:
        put(folder, "a")
    assert (tmp_path / "real" / "a").read_bytes() == b"data"


def test_below_a_root_no_part_of_the_folder_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "files").mkdir(parents=True)
    (tmp_path / "b").symlink_to("a")
    for create in (False, True):
        with pytest.raises(PathEscapeError):
            Folder(tmp_path / "b" / "files", root=tmp_path, create=create)


def test_a_folder_below_a_root_is_made_private(tmp_path: Path) -> None:
    root = tmp_path / "root"
    Folder(root / "a" / "b", root=root, create=True).close()
    assert [mode_of(path) for path in (root, root / "a", root / "a" / "b")] == [0o700] * 3


def test_a_folder_beside_its_root_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="root"):
        Folder(tmp_path / "a", root=tmp_path / "root", create=True)
    with pytest.raises(PathEscapeError):
        Folder(tmp_path / "root" / ".." / "a", root=tmp_path / "root", create=True)
    assert not (tmp_path / "a").exists()


def test_a_new_file_belongs_to_its_owner_only(folder: Folder) -> None:
    put(folder, "a")
    assert mode_of(folder.path / "a") == 0o600


def test_a_descriptor_is_not_inherited_by_programs(folder: Folder) -> None:
    fd = folder.open("a", NEW)
    assert os.get_inheritable(fd) is False
    os.close(fd)


def test_a_file_below_a_made_folder_is_opened(folder: Folder) -> None:
    folder.make_folder("b/c")
    put(folder, "b/c/a", b"deep")
    assert (folder.path / "b" / "c" / "a").read_bytes() == b"deep"
    assert mode_of(folder.path / "b") == mode_of(folder.path / "b" / "c") == 0o700


def test_a_folder_that_exists_may_be_made_again(folder: Folder) -> None:
    folder.make_folder("b")
    folder.make_folder("b")
    assert (folder.path / "b").is_dir()


@pytest.mark.parametrize("name", ["..", "../outside/secret", "a/../b", ".", "", "a//b", "/etc/passwd"])
def test_no_call_takes_a_name_that_is_not_below(folder: Folder, outside: Path, name: str) -> None:
    for call in (folder.stat, folder.unlink, folder.make_folder):
        with pytest.raises((PathEscapeError, FileNotFoundError)):
            call(name)
    with pytest.raises((PathEscapeError, FileNotFoundError)):
        folder.open(name, os.O_RDONLY)
    assert (outside / "secret").read_text() == "secret"


def test_a_link_is_not_opened(folder: Folder, outside: Path) -> None:
    (folder.path / "file").symlink_to(outside / "secret")
    for flags in (os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, NEW | os.O_APPEND):
        with pytest.raises(PathEscapeError):
            folder.open("file", flags)
    assert (outside / "secret").read_text() == "secret"


def test_a_link_to_nowhere_makes_no_file(folder: Folder) -> None:
    (folder.path / "file").symlink_to(folder.path.parent / "new")
    with pytest.raises(PathEscapeError):
        folder.open("file", NEW)
    assert not (folder.path.parent / "new").exists()


def test_no_call_passes_through_a_linked_folder(folder: Folder, outside: Path) -> None:
    put(folder, "a")
    with pytest.raises(PathEscapeError):
        folder.open("link/secret", os.O_RDONLY)
    with pytest.raises(PathEscapeError):
        folder.replace("a", "link/secret")
    with pytest.raises(PathEscapeError):
        list(folder.scan("link"))
    for call in (folder.stat, folder.unlink, folder.make_folder):
        with pytest.raises(PathEscapeError):
            call("link/secret")
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_a_linked_folder_is_not_taken_for_a_made_one(folder: Folder, outside: Path) -> None:
    with pytest.raises(PathEscapeError):
        folder.make_folder("link/new")
    with pytest.raises(PathEscapeError):
        folder.make_folder("link")
    with pytest.raises(PathEscapeError):
        folder.sync("link")
    assert not (outside / "new").exists()


def test_a_link_can_be_looked_at_and_removed_itself(folder: Folder, outside: Path) -> None:
    assert stat.S_ISLNK(folder.stat("link").st_mode)
    folder.unlink("link")
    assert (outside / "secret").exists()
    assert not (folder.path / "link").is_symlink()


def test_a_link_that_replaces_an_open_folder_leads_nowhere(tmp_path: Path) -> None:
    with Folder(tmp_path / "a", create=True) as folder:
        (tmp_path / "a").rename(tmp_path / "moved")
        (tmp_path / "a").symlink_to(tmp_path)
        put(folder, "file")
    assert (tmp_path / "moved" / "file").exists()


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY, os.O_RDWR])
def test_a_fifo_is_refused_without_waiting(folder: Folder, flags: int) -> None:
    os.mkfifo(folder.path / "fifo")
    with pytest.raises(PathEscapeError):
        folder.open("fifo", flags)


def test_a_socket_is_refused(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(PathEscapeError):
            folder.open("socket", os.O_RDONLY)


@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_WRONLY])
def test_a_folder_is_not_opened_as_a_file(folder: Folder, flags: int) -> None:
    folder.make_folder("b")
    with pytest.raises(IsAFolderError):
        folder.open("b", flags)


def test_a_device_is_not_a_regular_file() -> None:
    with pytest.raises(PathEscapeError, match="device"):
        check_file(os.stat(os.devnull), "null")


@pytest.mark.parametrize("name", ["a", ".a", "b/a"])
def test_what_is_absent_is_an_answer(folder: Folder, name: str) -> None:
    for call in (folder.stat, folder.unlink):
        with pytest.raises(FileNotFoundError) as info:
            call(name)
        assert not isinstance(info.value, KeepstoneError)
    with pytest.raises(FileNotFoundError):
        folder.open(name, os.O_RDONLY)


def test_a_file_where_a_folder_is_needed_is_an_answer(folder: Folder) -> None:
    put(folder, "a")
    with pytest.raises(NotADirectoryError):
        folder.open("a/b", NEW)
    with pytest.raises(NotADirectoryError):
        folder.make_folder("a/b")
    with pytest.raises(NotADirectoryError):
        folder.make_folder("a")


def test_a_name_that_is_taken_is_an_answer(folder: Folder) -> None:
    put(folder, "a")
    with pytest.raises(FileExistsError):
        folder.open("a", NEW | os.O_EXCL)


@pytest.mark.parametrize("name", ["a", ".a", "b/a"])
def test_a_file_is_looked_at_by_name(folder: Folder, name: str) -> None:
    folder.make_folder("b")
    put(folder, name, b"12345")
    assert folder.stat(name).st_size == 5


def test_a_plain_name_costs_one_look(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    put(folder, "a")
    monkeypatch.setattr(os, "open", None)
    monkeypatch.setattr(os, "lstat", None)
    assert folder.stat("a").st_size == 4


def test_a_rename_replaces_the_old_file(folder: Folder) -> None:
    folder.make_folder("b")
    put(folder, "new", b"new")
    put(folder, "b/old", b"old")
    folder.replace("new", "b/old")
    folder.sync("b")
    assert (folder.path / "b" / "old").read_bytes() == b"new"
    assert not (folder.path / "new").exists()


@pytest.mark.usefixtures("outside")
def test_a_scan_gives_names_and_kinds(folder: Folder) -> None:
    put(folder, "a")
    folder.make_folder("b")
    found = {
        entry.name: (entry.is_file(follow_symlinks=False), entry.is_symlink()) for entry in folder.scan()
    }
    assert found == {"a": (True, False), "b": (False, False), "link": (False, True)}


def test_two_scans_at_once_do_not_disturb_one_another(folder: Folder) -> None:
    for number in range(50):
        put(folder, str(number))
    one, other = folder.scan(), folder.scan()
    pairs = list(zip(one, other, strict=True))
    assert len({first.name for first, _ in pairs}) == len({second.name for _, second in pairs}) == 50


def test_a_scan_below_gives_what_lies_there(folder: Folder) -> None:
    folder.make_folder("b/c")
    put(folder, "b/a")
    assert {entry.name for entry in folder.scan("b")} == {"a", "c"}


def test_a_scan_that_is_left_early_keeps_nothing_open(folder: Folder) -> None:
    put(folder, "a")
    put(folder, "b")
    before = open_descriptors()
    scan = folder.scan()
    next(scan)
    del scan
    assert open_descriptors() == before


@pytest.mark.usefixtures("outside")
def test_refusals_keep_nothing_open(folder: Folder) -> None:
    os.mkfifo(folder.path / "fifo")
    before = open_descriptors()
    for name in ("fifo", "link", "link/secret", "none", "none/a", "b/../c"):
        with pytest.raises((PathEscapeError, FileNotFoundError)):
            folder.open(name, os.O_RDONLY)
    assert open_descriptors() == before


def test_a_folder_that_was_removed_says_so(folder: Folder) -> None:
    assert folder.is_moved() is False
    folder.path.rmdir()
    assert folder.is_moved() is True


def test_a_closed_folder_is_of_no_use_and_closes_again(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.close()
    folder.close()
    with pytest.raises(StoreError):
        folder.open("a", NEW)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.EACCES, AccessDeniedError),
        (errno.EPERM, AccessDeniedError),
        (errno.EROFS, AccessDeniedError),
        (errno.EISDIR, IsAFolderError),
        (errno.ELOOP, PathEscapeError),
        (errno.ENXIO, PathEscapeError),
        (errno.ENOSPC, StoreError),
        (errno.EIO, StoreError),
    ],
)
def test_an_error_of_the_system_has_a_counterpart(number: int, expected: type[KeepstoneError]) -> None:
    cause = OSError(number, os.strerror(number))
    with pytest.raises(expected, match="here/a") as info, border("here", "a"):
        raise cause
    assert type(info.value) is expected
    assert info.value.__cause__ is cause


@pytest.mark.parametrize("number", sorted(errno.errorcode))
def test_no_error_of_the_system_is_missed(number: int) -> None:
    answers = (FileNotFoundError, FileExistsError, NotADirectoryError)
    with pytest.raises((KeepstoneError, *answers)), border("a"):
        raise OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    "error", [FileNotFoundError(), NotADirectoryError(), MemoryFileNotFoundError("a"), KeyError()]
)
def test_answers_and_our_own_errors_pass_the_border(error: Exception) -> None:
    with pytest.raises(type(error)) as info, border("a"):
        raise error
    assert info.value is error


def test_a_look_that_the_system_refuses_is_translated(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(AccessDeniedError, match=re.escape(str(folder.path))):
        folder.stat("a")
