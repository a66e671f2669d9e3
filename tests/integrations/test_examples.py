"""The examples and the programs on the frameworks' pages run offline, each in an empty folder."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.warm import warm

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = sorted(
    set((ROOT / "docs" / "frameworks").glob("*.md"))
    - {ROOT / "docs" / "frameworks" / name for name in ("mastra.md", "mem0.md")}
)
"""The pages of the adapters; Mastra has none yet, and mem0 needs a model."""
APART = r"needs the extra|needs CrewAI|No module named '(crewai|strands)"
"""The output of programs whose frameworks need a separate environment: ``make frameworks`` runs them."""
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(program: list[str], folder: Path) -> str:
    done = subprocess.run(
        [*warm(), "-W", "ignore", *program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    last = (done.stderr.strip().splitlines() or [""])[-1]
    if re.search(APART, last):
        pytest.skip(last)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_offline_and_recalls_something(path: Path, tmp_path: Path) -> None:
    assert "recalled:" in run([str(path)], tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_programs_of_a_page_run(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert blocks
    run(["-c", "\n".join(blocks)], tmp_path)
