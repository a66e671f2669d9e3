"""``notes list``, ``add``, ``remove``, ``dedupe`` and ``show``."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.warm import warm
from typer.testing import Result

from keepstone import Notes

if TYPE_CHECKING:
    from .conftest import Command


@dataclass(frozen=True)
class Project:
    """The ``notes`` commands on a project folder and a user's file of their own."""

    cli: Command
    folder: Path
    user_file: Path

    @property
    def project_file(self) -> Path:
        return self.folder / "AGENTS.md"

    @property
    def places(self) -> tuple[str, ...]:
        return "--dir", str(self.folder), "--user-file", str(self.user_file)

    def __call__(self, *words: str, text: str | bytes | None = None) -> Result:
        return self.cli("notes", *words, *self.places, text=text)

    def json(self, *words: str, text: str | None = None) -> dict[str, Any]:
        return self.cli.json("notes", *words, *self.places, text=text)

    def error(self, *words: str) -> tuple[int, str]:
        return self.cli.error("notes", *words, *self.places)

    def write(self, *notes: str) -> None:
        """Write AGENTS.md with these notes, of which the first is on line 3."""
        bullets = "".join(f"- {note}\n" for note in notes)
        self.project_file.write_text(f"## Memories\n\n{bullets}", "utf-8")


@pytest.fixture
def project(cli: Command, tmp_path: Path) -> Project:
    (tmp_path / "shop").mkdir()
    return Project(cli, tmp_path / "shop", tmp_path / "user.md")


@pytest.mark.parametrize("message", ["# Use pnpm", "### Use pnpm", "#Use pnpm", "Use pnpm", "# Use pnpm\n"])
def test_a_note_goes_into_agents_md_without_its_hashes(project: Project, message: str) -> None:
    document = project.json("add", message, "--project")
    note = {"content": "Use pnpm", "type": "Project", "source": str(project.project_file), "line": 3}
    assert document == {"saved": True, "note": note, "duplicate_of": None}
    assert project.project_file.read_text("utf-8") == "## Memories\n\n- Use pnpm\n"


def test_a_note_of_the_user_goes_into_the_users_file(project: Project) -> None:
    shown = project("add", "# My name is Alice", "--user").stdout
    assert shown == f"Saved as a User note: {project.user_file}:1\n"
    assert project.user_file.read_text("utf-8") == "- My name is Alice\n"
    assert not project.project_file.exists()


def test_a_note_of_several_lines_is_read_from_standard_input(project: Project) -> None:
    project("add", "-", "--project", text="# Releases:\n1. test\n2. tag\n")
    assert [note.content for note in Notes(project.folder).entries("Project")] == [
        "Releases:\n1. test\n2. tag"
    ]


def test_a_note_that_is_there_is_not_written_again(project: Project) -> None:
    project.write("Use pnpm")
    result = project("add", "# use  PNPM.", "--project")
    place = f"{project.project_file}:3"
    assert (result.exit_code, result.stdout) == (0, f"Not saved: {place} already says “Use pnpm”\n")
    assert project.project_file.read_text("utf-8") == "## Memories\n\n- Use pnpm\n"


def test_a_duplicate_is_reported_as_json_with_the_note_it_repeats(project: Project) -> None:
    project.write("Use pnpm")
    document = project.json("add", "# use pnpm", "--project")
    assert (document["saved"], document["duplicate_of"]["content"]) == (False, "Use pnpm")


def test_a_note_that_the_other_file_has_is_saved_and_says_so(project: Project) -> None:
    project.write("Use pnpm")
    shown = project("add", "# Use pnpm", "--user").stdout
    assert shown == (
        f"Saved as a User note: {project.user_file}:1. "
        f"The Project notes say the same: {project.project_file}:3\n"
    )


@pytest.mark.parametrize("options", [[], ["--project", "--user"]])
def test_a_note_of_neither_or_both_types_is_bad_input(project: Project, options: list[str]) -> None:
    result = project("add", "# Use pnpm", *options)
    assert (result.exit_code, "--project or --user" in result.stderr) == (2, True)
    assert not project.project_file.exists()


@pytest.mark.parametrize("message", ["", "#", "# #", "  ", "a\0b"])
def test_a_note_without_a_usable_text_is_bad_input(project: Project, message: str) -> None:
    assert project.error("add", message, "--project") == (2, "invalid_argument")
    assert not project.project_file.exists()


def test_a_notes_file_that_is_not_utf8_is_refused_and_left(project: Project) -> None:
    project.project_file.write_bytes(b"- caf\xe9\n")
    assert project.error("add", "# Use pnpm", "--project") == (2, "not_text")
    assert project.project_file.read_bytes() == b"- caf\xe9\n"


def test_a_folder_named_agents_md_is_refused(project: Project) -> None:
    project.project_file.mkdir()
    assert project.error("add", "# Use pnpm", "--project") == (2, "is_a_folder")


def test_a_project_folder_that_is_missing_is_bad_input(project: Project) -> None:
    assert project.cli.error("notes", "list", "--dir", str(project.folder / "nowhere")) == (2, "usage")


def on_a_terminal(project: Project, keys: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Run a notes command in a process whose keyboard has these keys waiting."""
    keyboard, terminal = os.openpty()
    os.write(keyboard, keys)
    command = [*warm(), "-m", "keepstone", "notes", *words, *project.places]
    done = subprocess.run(command, stdin=terminal, capture_output=True, timeout=60, check=False)
    os.close(keyboard)
    os.close(terminal)
    return done


@pytest.mark.parametrize(("key", "kind"), [(b"p", "Project"), (b"U", "User"), (b"xu", "User")])
@pytest.mark.requirement("notes.us1.hash-opens-the-selector", "notes.fr002.choice-of-project-or-user")
def test_on_a_terminal_a_key_chooses_whose_note_it_is(project: Project, key: bytes, kind: str) -> None:
    done = on_a_terminal(project, key, "add", "# Use pnpm")
    assert (done.returncode, b"[P]roject or the [U]ser?" in done.stderr) == (0, True)
    notes = Notes(project.folder, project.user_file).entries()
    assert [(note.content, note.type) for note in notes] == [("Use pnpm", kind)]


@pytest.mark.parametrize("key", [b"\x1b", b"\x1b[Aq", b"\n", b"x\n"])
def test_escape_and_an_empty_answer_save_no_note(project: Project, key: bytes) -> None:
    done = on_a_terminal(project, key, "add", "# Use pnpm")
    assert (done.returncode, b"nothing was saved" in done.stderr) == (1, True)
    assert Notes(project.folder, project.user_file).entries() == []


@pytest.mark.parametrize(("answer", "status", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_on_a_terminal_removing_a_note_asks_first(
    project: Project, answer: bytes, status: int, left: int
) -> None:
    project.write("Use pnpm")
    done = on_a_terminal(project, answer, "remove", "Use pnpm")
    assert (done.returncode, b"Remove Project:3  Use pnpm?" in done.stderr) == (status, True)
    assert len(Notes(project.folder).entries("Project")) == left


@pytest.mark.requirement("notes.us3.all-notes-are-listed")
def test_notes_are_listed_with_their_files_and_lines(project: Project) -> None:
    project.write("Use pnpm", "Tabs")
    project("add", "# My name is Alice", "--user")
    lines = [line.rstrip() for line in project("list").stdout.splitlines()]
    assert lines == [
        str(project.project_file),
        "  Project:3  Use pnpm",
        "  Project:4  Tabs",
        str(project.user_file),
        "  User:1  My name is Alice",
    ]


@pytest.mark.parametrize(
    ("options", "listed"),
    [([], ["Tabs", "Alice"]), (["--project"], ["Tabs"]), (["--user"], ["Alice"])],
)
def test_the_list_keeps_to_the_type_that_was_named(
    project: Project, options: list[str], listed: list[str]
) -> None:
    project.write("Tabs")
    project("add", "# Alice", "--user")
    assert [note["content"] for note in project.json("list", *options)["notes"]] == listed


def test_a_project_without_notes_says_so(project: Project) -> None:
    assert project("list").stdout == "no notes yet\n"
    assert project.json("list") == {"notes": []}
    assert list(project.folder.iterdir()) == []


def test_control_characters_of_a_note_do_not_reach_the_screen(project: Project) -> None:
    project.write("red \x1b[31m [bold]text[/bold]")
    assert r"red \x1b[31m [bold]text[/bold]" in project("list").stdout


@pytest.mark.parametrize("name", ["Tabs", "Project:4", "project:4"])
@pytest.mark.requirement("notes.us3.delete-removes-from-the-file")
def test_a_note_is_removed_by_its_text_or_its_line(project: Project, name: str) -> None:
    project.write("Use pnpm", "Tabs", "Short commits")
    document = project.json("remove", name, "--yes")
    assert (document["removed"], document["note"]["content"]) == (True, "Tabs")
    assert project.project_file.read_text("utf-8") == "## Memories\n\n- Use pnpm\n- Short commits\n"


@pytest.mark.parametrize("name", ["tabs", "Project:9", "User:3", "Project:", ""])
def test_a_note_that_is_not_there_is_not_found(project: Project, name: str) -> None:
    project.write("Tabs")
    assert project.error("remove", name, "--yes") == (1, "note_not_found")
    assert len(Notes(project.folder).entries("Project")) == 1


def test_a_text_that_two_notes_have_is_refused_with_their_lines(project: Project) -> None:
    project.write("Tabs")
    project("add", "# Tabs", "--user")
    result = project("remove", "Tabs", "--yes")
    assert (result.exit_code, "Project:3, User:1" in result.stderr) == (2, True)
    assert len(project.json("list")["notes"]) == 2


def test_removing_a_note_needs_yes_without_a_terminal(project: Project) -> None:
    project.write("Tabs")
    assert project.error("remove", "Tabs") == (2, "invalid_argument")
    assert len(project.json("list")["notes"]) == 1


@pytest.mark.requirement("notes.fr007.deduplication")
def test_dedupe_removes_what_an_earlier_note_says(project: Project) -> None:
    project.write("Use pnpm", "Tabs", "use pnpm.")
    shown = project("dedupe").stdout
    assert ("removed 1 note" in shown, "Project:5  use pnpm." in shown) == (True, True)
    assert project.project_file.read_text("utf-8") == "## Memories\n\n- Use pnpm\n- Tabs\n"


def test_a_dry_run_shows_what_dedupe_would_remove_and_keeps_it(project: Project) -> None:
    project.write("Use pnpm", "use pnpm.", "USE PNPM")
    before = project.project_file.read_bytes()
    planned = project.json("dedupe", "--dry-run")
    assert project.project_file.read_bytes() == before
    done = project.json("dedupe")
    assert (planned["dry_run"], done["dry_run"]) == (True, False)
    assert planned["notes"] == done["notes"]
    assert [note["line"] for note in done["notes"]] == [4, 5]


def test_dedupe_keeps_a_note_that_both_files_have(project: Project) -> None:
    project.write("Tabs")
    project("add", "# Tabs", "--user")
    for options in (["--dry-run"], []):
        assert project("dedupe", *options).stdout == "no duplicate notes\n"
    assert len(project.json("list")["notes"]) == 2


def test_show_prints_the_block_and_nothing_else(project: Project) -> None:
    project.write("Tabs")
    block = Notes(project.folder, project.user_file).prompt()
    assert project("show").stdout == block
    assert project.json("show") == {"text": block}


def test_show_keeps_to_its_budget_and_prefers_the_query(project: Project) -> None:
    project.write("Passkeys for sign-in", *(f"filler number {number}" for number in range(100)))
    text = project.json("show", "passkeys", "--budget", "100")["text"]
    assert ("Passkeys for sign-in" in text, len(text.encode()) <= 300) == (True, True)


@pytest.mark.parametrize("budget", ["-1", "many"])
def test_a_wrong_budget_of_notes_is_bad_input(project: Project, budget: str) -> None:
    assert project.error("show", "--budget", budget)[0] == 2


def test_show_without_notes_prints_nothing_for_a_prompt(project: Project) -> None:
    assert project("show").stdout == ""
    assert project.json("show") == {"text": ""}


@pytest.mark.parametrize("option", ["--home", "--agent", "--layout"])
def test_notes_have_neither_home_nor_agent(project: Project, option: str) -> None:
    assert project.error("list", option, "x") == (2, "usage")
    assert not project.cli.home.exists()


def test_the_users_file_may_be_named_by_the_environment(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEEPSTONE_USER_MEMORY", str(tmp_path / "mine.md"))
    result = project.cli("notes", "add", "# Alice", "--user", "--dir", str(project.folder), "--json")
    assert json.loads(result.stdout)["note"]["source"] == str(tmp_path / "mine.md")


def test_teach_writes_the_section_and_takes_it_out(project: Project) -> None:
    agents = project.project_file
    assert project.json("teach") == {"file": "AGENTS.md", "changed": True, "removed": False, "dry_run": False}
    assert "memory_search" in agents.read_text()
    assert project.json("teach")["changed"] is False
    assert project.json("teach", "--remove")["changed"] is True
    assert "memory_search" not in agents.read_text()
