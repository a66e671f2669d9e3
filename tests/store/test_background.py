"""Work that nobody waits for."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from concurrent.futures import CancelledError
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.recall.concepts import Concepts

import keepstone
from keepstone.errors import StoreError
from keepstone.store.background import Background


def test_work_goes_on_until_there_is_none_left() -> None:
    left, done = {"a": 3, "b": 1}, threading.Event()

    def work(agent: str) -> bool:
        left[agent] -= 1
        if not any(left.values()):
            done.set()
        return left[agent] > 0

    background = Background(work)
    background.wake("a")
    background.wake("b")
    assert done.wait(30)
    background.close()
    assert left == {"a": 0, "b": 0}


def test_work_that_fails_is_put_off_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()

    def work(agent: str) -> bool:
        if agent == "bad":
            raise StoreError("the disk is full")
        done.set()
        return False

    background = Background(work)
    background.wake("bad")
    background.wake("good")
    assert done.wait(30)
    background.close()
    assert "StoreError" in caplog.text
    assert "the disk is full" not in caplog.text  # An error may quote what it was about.


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), CancelledError(), SystemExit(1), GeneratorExit()]
)
def test_work_that_is_cancelled_or_exits_leaves_the_thread_working(error: BaseException) -> None:
    done = threading.Event()

    def work(agent: str) -> bool:
        if agent == "bad":
            raise error
        done.set()
        return False

    background = Background(work)
    background.wake("bad")
    background.wake("good")
    assert done.wait(30)
    background.close()


class Cancelled(Concepts):
    """One whose first call for several texts is cancelled; ``done`` is set once it had all texts."""

    def __init__(self, error: BaseException, texts: int) -> None:
        super().__init__()
        self.error: BaseException | None = error
        self.texts = texts
        self.done = threading.Event()

    def embed_documents(self, texts: list[str]) -> NDArray[np.float32]:
        if len(texts) > 1 and self.error is not None:
            error, self.error = self.error, None
            raise error
        made = super().embed_documents(texts)
        if len({text for text in self.asked if text.startswith("text")}) == self.texts:
            self.done.set()
        return made


@pytest.mark.parametrize("error", [asyncio.CancelledError(), CancelledError()])
def test_texts_are_embedded_in_the_background_after_a_cancelled_call(
    tmp_path: Path, error: BaseException
) -> None:
    embedder = Cancelled(error, 40)
    with keepstone.open(tmp_path, embedder=embedder) as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "note", "text": f"text {n}"} for n in range(40))
        agent.recall("anything")
        assert embedder.done.wait(60)


def test_unexpected_errors_leave_the_thread_working(caplog: pytest.LogCaptureFixture) -> None:
    done, again = threading.Event(), threading.Event()

    def fail(text: str) -> None:
        raise ZeroDivisionError(text)

    def work(agent: str) -> bool:
        if agent == "bad":
            fail("entry " + "text")
        (done if not done.is_set() else again).set()
        return False

    background = Background(work)
    for reached in (done, again):
        background.wake("bad")
        background.wake("good")
        assert reached.wait(30)
    background.close()
    assert caplog.text.count("agent bad failed: ZeroDivisionError") == 2
    assert caplog.text.count("in fail") == 1  # The traceback is logged once.
    assert "entry text" not in caplog.text


def test_agents_take_turns_one_piece_of_work_each() -> None:
    pieces: list[str] = []
    all_told, done = threading.Event(), threading.Event()

    def work(agent: str) -> bool:
        all_told.wait(30)
        pieces.append(agent)
        if len(pieces) == 6:
            done.set()
        return pieces.count(agent) < (1 if agent == "short" else 4)

    background = Background(work)
    for agent in ("long", "short", "other"):
        background.wake(agent)
    all_told.set()
    assert done.wait(30)
    background.close()
    assert pieces[:6] == ["long", "short", "other", "long", "other", "long"]


def test_all_agents_take_turns() -> None:
    pieces: list[str] = []
    all_told, done = threading.Event(), threading.Event()

    def work(agent: str) -> bool:
        all_told.wait(30)
        pieces.append(agent)
        if len(pieces) == 15:
            done.set()
        return pieces.count(agent) < 3

    background = Background(work)
    for agent in "abcde":
        background.wake(agent)
    all_told.set()
    assert done.wait(30)
    background.close()
    assert "".join(pieces) == "abcdeabcdeabcde"


def test_closing_stops_endless_work_and_waking_restarts_it() -> None:
    asked: list[str] = []
    begun = threading.Event()

    def work(agent: str) -> bool:
        asked.append(agent)
        begun.set()
        return True

    background = Background(work)
    background.wake("a")
    assert begun.wait(30)
    background.close()
    count = len(asked)
    assert len(asked) == count
    begun.clear()
    background.wake("b")
    assert begun.wait(30)
    background.close()
    assert asked[-1] == "b"


def test_work_that_outlasts_closing_is_not_continued(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    worked: list[threading.Thread] = []

    def work(_: str) -> bool:
        worked.append(threading.current_thread())
        begun.set()
        go_on.wait(30)
        return len(worked) < 3

    monkeypatch.setattr("keepstone.store.background._ENDING_SECONDS", 0)
    background = Background(work)
    background.wake("a")
    assert begun.wait(30)
    background.close()
    go_on.set()
    worked[0].join(30)
    assert len(worked) == 1


def test_thread_that_cannot_start_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    worked = threading.Event()

    def work(_: str) -> bool:
        worked.set()
        return False

    background = Background(work)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        background.wake("a")
        background.close()
    assert "can't start new thread" in caplog.text
    background.wake("a")
    assert worked.wait(30)
    background.close()


def test_what_a_recall_leaves_pending_gets_its_vectors_in_the_background(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder=Concepts(), durability="os") as home:
        agent = home.agent("a")
        agent.session("s").add_many({"type": "event", "content": f"brother {n}"} for n in range(2000))
        pending = agent.recall("sibling").pending
        while pending:
            left = agent.recall("sibling").pending
            assert left <= pending
            pending = left


def test_a_child_after_a_fork_has_a_background_of_its_own() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def work(agent: str) -> bool:
        if agent == "parent":
            begun.set()
            go_on.wait(30)
        else:
            os._exit(7)
        return False

    background = Background(work)
    background.wake("parent")
    assert begun.wait(30)
    child = os.fork()
    if not child:
        background.wake("child")
        threading.Event().wait(30)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    background.close()
    assert os.waitstatus_to_exitcode(status) == 7


BUSY_AT_THE_END = """
import sys
import numpy as np
import keepstone

rng = np.random.default_rng(1)
home = keepstone.open(sys.argv[1], embedder="none", durability="os")
rows = rng.standard_normal((6000, 64)).astype("f4")
session = home.agent("a").session("s")
session.add_many({"type": "event", "text": "x", "embedding": row} for row in rows)
service = keepstone.MemoryService(home, agent="a", hnsw_from=100)
for _ in range(20):
    service.query_similar_memories(rows[0], "s")
print("done")
"""


def test_a_program_that_ends_while_a_graph_is_made_ends_well(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", BUSY_AT_THE_END, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
