"""The parts of the comparison with peers that only compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest


@pytest.fixture(autouse=True)
def checkout_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripts of the checkout be imported as they import one another."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2]))


def _measured(milliseconds: float, recall: float = 1.0) -> dict[str, Any]:
    kinds = ("session", "ten sessions", "everything", "type + time")
    asked = {kind: {"p50_ms": milliseconds, "recall": recall} for kind in kinds}
    return {"questions": asked, "fill_s": milliseconds, "memory": {"rss_mb": 10 * milliseconds}}


def test_the_true_answer_of_a_question_lies_inside_its_scope(tmp_path: Path) -> None:
    from bench.peers.data import load_questions, load_rows
    from bench.peers.making import dataset

    folder = dataset(tmp_path, 1500)
    rows, (questions, _) = load_rows(folder), load_questions(folder)
    for question in (question for question in questions if question.scope.sessions):
        assert {rows.sessions[number] for number in question.truth} <= {*(question.scope.sessions or ())}


def test_the_nearest_rows_are_those_of_largest_cosine() -> None:
    import numpy as np
    from bench.peers.making import nearest

    vectors = np.eye(3, dtype=np.float32)
    vector = np.array([0.1, 0.9, 0.5], dtype=np.float32)
    assert nearest(vectors, vector, np.array([0, 2])) == [2, 0]


def test_parts_of_rows_keep_the_numbers_of_their_rows(tmp_path: Path) -> None:
    from bench.peers.data import load_rows
    from bench.peers.making import dataset

    rows = load_rows(dataset(tmp_path, 1200))
    parts = [inside for _, inside in rows.by_session()]
    assert [number for part in parts for number in part.numbers] == [*range(1200)]


def test_a_ratio_that_reaches_its_bound_passes() -> None:
    from bench.peers.judge import ratios

    verdicts = ratios({"keepstone": _measured(1), "chroma": _measured(50)})
    assert all(verdict.passed for verdict in verdicts)


def test_a_quick_answer_that_misses_rows_does_not_pass() -> None:
    from bench.peers.judge import ratios

    verdicts = ratios({"keepstone": _measured(1, recall=0.99), "zvec": _measured(50)})
    assert not any(verdict.passed for verdict in verdicts)


def test_a_peer_that_was_not_measured_gives_no_ratio() -> None:
    from bench.peers.judge import ratios

    assert ratios({"keepstone": _measured(1), "chroma": {"failed": "no such package"}}) == []


def test_a_drawing_has_a_bar_for_each_peer_and_question() -> None:
    from bench.peers.drawing import chart

    panels = {"session": {"a": (0.1, ""), "b": (10.0, "")}, "words": {"b": (1.0, "")}}
    drawn = ET.fromstring(chart("<10>", panels))  # noqa: S314  It is our own.
    assert len([part for part in drawn if part.tag.endswith("rect")]) == 3
