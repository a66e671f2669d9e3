import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.damage import NAME, Damaged, batch, entry, lines

from keepstone.errors import AccessDeniedError, CorruptLogError, PathEscapeError, StoreError
from keepstone.filesystem import atomic
from keepstone.filesystem.atomic import sync_file
from keepstone.filesystem.confine import Folder
from keepstone.log import log_file as log_module
from keepstone.log.line import dump
from keepstone.log.log_file import Log
from keepstone.model import Record

A, B, C = (entry(letter) for letter in "abc")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Damaged]:
    session = Damaged(tmp_path / "sessions")
    yield session
    session.close()


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the log asks of the system, by name."""
    made: list[str] = []

    def note(where: object, name: str) -> None:
        real = getattr(where, name)

        def noted(*arguments: object, **named: object) -> object:
            made.append(name)
            return real(*arguments, **named)

        monkeypatch.setattr(where, name, noted)

    for name in ("write_all", "sync_file", "truncate"):
        note(log_module, name)
    for name in ("write_all", "sync_file"):
        note(atomic, name)
    for name in ("sync", "replace"):
        note(Folder, name)
    return made


def write_half(fd: int, data: bytes, *_: object) -> None:
    """Write as a disk does that runs full."""
    os.write(fd, data[: len(data) // 2])
    raise StoreError("a file: no space left on device")


def test_an_append_is_one_write_and_one_sync(session: Damaged, calls: list[str]) -> None:
    session.append(A)
    calls.clear()
    session.append(B, C)
    assert calls == ["write_all", "sync_file"]
    assert session.path.read_bytes() == lines(A, B, C)


def test_a_new_log_syncs_its_folder_before_it_writes(session: Damaged, calls: list[str]) -> None:
    session.append(A)
    assert calls == ["sync", "write_all", "sync_file"]


def test_an_empty_log_that_a_killed_process_made_syncs_its_folder(session: Damaged, calls: list[str]) -> None:
    session.path.touch()
    session.append(A)
    assert calls == ["sync", "write_all", "sync_file"]


def test_syncing_can_be_left_to_the_system(session: Damaged, calls: list[str]) -> None:
    session.log = Log(session.folder, NAME, session.log.lock, durable=False)
    session.append(A)
    assert "sync_file" not in calls


def test_an_append_tells_where_its_lines_begin_and_how_the_log_is(session: Damaged) -> None:
    session.append(A)
    with session.log.locked():
        begin, stat = session.log.append([dump(B)])
    assert (begin, stat) == (len(dump(A)), session.log.stat())


def test_a_write_cut_short_leaves_the_log_as_long_as_before(
    session: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.append(A)
    with monkeypatch.context() as patched:
        patched.setattr(log_module, "write_all", write_half)
        with pytest.raises(StoreError, match="s1.ndjson: .*no space left on device; nothing was stored"):
            session.append(B)
    assert session.path.read_bytes() == lines(A)
    session.append(C)
    assert session.ids() == ["a", "c"]


@pytest.mark.parametrize("error", [StoreError, AccessDeniedError])
def test_a_failed_sync_takes_the_lines_back(
    session: Damaged, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fail_once(_: int) -> None:
        monkeypatch.setattr(log_module, "sync_file", sync_file)
        raise error("a file: input/output error")

    session.append(A)
    monkeypatch.setattr(log_module, "sync_file", fail_once)
    with pytest.raises(StoreError, match="nothing was stored"):
        session.append(B)
    assert session.path.read_bytes() == lines(A)


@pytest.mark.parametrize(
    "unfinished", [b"", b'{"id":"c","batch":[3,4],"te', dump(batch(A, B, C, length=4)[2])[:-1]]
)
def test_the_next_writer_moves_a_torn_batch_to_an_original(session: Damaged, unfinished: bytes) -> None:
    session.write(A, *batch(B, C, length=4))
    session.write_raw(unfinished)
    assert session.append(entry("d")) == len(lines(A))
    assert session.path.read_bytes() == lines(A, entry("d"))
    [original] = session.archive_path.parent.glob("*.original")
    assert original.read_bytes() == lines(*batch(B, C, length=4)) + unfinished


def append_batch(session: Damaged, *records: Record) -> None:
    with session.log.locked():
        session.log.append_batch([dump(record) for record in batch(*records)])


def test_lines_of_an_acknowledged_batch_outlive_the_removal_of_its_last(session: Damaged) -> None:
    append_batch(session, A, B, C)
    session.cut(len(lines(batch(A, B, C)[2])))
    session.reopen()
    assert session.ids() == ["a", "b"]
    session.append(entry("d"))
    assert session.path.read_bytes() == lines(*batch(A, B, length=3), entry("d"))


def test_a_torn_batch_behind_an_edited_one_is_hidden(session: Damaged) -> None:
    append_batch(session, A, B)
    session.cut(len(lines(batch(A, B)[1])))
    append_batch(session, B, C)
    session.write(*batch(entry("d"), length=2))
    assert session.ids() == ["a", "b", "c"]


def test_a_batch_that_lacks_only_its_last_newline_is_kept(session: Damaged) -> None:
    session.write(*batch(A, B, C))
    session.cut(1)
    assert session.ids() == ["a", "b", "c"]
    session.append(entry("d"))
    assert session.path.read_bytes() == lines(*batch(A, B, C), entry("d"))


def test_a_torn_batch_of_this_process_is_truncated_too(session: Damaged) -> None:
    session.append(A)
    session.write(*batch(B, C, length=3))
    session.append(entry("d"))
    assert session.path.read_bytes() == lines(A, entry("d"))


@pytest.mark.parametrize("items", [batch(A, B, C), batch(A, B, C)[1:], [*batch(A, B, length=3), b"damaged"]])
def test_lines_other_than_a_torn_batch_stay(session: Damaged, items: list[bytes]) -> None:
    session.write(*items)
    session.append(entry("d"))
    assert session.path.read_bytes() == lines(*items, entry("d"))


@pytest.mark.parametrize("cut", [1, 5])
def test_an_unfinished_line_is_ended_before_others_follow(session: Damaged, cut: int) -> None:
    session.write(A, B)
    session.cut(cut)
    assert session.append(C) == len(lines(A, B)) - cut + 1
    assert session.ids() == (["a", "b", "c"] if cut == 1 else ["a", "c"])


def test_a_stranger_behind_a_torn_batch_is_not_truncated_away(session: Damaged) -> None:
    session.write(*batch(A, length=2), B)
    session.cut(1)
    session.append(C)
    assert session.ids() == ["a", "b", "c"]


def test_a_log_that_was_replaced_is_noticed(session: Damaged) -> None:
    session.append(A)
    other = session.path.with_name("other")
    other.write_bytes(lines(B))
    other.replace(session.path)
    session.append(C)
    assert session.ids() == ["b", "c"]


def test_a_log_that_was_removed_is_made_again(session: Damaged) -> None:
    session.append(A)
    session.path.unlink()
    session.append(B)
    assert session.ids() == ["b"]


@pytest.mark.parametrize("kind", ["link", "folder", "fifo"])
def test_anything_but_a_regular_file_is_refused(session: Damaged, kind: str) -> None:
    outside = session.path.parent.parent / "outside"
    outside.write_bytes(lines(A))
    makers: dict[str, Callable[[Path], None]] = {
        "link": partial(os.symlink, outside),
        "folder": os.mkdir,
        "fifo": os.mkfifo,
    }
    makers[kind](session.path)
    for act in (session.fold, lambda: session.append(B), session.log.stat):
        with pytest.raises(CorruptLogError, match="is a folder, link or device: move it away"):
            act()
    assert outside.read_bytes() == lines(A)


def test_a_link_that_appears_after_the_look_is_refused(
    session: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = session.path.parent.parent / "outside"
    outside.write_bytes(lines(A))
    session.path.symlink_to(outside)
    monkeypatch.setattr(Log, "stat", lambda _: None)
    with pytest.raises(PathEscapeError):
        session.append(B)
    assert outside.read_bytes() == lines(A)


_KILLED = """
import os, signal, sys
from pathlib import Path
from tests.damage import Damaged, lines, entry
session = Damaged(Path(sys.argv[1]))
def endless():
    yield lines(entry("new", "secret" * 400_000))
    os.kill(os.getpid(), signal.SIGKILL)
with session.log.locked():
    getattr(session, sys.argv[2]).replace(endless())
"""


@pytest.mark.parametrize("which", ["log", "archive"])
def test_a_rewrite_that_was_killed_leaves_the_old_log_and_nothing_else(session: Damaged, which: str) -> None:
    session.append(A)
    session.archive_path.parent.mkdir()
    command = [sys.executable, "-c", _KILLED, str(session.path.parent), which]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(command, env=environment, timeout=60, check=False, cwd=Path(__file__).parents[2])
    assert result.returncode == -9
    assert len(list(session.path.parent.rglob("*.tmp"))) == 1
    session.append(B)
    assert not list(session.path.parent.rglob("*.tmp"))
    assert session.ids() == ["a", "b"]


def test_a_rewrite_that_fails_leaves_the_log_as_it_was(
    session: Damaged, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.append(A)
    monkeypatch.setattr(atomic, "write_all", write_half)
    with pytest.raises(StoreError, match="the log is unchanged"), session.log.locked():
        session.log.replace([dump(B)])
    assert session.path.read_bytes() == lines(A)
    assert not list(session.path.parent.glob("*.tmp"))


def test_a_replaced_log_holds_the_new_lines_and_is_synced(session: Damaged, calls: list[str]) -> None:
    session.append(A)
    calls.clear()
    with session.log.locked():
        stat = session.log.replace([dump(B), dump(C)])
    assert calls == ["write_all", "sync_file", "replace"]
    assert stat == session.log.stat()
    assert session.ids() == ["b", "c"]


def test_a_truncated_log_is_empty_and_stays(session: Damaged) -> None:
    session.clear()
    assert session.log.stat() is None
    session.append(A)
    session.clear()
    assert session.path.read_bytes() == b""
    session.append(B)
    assert session.ids() == ["b"]


def test_a_removed_log_leaves_no_file_behind(session: Damaged) -> None:
    session.append(A)
    with session.log.locked():
        session.log.remove()
    assert not list(session.path.parent.iterdir())
    session.append(B)
    assert session.ids() == ["b"]


def test_a_log_is_created_empty_and_only_once(session: Damaged) -> None:
    with session.log.locked():
        assert session.log.create().size == 0
        session.log.append([dump(A)])
        assert session.log.create().size == len(dump(A))


def test_closing_waits_for_the_writer_and_leaves_no_descriptor(session: Damaged) -> None:
    before = len(os.listdir("/dev/fd"))
    with session.log.locked():
        session.log.close()
        session.log.append([dump(A)])
        assert not session.log.close_if_idle()
    assert len(os.listdir("/dev/fd")) == before
    session.append(B)
    assert session.ids() == ["a", "b"]


def test_reading_a_log_needs_no_lock(session: Damaged) -> None:
    session.append(A, B)
    with session.log.locked():
        assert Damaged(session.path.parent).ids() == ["a", "b"]


def test_a_missing_log_has_no_state(session: Damaged) -> None:
    assert session.log.stat() is None
    with session.log.reading() as fd:
        assert fd is None
