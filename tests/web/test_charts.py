"""The numbers that the charts of the overview are drawn from."""

import json
from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.store.decay import FADED, FADING
from keepstone.web import charts

DAYS = st.dictionaries(st.dates(date(1990, 1, 1), date(2040, 1, 1)), st.integers(1, 9), max_size=60)
FIRST = date(2026, 3, 1)


def bars(chart: charts.Options) -> list[Any]:
    found: list[Any] = chart["series"][0]["data"]
    return found


@given(DAYS)
def test_a_chart_over_time_counts_every_entry_once(days: dict[date, int]) -> None:
    chart = charts.over_time(days)
    assert sum(bars(chart)) == sum(days.values())
    assert len(bars(chart)) == len(chart["xAxis"]["data"]) <= 48


@given(DAYS.filter(bool))
def test_each_bar_over_time_begins_on_the_day_below_it(days: dict[date, int]) -> None:
    chart = charts.over_time(days)
    begins = [date.fromisoformat(label) for label in chart["xAxis"]["data"]]
    ends = [*begins[1:], max(days) + timedelta(days=1)]
    counted = [
        sum(count for day, count in days.items() if begin <= day < end)
        for begin, end in zip(begins, ends, strict=True)
    ]
    assert bars(chart) == counted


@pytest.mark.parametrize(("length", "steps"), [(1, 1), (48, 48), (49, 25), (96, 48), (97, 33)])
def test_steps_over_time_are_longer_where_days_are_many(length: int, steps: int) -> None:
    days = {FIRST: 1, FIRST + timedelta(days=length - 1): 1}
    assert len(bars(charts.over_time(days))) == steps


def test_a_day_without_entries_has_an_empty_bar() -> None:
    chart = charts.over_time({FIRST: 2, FIRST + timedelta(days=2): 5})
    assert chart["xAxis"]["data"] == ["2026-03-01", "2026-03-02", "2026-03-03"]
    assert bars(chart) == [2, 0, 5]


def test_the_chart_of_types_keeps_the_most_frequent() -> None:
    chart = charts.types(Counter({f"type {count}": count for count in range(1, 12)}))
    assert chart["yAxis"]["data"] == [f"type {count}" for count in range(4, 12)]
    assert [row["value"] for row in bars(chart)] == list(range(4, 12))


def test_a_type_has_the_colour_that_entries_of_it_have() -> None:
    colours = [row["itemStyle"]["color"] for row in bars(charts.types(Counter(["finding", "else", "else"])))]
    assert colours[0] == charts.COLOURS["finding"]
    assert colours[1] not in charts.COLOURS.values()


@given(st.text(alphabet=st.characters(codec=None), min_size=1))
def test_a_chart_of_types_of_any_spelling_can_be_sent(name: str) -> None:
    json.dumps(charts.types(Counter([name])), ensure_ascii=False).encode()


def test_a_type_that_would_turn_the_writing_around_is_shown_as_an_escape() -> None:
    assert charts.types(Counter(["\u202eabc"]))["yAxis"]["data"] == [r"\u202eabc"]


def test_each_fading_line_falls_from_the_priority_of_a_fresh_entry() -> None:
    for line in charts.fading()["series"]:
        assert line["data"][0] == FADING[line["name"]].base
        assert line["data"] == sorted(line["data"], reverse=True)


def test_a_fading_line_meets_the_limit_on_the_day_entries_fade() -> None:
    lines = {line["name"]: line["data"] for line in charts.fading()["series"]}
    assert next(day for day, worth in enumerate(lines["conversation"]) if worth <= FADED) == 25
    assert min(lines["preference"]) == pytest.approx(0.256)


def test_the_chart_of_fading_has_a_value_for_every_day_it_names() -> None:
    chart = charts.fading()
    assert {len(line["data"]) for line in chart["series"]} == {len(chart["xAxis"]["data"])} == {61}


def test_each_fading_line_has_a_colour_of_its_own() -> None:
    colours = {line["itemStyle"]["color"] for line in charts.fading()["series"]}
    assert colours == set(charts.COLOURS.values())


def test_what_is_on_disk_is_listed_from_the_top_with_its_size() -> None:
    chart = charts.on_disk({"Logs": 58_450, "Index": 0})
    assert chart["yAxis"]["data"] == ["Index", "Logs"]
    assert [(row["value"], row["label"]["formatter"]) for row in bars(chart)] == [
        (0, "0 B"),
        (58_450, "57.1 KiB"),
    ]


@pytest.mark.parametrize("chart", [charts.over_time({}), charts.types(Counter()), charts.on_disk({})])
def test_a_chart_of_nothing_has_no_bars(chart: charts.Options) -> None:
    assert bars(chart) == []
