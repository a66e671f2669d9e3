"""The home that ``keepstone demo`` makes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone import Home
from keepstone.cli import demo_home, sample


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as opened:
        yield opened


def test_only_the_finding_that_was_asked_for_is_worth_more_afterwards(tmp_path: Path) -> None:
    faded = {entry.type: entry for entry in demo_home.fade(tmp_path)}
    gained = {kind: round(entry.asked - entry.priorities[-1], 3) for kind, entry in faded.items()}
    assert gained == dict.fromkeys(faded, 0.0) | {"finding": 0.02 * demo_home.ASKED}


def test_notes_keep_the_place_that_was_chosen_for_them(tmp_path: Path) -> None:
    notes = keepstone.Notes(tmp_path / "project", tmp_path / "user.md")
    results = demo_home.save_notes(notes, tmp_path / "project")
    saved = [result.entry.content for result in results if result.saved]
    assert {note.content for note in notes.entries()} >= set(saved)
    assert [result.entry.type for result in results if not result.saved] == ["Project"]


def test_calls_are_found_with_their_own_vectors_and_no_embedder(home: Home) -> None:
    found = demo_home.take_calls(home)
    assert (len(found), found[0].id) == (3, "password-field")
    assert len(home.agent(sample.DESK).session(sample.CALLS).entries()) == len(sample.CALLS_TAKEN)
