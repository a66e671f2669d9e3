"""The home that ``keepstone demo`` makes."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import keepstone
from keepstone import Home
from keepstone.cli import demo_home, sample
from keepstone.operations.inbox import items
from keepstone.store.decay import FADED, worth_of


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    sample.copy_to(tmp_path)
    with keepstone.open(tmp_path, embedder="none") as opened:
        yield opened


def test_only_the_finding_that_was_asked_for_is_worth_more_afterwards(tmp_path: Path) -> None:
    sample.copy_to(tmp_path)
    faded = {entry.type: entry for entry in demo_home.fade(tmp_path / sample.BMAD)}
    gained = {
        kind: round(entry.priority_after_queries - entry.priorities[-1], 3) for kind, entry in faded.items()
    }
    assert gained == dict.fromkeys(faded, 0.0) | {"finding": 0.02 * demo_home.ASKED}


def test_notes_keep_the_place_that_was_chosen_for_them(tmp_path: Path) -> None:
    sample.copy_to(tmp_path)
    notes = keepstone.Notes(tmp_path / sample.PROJECT, tmp_path / "user.md")
    results = demo_home.save_notes(notes)
    saved = [result.entry.content for result in results if result.saved]
    assert {note.content for note in notes.entries()} >= set(saved)
    assert [result.entry.type for result in results if not result.saved] == ["Project"]


def test_calls_are_found_with_their_own_vectors_and_no_embedder(home: Home) -> None:
    service = keepstone.MemoryService(home, agent=sample.DESK)
    found = service.query_similar_memories(sample.QUESTION_VECTOR, sample.CALLS, limit=3)
    assert (len(found), found[0].id) == (3, "password-field")
    assert len(home.agent(sample.DESK).session(sample.CALLS).entries()) == 6


def test_the_sample_is_for_its_owner_only(tmp_path: Path) -> None:
    sample.copy_to(tmp_path / "home")
    found = list((tmp_path / "home").rglob("*"))
    assert {path.stat().st_mode & 0o077 for path in found} == {0}
    assert sum(path.is_file() for path in found) == 10


def test_no_entry_of_the_sample_has_faded_nor_does_within_three_days(home: Home) -> None:
    later = datetime.now(UTC) + timedelta(days=3)
    records = [entry.line for entry in home.agent("default").iter_entries(include_superseded=True)]
    assert len(records) > 200
    assert [record["id"] for record in records if worth_of(record).at(later) <= FADED] == []


def test_a_contradiction_of_the_sample_waits_in_the_inbox(home: Home) -> None:
    waiting = [
        (item.kind, [entry.id for entry in item.entries]) for item in items(home, home.agent("default"))
    ]
    assert waiting == [("contradiction", ["notes-morning", "notes-evening"])]


def test_a_fact_of_the_sample_is_superseded(home: Home) -> None:
    agent = home.agent("default")
    outdated = {entry.id for entry in agent.iter_entries(include_superseded=True)} - {
        entry.id for entry in agent.iter_entries()
    }
    assert outdated == {"hold-twenty-minutes"}
    assert [entry.id for entry in agent.related("hold-ten-minutes")] == ["hold-twenty-minutes"]


def test_the_sample_added_to_a_home_has_what_the_demo_has(home: Home) -> None:
    added = home.agent(sample.add_to(home))
    ids = [{entry.id for entry in agent.iter_entries()} for agent in (added, home.agent("default"))]
    assert ids[0] == ids[1]
    assert added.files.read(sample.FILE) == home.agent("default").files.read(sample.FILE)
