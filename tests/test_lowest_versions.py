"""The lowest versions that pyproject.toml accepts are those that ``make lowest`` tests."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
NEEDED_NEWER = {"typing-extensions"}
"""Other packages of the lock need a newer one than we do."""


def test_every_stated_minimum_is_the_version_that_the_lowest_lock_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    ours = re.findall(r"[\w-]+", extras["all"][0].partition("[")[2])  # The others are frameworks.
    lines = "\n".join(sum((extras[name] for name in ours), project["dependencies"]))
    stated = dict(re.findall(r"^([\w-]+)>=([\d.]+)", lines, re.MULTILINE))
    lock = dict(
        re.findall(r"^([\w-]+)==(\d[\d.]*\d)", (ROOT / "requirements-lowest.lock").read_text(), re.MULTILINE)
    )
    newer = {name for name, minimum in stated.items() if not f"{lock[name]}.".startswith(f"{minimum}.")}
    assert newer == NEEDED_NEWER


def test_every_file_of_the_smoke_part_exists() -> None:
    tests = runpy.run_path(str(ROOT / "scripts" / "smoke.py"))["TESTS"]
    assert [path for path in tests if not (ROOT / path).exists()] == []
