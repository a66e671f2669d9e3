"""The documentation for language models is what scripts/llms_txt.py makes of the pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.scripts import script

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
llms = script("llms_txt")


def test_both_files_are_up_to_date() -> None:
    assert llms.main(["--check"]) == 0


def test_a_changed_page_is_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(llms, "summary", lambda _: "another sentence.")
    assert llms.main(["--check"]) == 1
    assert "docs/llms.txt is out of date" in capsys.readouterr().out


def test_every_guide_is_listed_with_a_sentence() -> None:
    listed = re.findall(r"^- \[.+?\]\((.+?)\): \S", (DOCS / "llms.txt").read_text("utf-8"), re.MULTILINE)
    guides = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert set(listed) == {page for page in guides if not re.match(r"decisions/\d", page)}


def test_full_text_has_the_guides_and_no_records() -> None:
    full = (DOCS / "llms-full.txt").read_text("utf-8")
    assert (DOCS / "tutorial.md").read_text("utf-8").strip() in full
    assert "<!-- decisions/" not in full


def test_house_rules_for_agents_fit_in_sixty_lines() -> None:
    assert len((ROOT / "AGENTS.md").read_text("utf-8").splitlines()) <= 60
