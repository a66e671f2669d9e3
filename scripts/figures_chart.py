#!/usr/bin/env python3
"""Draw docs/figures.svg from the table in docs/figures.md: ratios of keepstone to its rivals.

python scripts/figures_chart.py            # draws it
python scripts/figures_chart.py --check    # returns status 1 if it is out of date
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.peers.svg import OURS, THEIRS, document, rule, text  # noqa: E402  After the path.

PAGE = ROOT / "docs" / "figures.md"
CHART = ROOT / "docs" / "figures.svg"
WIDTH, MIDDLE, DECADE, ROW = 760, 440, 90, 18
"""Sizes in units of the drawing. ``DECADE`` is the width of a factor of ten."""
MARKS = (0.1, 1, 10, 100)
_NUMBER = re.compile(r"[\d,]*\.?\d+")


class Bar(NamedTuple):
    """One rival's bar for one figure."""

    figure: str
    rival: str
    ratio: float
    """How many times better keepstone is than the rival; below 1, keepstone is worse."""


def bars(page: str) -> Iterator[Bar]:
    """Yield the rivals of each row of the table.

    For ranges the worst case for keepstone counts: keepstone's worst value and the rival's best.
    """
    for figure, ours, beside, better, _, _ in rows(page):
        worst, best = (max, min) if better == "less" else (min, max)
        own = worst(numbers(ours))
        for rival in beside.split("; "):
            name = re.split(r" (?=[\d.])", rival)[0]
            other = best(numbers(rival.removeprefix(name)))
            yield Bar(figure.replace("`", ""), name, other / own if better == "less" else own / other)


def rows(page: str) -> list[list[str]]:
    """Return the cells of the table's rows."""
    table = re.search(r"^\| figure \|.*\n\|[-|:]+\|\n((?:\|.*\n)+)", page, re.MULTILINE)
    if table is None:
        raise ValueError(f"{PAGE.name} has no table of figures")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[1].splitlines()]


def numbers(cell: str) -> list[float]:
    """Return the numbers in a cell: one number, or the two ends of a range."""
    return [float(number.replace(",", "")) for number in _NUMBER.findall(cell)]


def drawing(page: str) -> str:
    """Return the chart as SVG."""
    parts, down, last = [], 30.0, ""
    for bar in bars(page):
        if bar.figure != last:
            down += 8
        down += ROW
        if bar.figure != last:
            parts.append(text(0, down, bar.figure))
        last = bar.figure
        length = DECADE * math.log10(bar.ratio)
        colour = OURS if bar.ratio >= 1 else THEIRS
        parts.append(
            f'<rect x="{MIDDLE + min(length, 0):.1f}" y="{down - 11:.1f}" '
            f'width="{max(abs(length), 1):.1f}" height="13" fill="{colour}"/>'
        )
        label = f"{bar.rival} {bar.ratio:.3g}"
        parts.append(text(MIDDLE + max(length, 0) + 6, down, label))
    scale = [
        part
        for mark in MARKS
        for across in [MIDDLE + DECADE * math.log10(mark)]
        for part in (rule(across, 24, across, down + 8), text(across, 16, f"{mark:g} times"))
    ]
    title = "How many times better keepstone is than its rivals"
    return document(WIDTH, round(down + 16), title, [*scale, *parts])


def main(arguments: list[str]) -> int:
    """Draw the chart, or check it; return the exit status."""
    drawn = drawing(PAGE.read_text(encoding="utf-8"))
    if arguments == ["--check"]:
        old = not CHART.exists() or CHART.read_text(encoding="utf-8") != drawn
        if old:
            print("docs/figures.svg is out of date: run python scripts/figures_chart.py")
        return int(old)
    CHART.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
