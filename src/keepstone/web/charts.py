"""The charts of the overview page, as ECharts options."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from keepstone.store.decay import FADED, FADING
from keepstone.text.display import size
from keepstone.web.phrases import shown

Options = dict[str, Any]

COLOURS = {"decision": "#8f73d6", "finding": "#c98f2c", "preference": "#4a90d1", "message": "#3d9a91"}
_OTHER = "#8a939b"
_LINE = "#8a939b55"
_DAYS = 60
_BINS = 48
_TYPES = 8
_WIDEST = 32
"""Maximum width of a bar in pixels."""


def over_time(days: Mapping[date, int]) -> Options:
    """Return a chart of entries over time, by day or by longer steps."""
    steps = _steps(days)
    return _axes([f"{day:%Y-%m-%d}" for day in steps]) | {
        "series": [
            {
                "type": "bar",
                "data": list(steps.values()),
                "barMaxWidth": _WIDEST,
                "itemStyle": {"color": COLOURS["message"]},
                "cursor": "pointer",
            }
        ],
    }


def spans(days: Mapping[date, int]) -> list[tuple[date, date, int]]:
    """Return the steps of ``over_time``, each with its first day, the day after its last, and its count."""
    steps = _steps(days)
    begins = list(steps)
    ends = [*begins[1:], max(days, default=date.min) + timedelta(days=1)]
    return [(begin, end, steps[begin]) for begin, end in zip(begins, ends, strict=True)] if steps else []


def _steps(days: Mapping[date, int]) -> dict[date, int]:
    """Sum the days into at most 48 steps of equal length."""
    if not days:
        return {}
    first, last = min(days), max(days)
    width = max(1, math.ceil(((last - first).days + 1) / _BINS))
    steps = {first + timedelta(days=at): 0 for at in range(0, (last - first).days + 1, width)}
    for day, count in days.items():
        steps[first + timedelta(days=(day - first).days // width * width)] += count
    return steps


def common_types(counts: Counter[str]) -> list[tuple[str, int]]:
    """Return the types that the chart ``types`` shows, the most frequent first."""
    return counts.most_common(_TYPES)


def types(counts: Counter[str]) -> Options:
    """Return a chart of entries by type, the most frequent on top."""
    # ECharts draws the first category of a vertical axis at the bottom.
    common = common_types(counts)[::-1]
    rows = [{"value": count, "itemStyle": {"color": COLOURS.get(name, _OTHER)}} for name, count in common]
    return {
        **_base_options(),
        "grid": {"left": 8, "right": 24, "top": 8, "bottom": 8, "containLabel": True},
        "xAxis": {"type": "value", "minInterval": 1, "splitLine": {"lineStyle": {"color": _LINE}}},
        "yAxis": {
            "type": "category",
            "data": [shown(name[:24]) for name, _ in common],
            "axisTick": {"show": False},
        },
        "series": [
            {
                "type": "bar",
                "data": rows,
                "barMaxWidth": 22,
                "label": {"show": True, "position": "right"},
                "cursor": "pointer",
            }
        ],
    }


def fading() -> Options:
    """Return a chart of how the priorities of the four types decay over sixty days."""
    names = {"conversation": "message"}
    lines = [
        {
            "type": "line",
            "name": name,
            "showSymbol": False,
            "data": [round(kind.base * math.exp(-kind.rate * day), 3) for day in range(_DAYS + 1)],
            "itemStyle": {"color": COLOURS[names.get(name, name)]},
        }
        for name, kind in FADING.items()
    ]
    lines[0]["markLine"] = _limit()
    chart = _axes([str(day) for day in range(_DAYS + 1)])
    chart["grid"] = chart["grid"] | {"top": 50}
    chart["xAxis"]["axisLabel"] = {"interval": 9}
    return chart | {"legend": {"top": 0, "itemWidth": 14, "itemHeight": 8, "itemGap": 16}, "series": lines}


def _limit() -> Options:
    line = {"color": _OTHER, "type": "dashed"}
    label = {"formatter": f"faded: {FADED}", "position": "insideStartTop"}
    return {"silent": True, "symbol": "none", "lineStyle": line, "label": label, "data": [{"yAxis": FADED}]}


def on_disk(sizes: Mapping[str, int]) -> Options:
    """Return a chart of the size on disk."""
    # As in ``types``, the first category is drawn at the bottom.
    rows = list(sizes.items())[::-1]
    return {
        **_base_options(),
        "tooltip": {"show": False},
        "grid": {"left": 8, "right": 90, "top": 8, "bottom": 8, "containLabel": True},
        "xAxis": {"type": "value", "show": False},
        "yAxis": {"type": "category", "data": [name for name, _ in rows], "axisTick": {"show": False}},
        "series": [{"type": "bar", "barMaxWidth": 26, "data": [_sized(count) for _, count in rows]}],
    }


def _sized(count: int) -> Options:
    label = {"show": True, "position": "right", "formatter": size(count)}
    return {"value": count, "label": label, "itemStyle": {"color": COLOURS["message"]}}


def _base_options() -> Options:
    # A refresh draws the charts again, and animated ones would grow from nothing each time.
    return {"animation": False, "textStyle": {"fontFamily": "inherit"}, "tooltip": {"trigger": "axis"}}


def _axes(labels: list[str]) -> Options:
    return {
        **_base_options(),
        "grid": {"left": 24, "right": 36, "top": 12, "bottom": 8, "containLabel": True},
        "xAxis": {
            "type": "category",
            "data": labels,
            "axisLabel": {"hideOverlap": True},
            "axisTick": {"show": False},
        },
        "yAxis": {"type": "value", "splitLine": {"lineStyle": {"color": _LINE}}},
    }
