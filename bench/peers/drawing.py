"""Charts of the figures as SVG: bars for each scale, and lines across scales."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from bench.peers.data import KINDS
from bench.peers.svg import OURS, THEIRS, document, name_of, rule, text

Bars = dict[str, tuple[float, str]]
"""The milliseconds of each peer, and a note to show beside its bar."""
Lines = dict[str, list[tuple[int, float]]]
"""Pairs of rows and milliseconds for each peer."""

WIDTH, MARGIN, ROW, GAP = 720, 165, 15, 44
HEIGHT, WIDE = 300, 360
GROWING = ("session", "everything")
"""The kinds of questions in the chart across scales."""
ACCURATE = 0.995
"""A recall below this value is shown beside the bar."""


def draw(folder: Path, results: dict[str, Any]) -> None:
    """Write one chart for each scale, such as ``peers-100k.svg``, and ``peers-growth.svg``."""
    folder.mkdir(parents=True, exist_ok=True)
    for scale, measured in results.items():
        panels = _panels(_questions(measured))
        if panels:
            (folder / f"peers-{scale}.svg").write_text(chart(f"{measured['rows']:,} rows", panels))
    if len(results) > 1:
        grown = {kind: _lines(kind, results) for kind in GROWING}
        if all(grown.values()):
            (folder / "peers-growth.svg").write_text(growth(grown))


def chart(title: str, panels: dict[str, Bars]) -> str:
    """Return a chart with one panel of bars for each kind of question, with milliseconds on a log scale.

    >>> chart("2 rows", {"session": {"keepstone": (0.1, ""), "chroma": (10.0, "")}}).startswith("<svg")
    True
    """
    scale = _scale([value for bars in panels.values() for value, _ in bars.values()], MARGIN, WIDTH - 90)
    title = f"Milliseconds a question, median, {title} (log scale, shorter is better)"
    parts, top = [text(0, 16, title, bold=True)], 34
    for kind, bars in panels.items():
        parts += _panel(kind, bars, top, scale)
        top += GAP + ROW * len(bars)
    return document(WIDTH, top, title, parts)


def growth(panels: dict[str, Lines]) -> str:
    """Return a chart with one panel of lines for each kind of question, with log scales on both axes."""
    title = "Milliseconds a question, median, by rows (log scales, lower is better)"
    parts = [text(0, 16, title, bold=True)]
    for number, (kind, lines) in enumerate(panels.items()):
        parts += _grown(kind, lines, number * WIDE)
    return document(WIDE * len(panels), HEIGHT + 40, title, parts)


def _questions(results: dict[str, Any]) -> dict[str, Any]:
    return {name: peer["questions"] for name, peer in results["peers"].items() if "failed" not in peer}


def _panels(measured: dict[str, Any]) -> dict[str, Bars]:
    panels = {
        kind: {name: _beside(asked[kind]) for name, asked in measured.items() if kind in asked}
        for kind in (*KINDS, "words")
    }
    return {kind: bars for kind, bars in panels.items() if bars}


def _beside(figures: dict[str, float]) -> tuple[float, str]:
    recall = figures.get("recall", 1.0)
    return figures["p50_ms"], "" if recall >= ACCURATE else f" (recall {recall:.2f})"


def _lines(kind: str, results: dict[str, Any]) -> Lines:
    lines: Lines = {}
    for measured in results.values():
        for name, asked in _questions(measured).items():
            if kind in asked:
                lines.setdefault(name, []).append((measured["rows"], asked[kind]["p50_ms"]))
    return {name: line for name, line in lines.items() if len(line) > 1}


class _Scale:
    """A function from values to positions on a log scale; ``powers`` are the values of its grid lines."""

    def __init__(self, low: int, high: int, begin: float, end: float) -> None:
        self.powers = [10.0**power for power in range(low, high + 1)]
        self._place: Callable[[float], float] = lambda value: (
            begin + (end - begin) * (log10(value) - low) / max(1, high - low)
        )

    def __call__(self, value: float) -> float:
        return self._place(value)


def _scale(values: list[float], begin: float, end: float) -> _Scale:
    return _Scale(floor(log10(min(values)) - 0.01), ceil(log10(max(values))), begin, end)


def _panel(kind: str, bars: Bars, top: int, scale: _Scale) -> list[str]:
    bottom = top + 18 + ROW * len(bars)
    rules = [rule(scale(power), top + 16, scale(power), bottom) for power in scale.powers]
    drawn = [
        part
        for row, (name, (value, said)) in enumerate(sorted(bars.items(), key=lambda bar: bar[1]))
        for part in _bar(name, f"{value:.3g}{said}", scale(value), top + 18 + row * ROW)
    ]
    return [text(0, top + 12, kind, bold=True), *rules, *drawn]


def _bar(name: str, said: str, end: float, top: int) -> list[str]:
    ours = name == "keepstone"
    size = f'width="{max(1, end - MARGIN):.1f}" height="{ROW - 4}"'
    return [
        text(0, top + 11, name_of(name), bold=ours),
        f'<rect x="{MARGIN}" y="{top + 2}" {size} fill="{OURS if ours else THEIRS}"/>',
        text(end + 5, top + 11, said, bold=ours),
    ]


def _grown(kind: str, lines: Lines, left: int) -> list[str]:
    points = [point for line in lines.values() for point in line]
    powers = sorted(round(log10(rows)) for rows, _ in points)
    across = _Scale(powers[0], powers[-1], left + 45, left + WIDE - 150)
    up = _scale([value for _, value in points], HEIGHT, 60)
    parts = [text(left, 40, kind, bold=True)]
    for power in up.powers:
        parts += [
            rule(left + 45, up(power), left + WIDE - 150, up(power)),
            text(left + 40, up(power) + 4, f"{power:g}", end=True),
        ]
    parts += [
        text(across(rows) - 12, HEIGHT + 18, f"{rows:,}") for rows in sorted({rows for rows, _ in points})
    ]
    places = _apart({name: up(line[-1][1]) for name, line in lines.items()})
    for name, line in lines.items():
        drawn = " ".join(f"{across(rows):.1f},{up(value):.1f}" for rows, value in line)
        look = f'stroke="{OURS}" stroke-width="3"' if name == "keepstone" else f'stroke="{THEIRS}"'
        parts.append(f'<polyline points="{drawn}" fill="none" {look}/>')
        parts.append(text(across(line[-1][0]) + 6, places[name] + 4, name_of(name), bold=name == "keepstone"))
    return parts


def _apart(places: dict[str, float]) -> dict[str, float]:
    """Move names down until none covers another."""
    moved: dict[str, float] = {}
    lowest = float("-inf")
    for name, place in sorted(places.items(), key=lambda pair: pair[1]):
        lowest = max(place, lowest + 13)
        moved[name] = lowest
    return moved
