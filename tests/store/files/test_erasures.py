"""When memory was erased, for processes that keep copies of it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from keepstone.filesystem.layout import LAYOUTS
from keepstone.store.files.erasures import FILE, Erasures


@pytest.fixture
def erasures(tmp_path: Path) -> Erasures:
    return Erasures(tmp_path, LAYOUTS["default"])


def test_before_any_erasure_there_is_no_file(erasures: Erasures, tmp_path: Path) -> None:
    assert (erasures.state("a"), erasures.state(""), list(tmp_path.iterdir())) == (b"", b"", [])


def test_each_erasure_changes_the_state_of_its_agent(erasures: Erasures) -> None:
    states = [erasures.state("a")]
    for _ in range(3):
        erasures.note("a")
        states.append(erasures.state("a"))
    assert len(set(states)) == 4


def test_another_process_sees_the_same_state(erasures: Erasures, tmp_path: Path) -> None:
    erasures.note("a")
    assert Erasures(tmp_path, LAYOUTS["default"]).state("a") == erasures.state("a") != b""


def test_an_erasure_leaves_the_state_of_other_agents(erasures: Erasures) -> None:
    erasures.note("a")
    before, all_before = erasures.state("a"), erasures.state("")
    erasures.note("b")
    assert erasures.state("a") == before
    assert erasures.state("") != all_before


def test_the_file_names_no_agent_and_does_not_grow(erasures: Erasures, tmp_path: Path) -> None:
    for number in range(200):
        erasures.note(f"agent{number}")
    (file,) = tmp_path.rglob(FILE)
    assert file.stat().st_size <= 4096 * 8
    assert b"agent" not in file.read_bytes()


def test_a_place_that_cannot_be_written_is_logged_and_stops_nothing(
    erasures: Erasures, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = LAYOUTS["default"].derived_folder(tmp_path)
    (folder / FILE).mkdir(parents=True)
    with caplog.at_level(logging.WARNING):
        erasures.note("a")
    assert "an erasure could not be announced to other servers" in caplog.text
    assert erasures.state("a") == b""
