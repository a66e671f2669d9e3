"""A short soak of the server; ``bench/soak.py --minutes 30`` is the long one."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def checkout_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripts of the checkout be imported as they import one another."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))
    monkeypatch.setenv("KEEPSTONE_EMBEDDER", "none")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only Linux tells what a process has")
def test_mixed_requests_for_a_while_are_all_answered_and_leave_no_file_open() -> None:
    from bench.soak import soak

    seen = soak(10)
    assert seen.errors == []
    assert sum(seen.answers.values()) > 100
    assert seen.growth(seen.files) <= 16


def test_memory_that_keeps_growing_is_growth() -> None:
    from bench.soak import Seen

    assert Seen(memory=[100.0] * 600 + [120.0] * 1200, files=[50] * 1800).is_flat()
    assert not Seen(memory=[100.0 + second / 10 for second in range(1800)], files=[50] * 1800).is_flat()
    assert not Seen(memory=[100.0] * 1800, files=list(range(1800))).is_flat()
