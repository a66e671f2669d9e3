from pathlib import Path

import pytest

from keepstone import Notes
from keepstone.notes.importing import offers, take
from keepstone.notes.other_agents import OtherFile


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path, tmp_path / "user.md")


def test_bullets_of_other_files_are_offered_with_their_lines(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Rules\n\n- Be kind\n  and brief\n\n1. no bullet\n", "utf-8")
    [offer] = offers(notes)
    assert (offer.content, offer.line, offer.duplicate_of) == ("Be kind\nand brief", 3, None)
    assert offer.source == str(tmp_path / "CLAUDE.md")


def test_what_the_project_notes_say_is_marked_as_a_duplicate(notes: Notes) -> None:
    place = notes.add("Use pnpm", "Project").entry
    [offer] = offers(notes, [OtherFile("/x.md", "- use  PNPM.\n")])
    assert offer.duplicate_of == f"{place.source}:{place.line}"


def test_a_note_of_the_user_file_is_not_a_duplicate(notes: Notes) -> None:
    notes.add("Use pnpm", "User")
    assert offers(notes, [OtherFile("/x.md", "- Use pnpm\n")])[0].duplicate_of is None


def test_what_an_earlier_file_says_is_offered_once(notes: Notes) -> None:
    files = [OtherFile("/x.md", "- Tabs\n- tabs.\n"), OtherFile("/y.md", "- Tabs\n")]
    assert [offer.duplicate_of for offer in offers(notes, files)] == [None, "/x.md:1", "/x.md:1"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_settings_at_the_top_hold_no_bullets(notes: Notes, newline: str) -> None:
    text = "---\nglobs:\n- '*.py'\n---\n- Tabs\n".replace("\n", newline)
    assert [(offer.content, offer.line) for offer in offers(notes, [OtherFile("/x.mdc", text)])] == [
        ("Tabs", 5)
    ]


def test_bullets_in_code_are_not_offered(notes: Notes) -> None:
    assert offers(notes, [OtherFile("/x.md", "```\n- Tabs\n```\n")]) == []


def test_taken_offers_are_notes_of_the_project(notes: Notes) -> None:
    found = offers(notes, [OtherFile("/x.md", "- Tabs\n- Be kind\n  and brief\n")])
    assert [result.saved for result in take(notes, found)] == [True, True]
    assert [note.content for note in notes.entries("Project")] == ["Tabs", "Be kind\nand brief"]


def test_an_offer_added_concurrently_is_not_added_again(notes: Notes) -> None:
    found = offers(notes, [OtherFile("/x.md", "- Tabs\n")])
    notes.add("tabs", "Project")
    assert [result.saved for result in take(notes, found)] == [False]
    assert len(notes.entries()) == 1
