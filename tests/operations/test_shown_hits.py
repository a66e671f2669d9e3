"""Hits as people see them."""

from __future__ import annotations

from keepstone.operations.shown_hits import sureness_of


def test_relevance_is_a_word() -> None:
    assert [sureness_of(value) for value in (0.0, 0.29, 0.3, 0.59, 0.6, 1.0)] == [
        *["weak"] * 2,
        *["fair"] * 2,
        *["strong"] * 2,
    ]
