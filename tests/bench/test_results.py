"""The figures that are written down: each once, dated, with the command that prints it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from tests.scripts import script

ROOT = Path(__file__).parents[2]
RESULTS = (ROOT / "bench" / "RESULTS.md").read_text(encoding="utf-8")
FIGURES = (ROOT / "docs" / "figures.md").read_text(encoding="utf-8")
LINES = re.findall(r"^\| (?!what \||-)(.*) \|$", RESULTS.partition("\n## Languages")[0], re.MULTILINE)
LINES += re.findall(r"^\| (?!what \||-)(.*) \|$", RESULTS.partition("\n## The model")[2], re.MULTILINE)
chart = script("figures_chart")


def test_each_result_has_a_value_and_a_date() -> None:
    cells = [line.split(" | ") for line in LINES]
    assert [line for line in cells if len(line) != 5] == []
    assert [line for line in cells if not line[1] or not re.fullmatch(r"2026-\d\d-\d\d", line[3])] == []


def test_every_script_of_a_figure_exists() -> None:
    named = set(re.findall(r"`(?:python )?(bench/[\w/]+\.py)", RESULTS + FIGURES))
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_no_result_is_written_twice() -> None:
    assert [line for line, number in Counter(LINES).items() if number > 1] == []


def test_the_page_of_figures_has_at_most_fifteen_each_beside_a_rival() -> None:
    rows = chart.rows(FIGURES)
    assert len(rows) <= 15
    assert all(
        re.fullmatch(r"\S.* [\d.,]+( to [\d.,]+)?", rival) for row in rows for rival in row[2].split("; ")
    )
    assert all(re.fullmatch(r"2026-\d\d-\d\d", row[4]) for row in rows)


def test_the_chart_shows_what_the_table_says() -> None:
    assert chart.main(["--check"]) == 0


def test_a_rival_that_needs_less_is_worse_for_keepstone() -> None:
    table = "| figure | k |\n|---|--:|\n| disk, MB | 4 to 5 | zvec 1; Chroma 10 | less | 2026-11-23 | x |\n"
    assert [(bar.rival, bar.ratio) for bar in chart.bars(table)] == [("zvec", 0.2), ("Chroma", 2.0)]
