"""Every decision record has the same headings, and the index lists it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
HEADINGS = ["Status", "Date", "Context", "Decision", "Alternatives", "Consequences"]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_record_has_the_six_headings_and_text_below_each(record: Path) -> None:
    parts = re.split(r"^## (.+)\n", record.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert parts[1::2] == HEADINGS
    assert all(text.strip() for text in parts[2::2])


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_index_lists_number_title_status_and_date(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    number, title = re.match(r"# (\d{4}): (.+)\n", text).groups()  # type: ignore[union-attr]
    (status,) = re.findall(r"^## Status\n\n(\w+)", text, re.MULTILINE)
    (date,) = re.findall(r"^## Date\n\n(\d{4}-\d\d-\d\d)", text, re.MULTILINE)
    rows = (FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    assert f"| [{number}]({record.name}) | {title} | {status} | {date} |" in rows


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.stem)
def test_record_is_one_page(record: Path) -> None:
    text = record.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 60
    assert len(text.split()) <= 1200


def test_superseded_records_and_their_successors_name_one_another() -> None:
    status = {record.name: record.read_text("utf-8").split("## Date")[0] for record in RECORDS}
    links = {
        word: {
            (name, other)
            for name, text in status.items()
            for sentence in re.findall(rf"{word}\b[^.]*(?:\.md[^.]*)*", text)
            for other in re.findall(r"\]\((\d{4}-[\w-]+\.md)\)", sentence)
        }
        for word in ("Supersedes", "Superseded by")
    }
    assert links["Superseded by"]
    assert links["Supersedes"] == {(later, earlier) for earlier, later in links["Superseded by"]}
