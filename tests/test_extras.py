"""What an installation takes: the base, and each extra."""

from __future__ import annotations

import re
import tomllib
from itertools import chain
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
WRITING = """
    apsw filelock markdown-it-py mcp numkong numpy platformdirs psycopg psycopg-pool pystemmer tokenizers
    tomlkit usearch uuid-utils
""".split()
"""Packages that write files or rows of ours, or decide their content."""


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=; ]", requirement)[0]


def packages_of(extra: str) -> set[str]:
    """Return the packages of an extra, and of the extras that it contains."""
    found: set[str] = set()
    for requirement in EXTRAS[extra]:
        if name_of(requirement) == "keepstone":
            contained = requirement.partition("[")[2].rstrip("]").split(",")
            found |= set().union(*map(packages_of, contained))
        else:
            found.add(name_of(requirement))
    return found


def test_the_base_installs_no_package_that_serves_vectors_only() -> None:
    assert packages_of("vectors") == {"numkong", "usearch"}
    assert not packages_of("vectors") & set(map(name_of, PROJECT["dependencies"]))


@pytest.mark.parametrize("extra", ["minilm", "e5", "static", "openai", "all"])
def test_extras_that_make_vectors_search_them_fast(extra: str) -> None:
    assert packages_of("vectors") <= packages_of(extra)


def test_the_install_line_of_the_readme_has_fast_vectors() -> None:
    readme = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
    [named] = re.findall(r"^pip install '\.\[([\w,]+)\]'", readme, re.MULTILINE)
    assert packages_of("vectors") <= set().union(*map(packages_of, named.split(",")))


def test_what_writes_our_files_stays_below_its_next_major() -> None:
    stated = chain(PROJECT["dependencies"], *EXTRAS.values())
    bounded = {name_of(one) for one in stated if re.search(r">=[\d.]+,<\d+(;|$)", one)}
    assert set(WRITING) <= bounded


def test_no_extra_needs_wordllama() -> None:
    assert "wordllama" not in set().union(*map(packages_of, EXTRAS))
