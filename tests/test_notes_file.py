import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from keepstone import notes_file
from keepstone.errors import AccessDeniedError, IsAFolderError, LockTimeoutError, StoreError
from keepstone.notes_file import NotesFile

needs_posix = pytest.mark.skipif(os.name == "nt", reason="modes and signals of POSIX")
KILLED_BEFORE_REPLACING = """
import os, pathlib, signal, sys
from keepstone.notes_file import NotesFile
pathlib.Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
NotesFile(pathlib.Path(sys.argv[1]), private=False).edit(lambda old: (b"new", None))
"""


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


@needs_posix
def test_a_private_file_and_its_folders_are_for_the_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "memory.md"
    write(path, b"new", private=True)
    assert (mode(path), mode(path.parent), mode(path.parent.parent)) == (0o600, 0o700, 0o700)


@needs_posix
def test_a_project_file_gets_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write(tmp_path / "AGENTS.md", b"new")
    finally:
        os.umask(old)
    assert mode(tmp_path / "AGENTS.md") == 0o640


@needs_posix
@pytest.mark.parametrize("kept", [0o644, 0o664, 0o600, 0o755])
def test_the_mode_of_a_file_is_kept(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "memory.md"
    path.write_bytes(b"old")
    path.chmod(kept)
    write(path, b"new", private=True)
    assert (path.read_bytes(), mode(path)) == (b"new", kept)


@needs_posix
def test_a_link_is_written_through_and_stays_one(tmp_path: Path) -> None:
    target = tmp_path / "shared" / "rules.md"
    target.parent.mkdir()
    link = tmp_path / "AGENTS.md"
    link.symlink_to(target)
    for data in (b"made", b"changed"):
        write(link, data)
        assert (link.is_symlink(), target.read_bytes()) == (True, data)


@needs_posix
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
    with pytest.raises(IsAFolderError, match="move it away"):
        write(tmp_path / "AGENTS.md", b"new")


@needs_posix
def test_a_pipe_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    with pytest.raises(StoreError, match="regular file"):
        write(tmp_path / "AGENTS.md", b"new")


def test_a_missing_project_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be used"):
        write(tmp_path / "gone" / "AGENTS.md", b"new")


def test_a_refusal_of_the_system_is_access_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    (tmp_path / "AGENTS.md").touch()
    with pytest.raises(AccessDeniedError, match=r"AGENTS\.md: check its owner"):
        NotesFile(tmp_path / "AGENTS.md", private=False).read()


def test_a_failed_write_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StoreError, match="No space left"):
        write(path, b"new")
    assert (path.read_bytes(), [one.name for one in tmp_path.iterdir()]) == (b"old", ["AGENTS.md"])


def test_what_an_editor_saved_meanwhile_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    editor = iter([b"edited"])

    def change(old: bytes) -> tuple[bytes, None]:
        path.write_bytes(next(editor, old))
        return old + b" and added", None

    NotesFile(path, private=False).edit(change)
    assert path.read_bytes() == b"edited and added"


def test_a_lock_that_is_kept_times_out_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_file, "TIMEOUT", 0.01)
    path = tmp_path / "AGENTS.md"

    def while_locked(_: bytes) -> tuple[None, None]:
        with pytest.raises(LockTimeoutError, match="nothing was written"):
            write(path, b"new")
        return None, None

    NotesFile(path, private=False).edit(while_locked)
    assert not path.exists()


def test_a_link_and_its_target_have_one_lock(tmp_path: Path, user_folder: Path) -> None:
    (tmp_path / "link.md").symlink_to(tmp_path / "AGENTS.md")
    write(tmp_path / "AGENTS.md", b"one")
    write(tmp_path / "link.md", b"two")
    locks = list(user_folder.rglob("*.lock"))
    assert len(locks) == 1
    FileLock(locks[0], timeout=0).acquire().lock.release()


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


@needs_posix
def test_a_killed_writer_leaves_the_old_file_and_the_next_one_tidies_up(tmp_path: Path) -> None:
    path = tmp_path / "AGENTS.md"
    path.write_bytes(b"old")
    child = subprocess.run([sys.executable, "-c", KILLED_BEFORE_REPLACING, str(path)], check=False)
    assert (child.returncode, path.read_bytes()) == (-signal.SIGKILL, b"old")
    write(path, b"next")
    assert [(one.name, one.read_bytes()) for one in tmp_path.iterdir()] == [("AGENTS.md", b"next")]
