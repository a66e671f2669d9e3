"""The hook for a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import keepstone
from keepstone import Hits


def recalled(root: Path, reranker: object, *, limit: int = 10) -> Hits:
    with keepstone.open(root, reranker=reranker) as home:  # type: ignore[arg-type]
        session = home.agent("a").session("s")
        for n in range(30):
            session.add("note", {"content": f"walnut number {n:02}"}, id=f"{n:02}")
        return home.agent("a").recall("walnut", limit=limit)


def test_a_reranker_decides_the_order_and_the_scores(tmp_path: Path) -> None:
    def by_number(query: str, texts: list[str]) -> Sequence[float]:
        assert query == "walnut"
        return [float(text[-2:]) for text in texts]

    hits = recalled(tmp_path, by_number, limit=3)
    assert [(hit.entry.id, hit.score) for hit in hits] == [("29", 29.0), ("28", 28.0), ("27", 27.0)]
    assert hits[0].why.parts == {"reranker": 29.0}


@pytest.mark.parametrize("scores", [[1.0], [float("nan")] * 30, [float("inf")] * 30])
def test_a_reranker_that_gives_no_score_for_each_text_is_an_error(
    tmp_path: Path, scores: list[float]
) -> None:
    with pytest.raises(ValueError, match="reranker"):
        recalled(tmp_path, lambda _, __: scores)


def test_what_a_reranker_raises_reaches_the_caller(tmp_path: Path) -> None:
    def broken(_: str, __: list[str]) -> list[float]:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        recalled(tmp_path, broken)


def test_a_reranker_is_not_asked_about_nothing(tmp_path: Path) -> None:
    def never(_: str, __: list[str]) -> list[float]:
        raise AssertionError

    with keepstone.open(tmp_path, reranker=never) as home:
        assert home.agent("a").recall("walnut") == []


def test_what_cannot_be_called_is_not_a_reranker(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="reranker"):
        keepstone.open(tmp_path, reranker=5)  # type: ignore[arg-type]
