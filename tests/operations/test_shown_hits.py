"""Hits as people see them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import keepstone
from keepstone.operations.shown_hits import by_relevance, sureness_of


def test_relevance_is_a_word() -> None:
    assert [sureness_of(value) for value in (0.0, 0.29, 0.3, 0.59, 0.6, 1.0)] == [
        *["weak"] * 2,
        *["fair"] * 2,
        *["strong"] * 2,
    ]


def test_hits_with_one_number_to_the_eye_keep_their_order(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none") as home:
        agent = home.agent("a")
        for name in "abc":
            agent.add(f"passkeys {name}", id=name)
        first, second, third = agent.recall("passkeys")
    hits = [replace(first, relevance=0.968), replace(second, relevance=0.971), replace(third, relevance=0.98)]
    assert [hit.entry.id for hit in by_relevance(hits)] == [one.entry.id for one in (third, first, second)]
