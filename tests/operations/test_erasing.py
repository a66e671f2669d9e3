"""Erasing a text from agents and notes, and the places that a purge does not reach."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import keepstone
from keepstone.operations.erasing import erase, holders_of


@pytest.fixture
def home(tmp_path: Path) -> Iterator[keepstone.Home]:
    with keepstone.open(tmp_path / "home", embedder="none") as opened:
        yield opened


@pytest.fixture
def notes(tmp_path: Path) -> keepstone.Notes:
    (tmp_path / "project").mkdir()
    return keepstone.Notes(tmp_path / "project", tmp_path / "user.md")


def test_all_that_holds_a_text_is_found_and_nothing_changed(
    home: keepstone.Home, notes: keepstone.Notes
) -> None:
    one, two = home.agent("one"), home.agent("two")
    entry = one.add("Ask Ada Lovelace", session="s")
    two.files.write("plan.md", "call ada lovelace")
    notes.add("Ada Lovelace signs off", "Project")
    notes.add("Run the tests", "Project")
    found = holders_of("ADA LOVELACE", home.root, [one, two], notes)
    assert found.agents["one"].entries == (("s", entry.id),)
    assert found.agents["two"].files == ("plan.md",)
    assert [note.content for note in found.notes] == ["Ada Lovelace signs off"]
    assert one.count() == 1


def test_an_erased_text_is_gone_from_entries_files_and_notes(
    home: keepstone.Home, notes: keepstone.Notes
) -> None:
    one, two = home.agent("one"), home.agent("two")
    one.add("Ask Ada Lovelace")
    kept = one.add("Ask Ben")
    two.files.write("plan.md", "call ada lovelace")
    notes.add("Ada Lovelace signs off", "Project")
    notes.add("Run the tests", "Project")
    assert erase("ada lovelace", home.root, [one, two], notes)
    assert not holders_of("ada lovelace", home.root, [one, two], notes)
    assert [entry.id for entry in one.entries()] == [kept.id]
    assert [note.content for note in notes.entries()] == ["Run the tests"]


def test_agents_and_notes_that_are_not_named_are_left_alone(
    home: keepstone.Home, notes: keepstone.Notes
) -> None:
    one, two = home.agent("one"), home.agent("two")
    one.add("Ada")
    two.add("Ada")
    notes.add("Ada", "User")
    erase("ada", home.root, [one], None)
    assert (one.count(), two.count(), len(notes.entries())) == (0, 1, 1)


def test_a_blank_text_is_refused(home: keepstone.Home) -> None:
    with pytest.raises(ValueError, match="the text is blank"):
        holders_of(" ", home.root, [home.agent("one")], None)


def test_commits_of_the_home_and_of_notes_are_named(
    home: keepstone.Home, notes: keepstone.Notes, tmp_path: Path
) -> None:
    home.agent("one").add("Ada")
    notes.add("Ada", "Project")
    assert not any("Commits" in words for words in holders_of("Ada", home.root, [], notes).beyond)
    (tmp_path / "home" / ".git").mkdir()
    (tmp_path / "project" / ".git").mkdir()
    beyond = holders_of("Ada", home.root, [], notes).beyond
    assert [words.split(":")[0] for words in beyond if "Commits" in words] == [
        "Commits of this home",
        f"Commits of the notes in {notes.folder}",
    ]


def test_a_text_beside_the_notes_of_a_file_is_named(
    home: keepstone.Home, notes: keepstone.Notes, tmp_path: Path
) -> None:
    (tmp_path / "project/AGENTS.md").write_text("# About Ada\n")
    beyond = holders_of("ada", home.root, [], notes).beyond
    assert any(words.endswith("has it outside of its notes: edit the file.") for words in beyond)


def test_files_of_postgresql_are_named() -> None:
    beyond = holders_of("Ada", Path("postgresql://host/db"), [], None).beyond
    assert any("keepstone postgres scrub" in words for words in beyond)
