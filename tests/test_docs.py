"""The programs in the documentation run, page by page, in an empty folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ["README.md", "docs/tutorial.md", "docs/how-to.md"]
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_programs_of_a_page_run_and_spare_the_users_notes(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    real = tmp_path / "real" / "memory.md"
    monkeypatch.setenv("KEEPSTONE_USER_MEMORY", str(real))
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": page}
    for block in _BLOCK.finditer(text):
        line = text.count("\n", 0, block.start()) + 1
        exec(compile("\n" * line + block[1], page, "exec"), names)  # noqa: S102  That is what this test is for.
    assert not real.exists()
