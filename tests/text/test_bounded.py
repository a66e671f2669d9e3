"""Texts of many pieces, cut where they get too long."""

from __future__ import annotations

from itertools import repeat

import pytest

from keepstone.text import bounded
from keepstone.text.bounded import joined


@pytest.fixture(autouse=True)
def ten_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded, "LONGEST", 10)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([], ""),
        (["one"], "one"),
        (["one", "", "two"], "one\n\ntwo"),
        (["0123456789"], "0123456789"),
        (["0123", "56789"], "0123\n56789"),
    ],
)
def test_a_text_that_fits_has_all_its_lines(lines: list[str], expected: str) -> None:
    assert joined(lines) == expected


@pytest.mark.parametrize("lines", [["0123456789x"], ["0123", "56789x"], ["012345678", "x"], ["x"] * 9])
def test_a_longer_text_is_cut(lines: list[str]) -> None:
    found = joined(lines)
    assert len(found) <= 10
    assert "\n".join(lines).startswith(found)


def test_lines_behind_the_cut_are_not_made() -> None:
    assert joined(repeat("ab")) == "ab\nab\nab\na"
