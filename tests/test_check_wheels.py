"""The script that says which extras install from wheels alone."""

from __future__ import annotations

import pytest
from tests.scripts import script

wheels = script("check_wheels")
CASE = ("minilm", "Alpine ARM", "3.14")


def test_every_extra_and_system_has_a_row() -> None:
    failures = {("base", system, python): "" for system in wheels.SYSTEMS for python in wheels.PYTHONS}
    failures["base", "Alpine ARM", "3.14"] = "no wheel"
    rows = wheels.table(["base"], failures).splitlines()
    assert len(rows) == 1 + len(wheels.SYSTEMS)
    assert [row.split()[-4:] for row in rows if "no" in row] == [["ok", "ok", "ok", "no"]]


@pytest.mark.parametrize(
    ("failure", "known", "found"),
    [
        ("", {}, []),
        ("no wheel", {}, ["minilm Alpine ARM 3.14: no wheel"]),
        ("no wheel", {CASE: "too new"}, []),
        ("", {CASE: "too new"}, ["minilm Alpine ARM 3.14: installs now, take it out of KNOWN"]),
    ],
)
def test_only_what_is_new_is_wrong(failure: str, known: dict[tuple[str, ...], str], found: list[str]) -> None:
    assert wheels.verdict({CASE: failure}, known) == found


def test_no_extra_of_ours_is_known_to_lack_wheels() -> None:
    assert {extra for extra, *_ in wheels.LACKING} <= {"lancedb", "claude-agent", "adk", "strands"}
