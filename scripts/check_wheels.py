#!/usr/bin/env python3
"""Report which extras install from wheels alone, by system and version of Python.

python scripts/check_wheels.py               # every extra, everywhere
python scripts/check_wheels.py minilm base   # some of them

uv resolves each case without installing anything. The exit status is 1 if a case fails that is not in
``KNOWN``, or if a case in ``KNOWN`` no longer fails.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
BASE = "base"
"""The library without an extra."""
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux x86-64": "x86_64-manylinux_2_28",
    "Linux ARM": "aarch64-manylinux_2_28",
    "Alpine x86-64": "x86_64-unknown-linux-musl",
    "Alpine ARM": "aarch64-unknown-linux-musl",
    "macOS ARM": "aarch64-apple-darwin",
}
"""uv's platform for each system."""

ALPINE = ("Alpine x86-64", "Alpine ARM")
LACKING = (
    ("lancedb", ALPINE, PYTHONS, "lancedb has no wheel for musl"),
    ("claude-agent", ALPINE, PYTHONS, "claude-agent-sdk has no wheel for musl"),
    ("adk", ALPINE, PYTHONS, "watchdog, which google-adk needs, has no wheel for musl"),
    ("adk", ("macOS ARM",), ("3.14",), "watchdog has no wheel for Python 3.14 on macOS"),
    ("strands", ALPINE, PYTHONS, "watchdog, which strands-agents needs, has no wheel for musl"),
    ("strands", ("macOS ARM",), ("3.14",), "watchdog has no wheel for Python 3.14 on macOS"),
)
"""Known failures: an extra, the systems and versions of Python, and the reason. This list may only shrink."""
KNOWN = {
    (extra, system, python): why
    for extra, systems, pythons, why in LACKING
    for system in systems
    for python in pythons
}
"""The reason of each failing case in ``LACKING``."""

Case = tuple[str, str, str]
"""An extra, a system and a version of Python."""


def main(arguments: list[str]) -> int:
    """Print a table with a row for each extra and system, and return the exit status."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = arguments or [BASE, *project["optional-dependencies"]]
    cases = [(extra, system, python) for extra in extras for system in SYSTEMS for python in PYTHONS]
    with ThreadPoolExecutor(4) as pool, TemporaryDirectory() as empty:
        failures = dict(zip(cases, pool.map(partial(failure_of, empty), cases), strict=True))
    print(table(extras, failures))
    for extra, systems, pythons, why in LACKING:
        if extra in extras:
            print(f"known: {extra} on {', '.join(systems)} with Python {', '.join(pythons)}: {why}")
    wrong = verdict(failures, KNOWN)
    print("\n".join(wrong) or "Everything else installs from wheels.")
    return int(bool(wrong))


def failure_of(target: str, case: Case) -> str:
    """Return why an extra cannot be installed into an empty folder from wheels alone; empty if it can."""
    extra, system, python = case
    wanted = "." if extra == BASE else f".[{extra}]"
    place = ["--python-platform", SYSTEMS[system], "--python-version", python, "--target", target]
    command = ["pip", "install", "--dry-run", "--only-binary", ":all:", *place, wanted]
    done = subprocess.run(
        [sys.executable, "-m", "uv", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return "" if done.returncode == 0 else " ".join(done.stderr.split()) or f"status {done.returncode}"


def table(extras: list[str], failures: dict[Case, str]) -> str:
    """Return a row for each extra and system, with the result for each version of Python."""
    lines = [f"{'extra':<16} {'system':<14} {' '.join(PYTHONS)}"]
    for extra in extras:
        for system in SYSTEMS:
            marks = ["no" if failures[extra, system, python] else "ok" for python in PYTHONS]
            lines.append(f"{extra:<16} {system:<14} {' '.join(f'{mark:<4}' for mark in marks)}".rstrip())
    return "\n".join(lines)


def verdict(failures: dict[Case, str], known: dict[Case, str]) -> list[str]:
    """Return unexpected results: new failures, and known failures that now install."""
    found = []
    for case, failure in failures.items():
        name = " ".join(case)
        if failure and case not in known:
            found.append(f"{name}: {failure}")
        elif case in known and not failure:
            found.append(f"{name}: installs now, take it out of KNOWN")
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
