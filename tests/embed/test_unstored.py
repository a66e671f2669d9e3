"""Vectors that were made and could not be stored yet."""

from __future__ import annotations

import numpy as np
import pytest

from keepstone.embed import unstored
from keepstone.embed.unstored import Unstored

ONE, TWO = np.array([1, 0], np.float32), np.array([0, 1], np.float32)


def test_vectors_are_kept_by_text_until_dropped() -> None:
    kept = Unstored()
    kept.put([("a", ONE), ("\ud800", TWO)])
    assert list(kept.get(["a", "b", "\ud800"])) == ["a", "\ud800"]
    kept.drop(["a", "b"])
    assert list(kept.get(["a", "\ud800"])) == ["\ud800"]


def test_oldest_vectors_go_beyond_the_byte_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unstored, "_LARGEST", 2 * ONE.nbytes)
    kept = Unstored()
    kept.put([("a", ONE), ("b", TWO), ("c", ONE)])
    assert list(kept.get(["a", "b", "c"])) == ["b", "c"]
