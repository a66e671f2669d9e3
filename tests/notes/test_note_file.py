import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from keepstone.errors import AccessDeniedError, IsAFolderError, LockTimeoutError, PathEscapeError, StoreError
from keepstone.filesystem import folder_lock
from keepstone.filesystem.confine import Folder
from keepstone.notes.note_file import NotesFile

KILLED_BEFORE_REPLACING = """
import os, pathlib, signal, sys
from keepstone.notes.note_file import NotesFile
os.replace = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
NotesFile(pathlib.Path(sys.argv[1]), private=False).edit(lambda old: (b"new", None))
"""


EDIT_AND_WAIT = """
import pathlib, sys
from keepstone.notes.note_file import NotesFile
def change(old):
    print("editing", flush=True)
    sys.stdin.read()
    return None, None
NotesFile(pathlib.Path(sys.argv[1]), private=False).edit(change)
"""
FORK_WHILE_EDITING = """
import os, pathlib, signal, sys
from keepstone.notes.note_file import NotesFile
def change(old):
    if os.fork() == 0:
        print("forked", flush=True)
        sys.stdin.read()
        os._exit(0)
    signal.pause()
NotesFile(pathlib.Path(sys.argv[1]), private=False).edit(change)
"""
APPEND = """
import pathlib, sys
from keepstone.notes.note_file import NotesFile
print("ready", flush=True)
sys.stdin.readline()
for _ in range(40):
    NotesFile(pathlib.Path(sys.argv[1]), private=False).edit(lambda old: (old + b"x", None))
"""


@contextmanager
def process(program: str, path: Path, home: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process of another home that has said its first line; it goes on when its input is closed."""
    command = [sys.executable, "-c", program, str(path)]
    names = ("HOME", "XDG_STATE_HOME", "LOCALAPPDATA")
    environment = os.environ | dict.fromkeys(names, str(home))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as running:
        assert running.stdout
        running.stdout.readline()
        yield running


def write(path: Path, data: bytes, *, private: bool = False) -> None:
    NotesFile(path, private=private).edit(lambda _: (data, None))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_missing_file_reads_as_empty(tmp_path: Path) -> None:
    assert NotesFile(tmp_path / "AGENTS.md", private=False).read() == b""


def test_a_change_of_none_writes_nothing(tmp_path: Path) -> None:
    assert NotesFile(tmp_path / "AGENTS.md", private=False).edit(lambda old: (None, old + b"!")) == b"!"
    assert list(tmp_path.iterdir()) == []


def test_an_edit_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    write(tmp_path / "AGENTS.md", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["AGENTS.md"]


def test_a_private_file_and_its_folders_are_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "memory.md"
    write(path, b"new", private=True)
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)


def test_a_project_file_gets_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(tmp_path / "AGENTS.md", b"new")
    finally:
        os.umask(old)
    assert mode(tmp_path / "AGENTS.md") == 0o640


@pytest.mark.parametrize("kept", [0o644, 0o664, 0o600, 0o755])
def test_the_mode_of_a_file_is_kept(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "memory.md"
    path.write_bytes(b"old")
    path.chmod(kept)
    write(path, b"new", private=True)
    assert (path.read_bytes(), mode(path)) == (b"new", kept)


def test_a_link_is_written_through_and_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "shared" / "rules.md"
    target.parent.mkdir()
    link = tmp_path / "AGENTS.md"
    link.symlink_to(target)
    for data in (b"made", b"changed"):
        write(link, data)
        assert (link.is_symlink(), target.read_bytes()) == (True, data)


def test_a_file_with_a_second_name_keeps_it(tmp_path: Path) -> None:
    path, other = tmp_path / "AGENTS.md", tmp_path / "other.md"
    path.write_bytes(b"a longer old text")
    os.link(path, other)
    write(path, b"new")
    assert other.read_bytes() == b"new"


def test_a_read_only_file_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    path.chmod(0o444)
    with pytest.raises(AccessDeniedError, match="chmod u\\+w"):
        write(path, b"new")
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"old", ["AGENTS.md"])


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").mkdir()
    with pytest.raises(IsAFolderError, match="move the folder away"):
        write(tmp_path / "AGENTS.md", b"new")


def test_a_pipe_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    with pytest.raises(StoreError, match="regular file"):
        write(tmp_path / "AGENTS.md", b"new")


def test_a_missing_project_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot access"):
        write(tmp_path / "gone" / "AGENTS.md", b"new")


def test_a_refusal_of_the_system_is_access_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", path)

    (tmp_path / "AGENTS.md").touch()
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(AccessDeniedError, match="check its owner"):
        NotesFile(tmp_path / "AGENTS.md", private=False).read()


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fdatasync", fail, raising=False)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match=r"AGENTS\.md: No space left"):
        write(path, b"new")
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"old", ["AGENTS.md"])


def test_a_concurrent_save_by_an_editor_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    editor = iter([b"edited"])

    def change(old: bytes) -> tuple[bytes, None]:
        path.write_bytes(next(editor, old))
        return old + b" and added", None

    NotesFile(path, private=False).edit(change)
    assert path.read_bytes() == b"edited and added"


def test_a_lock_that_is_kept_times_out_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_lock, "TIMEOUT", 0.01)
    path = tmp_path / "AGENTS.md"

    def while_locked(_: bytes) -> tuple[None, None]:
        with pytest.raises(LockTimeoutError, match="nothing was written"):
            write(path, b"new")
        return None, None

    NotesFile(path, private=False).edit(while_locked)
    assert not path.exists()


@pytest.mark.parametrize("name", ["AGENTS.md", "link.md"])
def test_processes_of_different_homes_share_the_lock_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(folder_lock, "TIMEOUT", 0.01)
    path = tmp_path / "project" / "AGENTS.md"
    path.parent.mkdir()
    (path.parent / "link.md").symlink_to(path)
    path.write_bytes(b"old")
    with process(EDIT_AND_WAIT, path.parent / name, tmp_path / "home"):
        with pytest.raises(LockTimeoutError, match="nothing was written"):
            write(path, b"new")
        assert path.read_bytes() == b"old"
    assert sorted(one.name for one in path.parent.iterdir()) == ["AGENTS.md", "link.md"]


@pytest.mark.parametrize("names", [("AGENTS.md", "AGENTS.md"), ("AGENTS.md", "other/AGENTS.md")])
def test_processes_of_different_homes_lose_no_edit(tmp_path: Path, names: tuple[str, str]) -> None:
    (tmp_path / "other").mkdir()
    paths = [tmp_path / name for name in names]
    paths[0].touch()
    if len({*names}) == 2:
        paths[1].hardlink_to(paths[0])
    with ExitStack() as stack:
        homes = ((path, tmp_path / f"home{number}") for number, path in enumerate(paths))
        for writer in [stack.enter_context(process(APPEND, *home)) for home in homes]:
            assert writer.stdin
            writer.stdin.write("go\n")
            writer.stdin.flush()
    assert paths[0].read_bytes() == b"x" * 80


def test_a_file_with_a_second_name_is_locked_for_both_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "TIMEOUT", 0.01)
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    path.with_name("other.md").hardlink_to(path)
    with folder_lock.hold(path), pytest.raises(LockTimeoutError):
        write(path.with_name("other.md"), b"new")
    assert path.read_bytes() == b"old"


def test_a_folder_that_was_replaced_has_another_lock(tmp_path: Path) -> None:
    path = tmp_path / "project" / "AGENTS.md"
    path.parent.mkdir()
    with process(EDIT_AND_WAIT, path, tmp_path / "home"):
        path.parent.rename(tmp_path / "before")
        path.parent.mkdir()
        write(path, b"new")
    assert path.read_bytes() == b"new"


def test_a_forked_child_keeps_no_lock_of_a_killed_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_lock, "TIMEOUT", 0.01)
    path = tmp_path / "AGENTS.md"
    path.touch()
    with process(FORK_WHILE_EDITING, path, tmp_path) as parent:
        parent.kill()
        parent.wait()
        write(path, b"new")
    assert path.read_bytes() == b"new"


def test_each_write_has_a_temporary_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced: list[str] = []
    replace = Folder.replace

    def told(folder: Folder, source: str, target: str) -> None:
        replaced.append(source)
        replace(folder, source, target)

    monkeypatch.setattr(Folder, "replace", told)
    for data in (b"one", b"two"):
        write(tmp_path / "AGENTS.md", data)
    assert len({*replaced}) == 2


@pytest.mark.parametrize(
    "link", ["../outside.md", "{outside}", "inner/outside.md", "folder/outside.md", ".", "../missing.md"]
)
def test_a_link_out_of_the_project_is_neither_read_nor_written(tmp_path: Path, link: str) -> None:
    outside, project = tmp_path / "outside.md", tmp_path / "project"
    outside.write_bytes(b"password")
    (project / "inner").mkdir(parents=True)
    (project / "inner" / "outside.md").symlink_to(outside)
    (project / "folder").symlink_to(tmp_path)
    (project / "AGENTS.md").symlink_to(link.format(outside=outside))
    file = NotesFile(project / "AGENTS.md", private=False)
    for use in (file.read, lambda: file.edit(lambda old: (old + b"new", None))):
        with pytest.raises(PathEscapeError, match="link out of its folder"):
            use()
    assert outside.read_bytes() == b"password"
    assert not (tmp_path / "missing.md").exists()


def test_the_users_own_file_may_be_a_link_to_anywhere(tmp_path: Path) -> None:
    path, target = tmp_path / "wave" / "memory.md", tmp_path / "dotfiles" / "memory.md"
    for folder in (path.parent, target.parent):
        folder.mkdir()
    path.symlink_to(target)
    write(path, b"new", private=True)
    assert (path.is_symlink(), target.read_bytes()) == (True, b"new")
    assert NotesFile(path, private=True).read() == b"new"


def test_threads_that_edit_one_file_take_turns(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"

    def append() -> None:
        for _ in range(10):
            NotesFile(path, private=False).edit(lambda old: (old + b"x", None))

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_bytes() == b"x" * 40


def test_a_killed_writer_leaves_the_old_file_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    child = subprocess.run([sys.executable, "-c", KILLED_BEFORE_REPLACING, str(path)], check=False)
    assert (child.returncode, path.read_bytes()) == (-signal.SIGKILL, b"old")
    write(path, b"next")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("AGENTS.md", b"next")]
