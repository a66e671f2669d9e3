import os
import resource
import shutil
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.errors import (
    AccessDeniedError,
    IsAFolderError,
    LockTimeoutError,
    MemoryFileNotFoundError,
    NotTextError,
    PathEscapeError,
    StoreError,
)
from keepstone.files import AgentFiles
from keepstone.filesystem.confine import Folder
from keepstone.filesystem.layout import FILES_LOCK, FILES_TEMPORARY
from keepstone.filesystem.lock import Lock

Call = Callable[[AgentFiles, str], object]

READ: Call = lambda files, path: files.read(path)  # noqa: E731
WRITE: Call = lambda files, path: files.write(path, "new")  # noqa: E731
APPEND: Call = lambda files, path: files.append(path, "new")  # noqa: E731
DELETE: Call = lambda files, path: files.delete(path)  # noqa: E731
ALL = pytest.mark.parametrize(
    "call", [READ, WRITE, APPEND, DELETE], ids=["read", "write", "append", "delete"]
)
CHANGES = pytest.mark.parametrize("call", [WRITE, APPEND], ids=["write", "append"])
LOOKS = pytest.mark.parametrize("call", [READ, DELETE], ids=["read", "delete"])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "agent" / "files"


@pytest.fixture
def files(root: Path) -> AgentFiles:
    return AgentFiles(root)


@pytest.fixture
def small_disk() -> Iterator[None]:
    """A system that lets no file grow above 100 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def ordinary_user() -> Iterator[None]:
    """What files forbid by their mode is forbidden inside; the superuser may do everything."""
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: bytes of files, None for what is none."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_written_file_is_read_back(files: AgentFiles) -> None:
    assert files.write("plans/today.md", "Zürich\n") == 8
    assert files.read("plans/today.md") == "Zürich\n"


def test_a_write_replaces_the_whole_content(files: AgentFiles) -> None:
    files.write("a.md", "a long text")
    assert files.write("a.md", "short") == 5
    assert files.read("a.md") == "short"


def test_an_append_puts_content_behind_the_old(files: AgentFiles) -> None:
    files.write("a.md", "one")
    assert files.append("a.md", "zwölf") == 6
    assert files.read("a.md") == "onezwölf"


def test_an_append_makes_the_file_and_its_folders(files: AgentFiles) -> None:
    assert files.append("a/b/c.md", "new") == 3
    assert files.read("a/b/c.md") == "new"


@given(st.text() | st.text(alphabet="a\r\n\0\u2028\ufeff"), st.text(alphabet="b\r\n\0é\U0001f600"))
def test_any_unicode_text_comes_back_byte_for_byte(first: str, second: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = AgentFiles(Path(folder), durable=False)
        files.write("a", first)
        files.append("a", second)
        assert files.read("a") == first + second
        assert (Path(folder) / "a").read_bytes() == (first + second).encode()


def test_what_is_written_is_a_plain_file_of_its_owner(files: AgentFiles, root: Path) -> None:
    files.write("plans/a.md", "text")
    files.append("plans/b.md", "text")
    assert (root / "plans" / "a.md").read_text() == "text"
    assert mode_of(root / "plans" / "a.md") == mode_of(root / "plans" / "b.md") == 0o600
    assert mode_of(root) == mode_of(root / "plans") == 0o700


@CHANGES
def test_a_file_keeps_its_mode_when_it_changes(files: AgentFiles, root: Path, call: Call) -> None:
    files.write("a.md", "old")
    (root / "a.md").chmod(0o664)
    call(files, "a.md")
    assert mode_of(root / "a.md") == 0o664


@LOOKS
def test_a_missing_file_is_not_found_and_nothing_is_made(files: AgentFiles, root: Path, call: Call) -> None:
    with pytest.raises(MemoryFileNotFoundError, match=r"'none\.md'"):
        call(files, "none.md")
    assert not root.exists()


@LOOKS
def test_a_path_through_a_file_finds_nothing(files: AgentFiles, call: Call) -> None:
    files.write("a.md", "text")
    with pytest.raises(MemoryFileNotFoundError):
        call(files, "a.md/b.md")


@CHANGES
def test_a_path_that_needs_a_folder_in_a_files_place_is_refused(
    files: AgentFiles, root: Path, call: Call
) -> None:
    files.write("a.md", "text")
    for path in ("a.md/b.md", "a.md/b/c.md"):
        with pytest.raises(ValueError, match="another path"):
            call(files, path)
    assert tree(root) == {"a.md": b"text"}


@ALL
def test_a_folder_is_not_taken_for_a_file(files: AgentFiles, root: Path, call: Call) -> None:
    files.write("plans/a.md", "text")
    with pytest.raises(IsAFolderError, match="'plans'"):
        call(files, "plans")
    assert tree(root) == {"plans": None, "plans/a.md": b"text"}


@ALL
@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/passwd", "a\\b", "a\0", "C:x", ".."])
def test_a_path_that_leaves_touches_nothing(files: AgentFiles, tmp_path: Path, call: Call, path: str) -> None:
    with pytest.raises(PathEscapeError):
        call(files, path)
    assert tree(tmp_path) == {}


@ALL
@pytest.mark.parametrize("path", ["", ".", "a//b", "a/", "\ud800", "a" * 256, FILES_LOCK, ".Keepstone.tmp/a"])
def test_a_malformed_path_touches_nothing(files: AgentFiles, tmp_path: Path, call: Call, path: str) -> None:
    with pytest.raises(ValueError, match=r"empty|surrogate|too long|reserved"):
        call(files, path)
    assert tree(tmp_path) == {}


@ALL
def test_a_path_that_is_not_a_string_is_a_type_error(files: AgentFiles, tmp_path: Path, call: Call) -> None:
    with pytest.raises(TypeError):
        call(files, None)  # type: ignore[arg-type]
    assert tree(tmp_path) == {}


@CHANGES
def test_a_name_of_255_bytes_can_be_written(files: AgentFiles, call: Call) -> None:
    call(files, "é" * 127 + "a")
    assert files.list() == ["é" * 127 + "a"]


@ALL
def test_a_link_is_refused_and_its_target_kept(
    files: AgentFiles, root: Path, tmp_path: Path, call: Call
) -> None:
    (tmp_path / "secret.md").write_text("secret")
    files.write("a.md", "text")
    (root / "link.md").symlink_to(tmp_path / "secret.md")
    (root / "inside.md").symlink_to(root / "a.md")
    (root / "folder").symlink_to(tmp_path)
    before = tree(tmp_path)
    for path in ("link.md", "inside.md", "folder/secret.md", "folder/new/a.md", "folder"):
        with pytest.raises(PathEscapeError):
            call(files, path)
    assert tree(tmp_path) == before


@ALL
def test_a_hard_link_is_refused_and_its_target_kept(
    files: AgentFiles, root: Path, tmp_path: Path, call: Call
) -> None:
    files.write("a.md", "text")
    (tmp_path / "secret.md").write_text("secret")
    (root / "link.md").hardlink_to(tmp_path / "secret.md")
    before = tree(tmp_path)
    with pytest.raises(PathEscapeError, match="put a copy in its place"):
        call(files, "link.md")
    assert tree(tmp_path) == before


def test_a_hard_link_is_neither_listed_nor_searched(files: AgentFiles, root: Path, tmp_path: Path) -> None:
    files.write("a.md", "text")
    (tmp_path / "secret.md").write_text("secret")
    (root / "link.md").hardlink_to(tmp_path / "secret.md")
    assert (files.list(), files.matching("secret")) == (["a.md"], [])


@ALL
def test_a_fifo_is_refused_without_waiting(files: AgentFiles, root: Path, call: Call) -> None:
    files.write("a.md", "text")
    os.mkfifo(root / "fifo")
    with pytest.raises(PathEscapeError):
        call(files, "fifo")


@ALL
def test_below_a_root_a_linked_agent_is_refused(tmp_path: Path, call: Call) -> None:
    AgentFiles(tmp_path / "a" / "files").write("a.md", "text")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(PathEscapeError):
        call(AgentFiles(tmp_path / "b" / "files", root=tmp_path), "a.md")
    assert (tmp_path / "a" / "files" / "a.md").read_text() == "text"


@pytest.mark.parametrize("content", ["\ud800", "a\udfff"])
def test_content_with_a_lone_surrogate_changes_nothing(files: AgentFiles, root: Path, content: str) -> None:
    files.write("a.md", "old")
    for change in (files.write, files.append):
        with pytest.raises(ValueError, match="lone surrogate"):
            change("a.md", content)
    assert tree(root) == {"a.md": b"old"}


@pytest.mark.parametrize("content", [None, b"bytes", 7, ["a"]])
def test_content_that_is_not_a_string_changes_nothing(files: AgentFiles, root: Path, content: str) -> None:
    for change in (files.write, files.append):
        with pytest.raises(TypeError, match="must be a string"):
            change("a.md", content)
    assert not root.exists()


def test_bytes_that_are_not_utf8_are_left_alone(files: AgentFiles, root: Path) -> None:
    files.write("a.md", "text")
    (root / "a.md").write_bytes(b"ab\xff")
    with pytest.raises(NotTextError, match="byte 2"):
        files.read("a.md")
    assert tree(root) == {"a.md": b"ab\xff"}


def test_all_files_are_listed_in_order(files: AgentFiles) -> None:
    for path in ("b.md", "a/c.md", "a/b/d.md", ".hidden/e", "a.md"):
        files.write(path, "")
    assert files.list() == [".hidden/e", "a.md", "a/b/d.md", "a/c.md", "b.md"]


def test_an_agent_that_never_wrote_has_no_files(files: AgentFiles, root: Path) -> None:
    assert files.list() == []
    assert not root.exists()


def test_a_file_in_the_place_of_the_folder_holds_none(files: AgentFiles, root: Path) -> None:
    root.parent.mkdir()
    root.touch()
    assert files.list() == []
    with pytest.raises(MemoryFileNotFoundError):
        files.read("a.md")


def test_only_the_files_below_a_folder_are_listed(files: AgentFiles) -> None:
    for path in ("a/b/d.md", "a/c.md", "ab.md", "a.md"):
        files.write(path, "x")
    assert [files.list("a"), files.list("a/b"), files.list("a.md"), files.list("none")] == [
        ["a/b/d.md", "a/c.md"], ["a/b/d.md"], [], [],
    ]  # fmt: skip


def test_a_folder_outside_of_the_agents_is_not_listed(files: AgentFiles) -> None:
    for folder in ("..", "/etc", "a/../.."):
        with pytest.raises(PathEscapeError):
            files.list(folder)


def test_only_what_can_be_read_is_listed(files: AgentFiles, root: Path, tmp_path: Path) -> None:
    files.write("a.md", "text")
    (root / "link").symlink_to(tmp_path)
    (root / "file").symlink_to(root / "a.md")
    (root / "back\\slash").touch()
    (root / FILES_TEMPORARY).touch()
    (root / os.fsdecode(b"caf\xe9")).touch()
    os.mkfifo(root / "fifo")
    assert files.list() == ["a.md"]


def test_a_deleted_file_is_gone(files: AgentFiles, root: Path) -> None:
    files.write("plans/a.md", "text")
    files.delete("plans/a.md")
    assert files.list() == []
    assert tree(root) == {"plans": None}


def test_a_file_made_by_hand_is_read_and_listed(files: AgentFiles, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "by hand.yaml").write_bytes(b"a: 1\r\n")
    assert files.list() == ["by hand.yaml"]
    assert files.read("by hand.yaml") == "a: 1\r\n"


@given(st.text(alphabet="ab./\\:~%C\0é\n", max_size=12), st.sampled_from([WRITE, APPEND, READ, DELETE]))
def test_no_path_touches_anything_outside(path: str, call: Call) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        (top / "b").write_text("outside")
        files = AgentFiles(top / "a", durable=False)
        try:
            call(files, path)
        except (ValueError, PermissionError, FileNotFoundError):
            assert tree(top) == {"b": b"outside"}
        else:
            assert files.list() == [path]
        assert {entry.name for entry in top.iterdir()} <= {"a", "b"}


@pytest.mark.usefixtures("small_disk")
@pytest.mark.parametrize("change", ["write", "append"])
def test_a_full_disk_leaves_the_old_content(files: AgentFiles, root: Path, change: str) -> None:
    files.write("a.md", "x" * 99)
    with pytest.raises(StoreError, match="free space"):
        getattr(files, change)("a.md", "y" * 200)
    assert tree(root) == {"a.md": b"x" * 99}


@pytest.mark.usefixtures("small_disk")
def test_an_append_that_fails_makes_no_file(files: AgentFiles, root: Path) -> None:
    with pytest.raises(StoreError):
        files.append("a.md", "y" * 200)
    assert tree(root) == {}


@CHANGES
def test_a_sync_that_fails_leaves_the_old_content(
    files: AgentFiles, root: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.md", "old")

    def fail(*_: object) -> None:
        raise StoreError("the disk failed")

    monkeypatch.setattr("keepstone.filesystem.atomic.sync_file", fail)
    with pytest.raises(StoreError):
        call(files, "a.md")
    assert tree(root) == {"a.md": b"old"}


@ALL
def test_a_file_that_the_system_refuses_is_access_denied(files: AgentFiles, root: Path, call: Call) -> None:
    files.write("a.md", "text")
    for path in (root / "a.md", root):
        path.chmod(0)
    with ordinary_user(), pytest.raises(AccessDeniedError, match="owner and mode"):
        call(files, "a.md")


def test_what_a_killed_writer_left_is_removed_by_the_next(files: AgentFiles, root: Path) -> None:
    files.write("a.md", "text")
    (root / FILES_TEMPORARY).write_text("half a te")
    files.append("a.md", ".")
    assert tree(root) == {"a.md": b"text."}


def test_a_change_waits_for_another_writer(
    files: AgentFiles, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.write("a.md", "old")
    monkeypatch.setattr(Lock, "hold", partialmethod(Lock.hold, timeout=0.01))
    with Folder(root) as folder, Lock(folder, FILES_LOCK).hold():
        for change in (files.write, files.append):
            with pytest.raises(LockTimeoutError):
                change("a.md", "new")
        assert files.read("a.md") == "old"


@CHANGES
def test_a_folder_that_vanishes_concurrently_is_a_store_error(
    files: AgentFiles, root: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Folder, "make_folder", lambda *_: shutil.rmtree(root))
    with pytest.raises(StoreError, match="try again"):
        call(files, "plans/a.md")
    assert not root.exists()


def test_without_durability_nothing_is_synced(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.mkdir(parents=True)
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, None)
    files = AgentFiles(root, durable=False)
    files.write("a.md", "one")
    files.append("a.md", "two")
    files.delete("a.md")
    assert files.list() == []


@pytest.mark.parametrize(
    ("call", "last"),
    [(WRITE, "folder"), (APPEND, "folder"), (DELETE, "folder")],
    ids=["write", "append", "delete"],
)
def test_a_change_is_synced_before_it_returns(
    files: AgentFiles, monkeypatch: pytest.MonkeyPatch, call: Call, last: str
) -> None:
    files.write("plans/a.md", "old")
    synced: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda _: synced.append("file"))
    monkeypatch.setattr(os, "fsync", lambda _: synced.append("folder"))
    call(files, "plans/a.md")
    assert synced[-1] == last


def test_threads_that_append_lose_nothing(root: Path) -> None:
    files = AgentFiles(root, durable=False)
    start = threading.Barrier(4)

    def work(name: str) -> None:
        start.wait()
        for number in range(10):
            files.append("log.md", f"{name}{number}\n")

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(files.read("log.md").split()) == sorted(f"{name}{n}" for name in "abcd" for n in range(10))


def test_processes_that_append_and_write_lose_nothing(root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from keepstone.files import AgentFiles\n"
        "files = AgentFiles(Path(sys.argv[1]), durable=False)\n"
        "for n in range(25):\n"
        "    files.append('log.md', f'{sys.argv[2]}{n}\\n'); files.write('state.md', sys.argv[2] * 5000)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(root), name]) for name in "abc"]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    files = AgentFiles(root)
    assert sorted(files.read("log.md").split()) == sorted(f"{name}{n}" for name in "abc" for n in range(25))
    assert files.read("state.md") in {name * 5000 for name in "abc"}
    assert files.list() == ["log.md", "state.md"]


def test_a_killed_writer_leaves_a_whole_file(root: Path) -> None:
    program = (
        "import itertools, sys; from pathlib import Path; from keepstone.files import AgentFiles\n"
        "files = AgentFiles(Path(sys.argv[1]), durable=False)\n"
        "for text in itertools.cycle('ab'):\n"
        "    files.write('a.md', text * 1_000_000); print('.', end='', flush=True)\n"
    )
    for writes in range(1, 6):
        with subprocess.Popen([sys.executable, "-c", program, str(root)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.read(writes)
            process.kill()
        assert AgentFiles(root).read("a.md") in {"a" * 1_000_000, "b" * 1_000_000}
    assert AgentFiles(root).list() == ["a.md"]


def test_a_check_sees_the_old_text_and_can_stop_the_write(tmp_path: Path) -> None:
    files = AgentFiles(tmp_path / "files")
    seen: list[str | None] = []
    files.write("a", "one", check=seen.append)
    files.write("a", "two", check=seen.append)
    assert seen == [None, "one"]

    def refuse(_: str | None) -> None:
        raise ValueError("changed")

    for change in (
        lambda: files.write("a", "three", check=refuse),
        lambda: files.append("a", "three", check=refuse),
        lambda: files.delete("a", check=refuse),
    ):
        with pytest.raises(ValueError, match="changed"):
            change()
    assert files.read("a") == "two"


def test_texts_gives_the_smallest_files_and_names_the_others(root: Path) -> None:
    files = AgentFiles(root)
    assert files.texts(100) == {}
    files.write("deep/small.md", "four")
    files.write("middle.md", "sixsix")
    files.write("large.md", "x" * 91)
    (root / "binary").write_bytes(b"\xff")
    (root / "link").symlink_to(root / "middle.md")
    found = {"deep/small.md": "four", "middle.md": "sixsix", "large.md": None, "binary": None}
    assert files.texts(100) == found
