"""The section that tells an agent when to use its memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone import Notes
from keepstone.errors import NotTextError, PathEscapeError
from keepstone.notes.importing import offers
from keepstone.notes.teaching import BEGIN, END, HEADING, _taught, teach

LESSON = "Search first.\n- Save decisions.\n"


def test_a_missing_file_is_made(tmp_path: Path) -> None:
    assert teach(tmp_path, "CLAUDE.md", LESSON)
    assert (
        tmp_path / "CLAUDE.md"
    ).read_text() == f"{HEADING}\n\n{BEGIN}\nSearch first.\n- Save decisions.\n{END}\n"


def test_teaching_twice_changes_nothing_more(tmp_path: Path) -> None:
    teach(tmp_path, "AGENTS.md", LESSON)
    before = (tmp_path / "AGENTS.md").stat().st_mtime_ns
    assert not teach(tmp_path, "AGENTS.md", LESSON)
    assert (tmp_path / "AGENTS.md").stat().st_mtime_ns == before


def test_an_older_section_is_replaced_in_its_place(tmp_path: Path) -> None:
    teach(tmp_path, "AGENTS.md", "Old.")
    with (tmp_path / "AGENTS.md").open("a") as file:
        file.write("\n## Below\n")
    teach(tmp_path, "AGENTS.md", LESSON)
    text = (tmp_path / "AGENTS.md").read_text()
    assert "Old." not in text
    assert text.count(HEADING) == 1
    assert text.endswith(f"{END}\n\n## Below\n")


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    assert teach(tmp_path, "AGENTS.md", LESSON, dry_run=True)
    assert not (tmp_path / "AGENTS.md").exists()


def test_notes_are_added_and_found_beside_the_section(tmp_path: Path) -> None:
    notes = Notes(tmp_path, tmp_path / "user.md")
    notes.add("Use pnpm", "Project")
    teach(tmp_path, "AGENTS.md", LESSON)
    notes.add("Release on Mondays", "Project")
    assert [note.content for note in notes.entries("Project")] == ["Use pnpm", "Release on Mondays"]
    assert not teach(tmp_path, "AGENTS.md", LESSON)


def test_the_section_is_not_offered_as_notes(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("- Use tabs\n")
    teach(tmp_path, "CLAUDE.md", LESSON)
    found = offers(Notes(tmp_path, tmp_path / "user.md"))
    assert [(offer.content, offer.line) for offer in found] == [("Use tabs", 1)]


@given(st.lists(st.text(st.sampled_from("a# -"), max_size=4)), st.sampled_from(["\n", "\r\n"]))
def test_taking_it_out_again_leaves_what_was_there(lines: list[str], newline: str) -> None:
    text = newline.join(lines)
    taught = _taught(text, LESSON, "AGENTS.md")
    assert taught.startswith(text)
    assert _taught(taught, LESSON, "AGENTS.md") == taught
    assert _taught(taught, None, "AGENTS.md").rstrip() == text.rstrip()


@pytest.mark.parametrize("name", ["../AGENTS.md", "/etc/motd", "a/b.md", "", ".", ".."])
def test_only_files_of_the_project_are_taught(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="CLAUDE.md"):
        teach(tmp_path, name, LESSON)


def test_a_file_that_cannot_be_changed_safely_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    file.write_text(f"{BEGIN}\nno end\n")
    with pytest.raises(ValueError, match="add that line"):
        teach(tmp_path, "AGENTS.md", LESSON)
    file.write_bytes(b"caf\xe9\n")
    with pytest.raises(NotTextError, match="byte 3"):
        teach(tmp_path, "AGENTS.md", LESSON)
    file.unlink()
    file.symlink_to(tmp_path.parent / "elsewhere.md")
    with pytest.raises(PathEscapeError):
        teach(tmp_path, "AGENTS.md", LESSON)
