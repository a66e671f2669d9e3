"""The locks hold: with extras, without addresses, and with the lowest versions that we state."""

from __future__ import annotations

import re
import runpy
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCKS = sorted(path.name for path in ROOT.glob("requirements*.lock"))
NEEDED_NEWER = {"typing-extensions"}
"""Other packages of the lock need a newer one than we do."""


def locked(lock: str) -> dict[str, list[Requirement]]:
    """Return the requirements of a lock by name; a package may have a line for each platform."""
    found: dict[str, list[Requirement]] = {}
    for line in re.findall(r"^\w[^\\\n]*", (ROOT / lock).read_text(encoding="utf-8"), re.MULTILINE):
        requirement = Requirement(line)
        found.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return found


def requirements_of(requirement: Requirement) -> list[Requirement]:
    """Return what a locked package asks for on this machine; nothing if another version is installed."""
    try:
        installed = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        return []
    if not requirement.specifier.contains(installed.version, prereleases=True):
        return []
    asked = map(Requirement, installed.requires or [])
    extras = ["", *requirement.extras]
    return [
        one
        for one in asked
        if one.marker is None or any(one.marker.evaluate({"extra": extra}) for extra in extras)
    ]


@pytest.mark.parametrize("lock", LOCKS)
def test_extras_that_locked_packages_ask_for_are_locked(lock: str) -> None:
    packages = locked(lock)
    missing = {
        f"{requirement.name} asks for {asked}"
        for requirements in packages.values()
        for requirement in requirements
        for asked in requirements_of(requirement)
        if (entries := packages.get(canonicalize_name(asked.name)))
        and not any(asked.extras <= entry.extras for entry in entries)
    }
    assert missing == set()


def test_the_demo_has_the_versions_of_the_tests() -> None:
    demo, tests = (
        {name: {str(one.specifier) for one in found} for name, found in locked(lock).items()}
        for lock in ("requirements-run.lock", "requirements.lock")
    )
    assert demo.items() <= tests.items()


@pytest.mark.parametrize("lock", LOCKS)
def test_every_package_of_a_lock_is_pinned_with_a_hash(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []


def test_every_stated_minimum_is_the_version_that_the_lowest_lock_has() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    ours = re.findall(r"[\w-]+", extras["all"][0].partition("[")[2])  # The others are frameworks.
    lines = "\n".join(sum((extras[name] for name in ours), project["dependencies"]))
    stated = dict(re.findall(r"^([\w-]+)>=([\d.]+)", lines, re.MULTILINE))
    lock = dict(
        re.findall(
            r"^([\w-]+)(?:\[[^]]*\])?==(\d[\d.]*\d)",
            (ROOT / "requirements-lowest.lock").read_text(),
            re.MULTILINE,
        )
    )
    newer = {name for name, minimum in stated.items() if not f"{lock[name]}.".startswith(f"{minimum}.")}
    assert newer == NEEDED_NEWER


def test_every_file_of_the_smoke_part_exists() -> None:
    tests = runpy.run_path(str(ROOT / "scripts" / "smoke.py"))["TESTS"]
    assert [path for path in tests if not (ROOT / path).exists()] == []
