"""Turns at the write lock of an index: those who wait go before long work goes on."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from keepstone.filesystem.confine import Folder
from keepstone.filesystem.lock import Lock
from keepstone.index import Index, reading, turn
from keepstone.index.turn import Turn
from keepstone.log.log_file import Log


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    with Folder(tmp_path) as folder:
        log = Log(folder, "s.ndjson", Lock(folder, "s.lock"))
        with log.locked():
            log.append([b'{"id":"e%d","type":"note","text":"walnut"}\n' % number for number in range(9)])
        yield log
        log.close()


def test_connection_that_waits_writes_before_the_next_step_of_an_intake(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 60.0)
    monkeypatch.setattr(reading, "STEP_LINES", 3)
    order: list[str] = []
    begun, real = threading.Event(), reading._take_in  # noqa: SLF001

    def take_in(*arguments: Any) -> int | None:
        order.append("step")
        begun.set()
        while len(order) == 1 and not waiting.is_set():
            waiting.wait(0.01)
        return real(*arguments)

    waiting = threading.Event()
    monkeypatch.setattr(reading, "_take_in", take_in)
    intake, other = Index(tmp_path / "index.db"), Index(tmp_path / "index.db")
    wait = other._database.turn.wait  # noqa: SLF001

    def note_and_wait(attempt: int) -> bool:
        goes_on = wait(attempt)
        waiting.set()
        return goes_on

    other._database.connection.set_busy_handler(note_and_wait)  # noqa: SLF001

    def write() -> None:
        begun.wait(60)
        with other._database as database, database.writing():  # noqa: SLF001
            order.append("write")

    writer = threading.Thread(target=write)
    writer.start()
    while intake.step("s", log) is not None:
        intake.let_others_write()
    writer.join(60)
    assert order[:3] == ["step", "write", "step"]
    for index in (intake, other):
        index.close()


def test_turn_is_over_once_the_transaction_is(tmp_path: Path) -> None:
    first, second = Turn(tmp_path / "index.db"), Turn(tmp_path / "index.db")
    assert not second.is_wanted()
    first.wait(0)
    assert (first.is_waiting, second.is_wanted()) == (True, True)
    first.end()
    assert (first.is_waiting, second.is_wanted()) == (False, False)


def test_no_one_is_waited_for_where_there_is_no_folder(tmp_path: Path) -> None:
    for gone in (Turn(None), Turn(tmp_path / "gone" / "index.db")):
        gone.wait(0)
        assert not gone.is_wanted()


def test_a_wait_gives_up_after_the_busy_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = Turn(tmp_path / "index.db")
    assert waiting.wait(0)
    monkeypatch.setattr(turn, "BUSY_TIMEOUT", 0.0)
    assert not waiting.wait(1)
    waiting.end()
