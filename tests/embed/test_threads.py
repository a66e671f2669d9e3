"""Threads of NumPy's matrix multiplication while the model embeds."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from keepstone.embed.minilm import MiniLM
from keepstone.embed.threads import Blas, OneThread

BLAS = Blas()
MANY = ["word " * 200] * 30

IN_A_CHILD = """
import os, sys, threading
import numpy
from keepstone.embed.threads import Blas, OneThread
blas, one, inside, done = Blas(), OneThread(), threading.Event(), threading.Event()
blas.threads = 3

def hold():
    with one:
        inside.set()
        done.wait(30)

thread = threading.Thread(target=hold)
thread.start()
inside.wait(30)
if not (child := os.fork()):
    os._exit(blas.threads)
done.set()
thread.join()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * 10 + blas.threads)
"""


@pytest.fixture(autouse=True)
def _three() -> Iterator[None]:
    before, BLAS.threads = BLAS.threads, 3
    if BLAS.threads != 3:
        pytest.skip("NumPy without an OpenBLAS that all threads share")
    yield
    BLAS.threads = before


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> tuple[MiniLM, list[int]]:
    """A model that notes how many threads its multiplications may use."""
    noted: list[int] = []

    def bert(ids: Any, _mask: Any) -> Any:
        noted.append(BLAS.threads)
        return np.ones((*ids.shape, 384), np.float32)

    tokenizer = SimpleNamespace(encode=lambda text: SimpleNamespace(ids=[1] * len(text.split())))
    monkeypatch.setattr(MiniLM, "_load", lambda _: (tokenizer, bert))
    return MiniLM(), noted


def load_of(value: float) -> Callable[[], tuple[float, float, float]]:
    return lambda: (value, value, value)


def test_a_question_uses_one_thread_even_on_an_idle_machine(
    embedder: tuple[MiniLM, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", load_of(0), raising=False)
    embedder[0].embed_query("which database did we choose?")
    assert embedder[1] == [1]
    assert BLAS.threads == 3


@pytest.mark.parametrize(("load", "expected"), [(0.0, 3), (10_000.0, 1)])
def test_bulk_uses_more_threads_on_an_idle_machine_only(
    embedder: tuple[MiniLM, list[int]], monkeypatch: pytest.MonkeyPatch, load: float, expected: int
) -> None:
    monkeypatch.setattr(os, "getloadavg", load_of(load), raising=False)
    embedder[0].embed_documents(MANY)
    assert set(embedder[1]) == {expected}
    assert BLAS.threads == 3


def test_a_system_without_load_averages_uses_one_thread(
    embedder: tuple[MiniLM, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "getloadavg", raising=False)
    embedder[0].embed_documents(MANY)
    assert set(embedder[1]) == {1}


def test_overlapping_calls_restore_the_number_after_the_last() -> None:
    one, first, second = OneThread(), threading.Event(), threading.Event()

    def overlap() -> None:
        with one:
            first.set()
            second.wait(30)

    thread = threading.Thread(target=overlap)
    thread.start()
    first.wait(30)
    with one:
        second.set()
        thread.join(30)
        assert BLAS.threads == 1
    assert BLAS.threads == 3


def test_a_failure_inside_restores_the_number() -> None:
    with pytest.raises(ValueError, match="inside"), OneThread():
        raise ValueError("inside")
    assert BLAS.threads == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_forked_child_and_its_parent_have_the_number_from_before() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", IN_A_CHILD], check=False, timeout=60)
    assert done.returncode == 33
