"""Hits as people see them."""

from __future__ import annotations

from pathlib import Path

import keepstone
from keepstone.operations.shown_hits import lengths_of, sureness_of


def test_bars_fall_from_the_first_hit_to_the_last(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        session = home.agent("a").session("s")
        session.add_many({"type": "note", "text": f"walnut {'cake ' * n}"} for n in range(6))
        lengths = lengths_of(home.agent("a").recall("walnut cake"))
    assert lengths[0] == 1.0
    assert lengths == sorted(lengths, reverse=True)
    assert lengths_of([]) == []


def test_relevance_is_a_word() -> None:
    assert [sureness_of(value) for value in (0.0, 0.29, 0.3, 0.59, 0.6, 1.0)] == [
        *["weak"] * 2,
        *["fair"] * 2,
        *["strong"] * 2,
    ]
