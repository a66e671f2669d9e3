"""``notes import``, and the warning of a file that other agents do not read to its end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from keepstone import Notes
from keepstone.cli.notes import numbers_of

if TYPE_CHECKING:
    from .conftest import Command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a note and with a file of another agent, in which the command runs."""
    (tmp_path / "AGENTS.md").write_text("## Memories\n\n- Use pnpm\n", "utf-8")
    (tmp_path / "CLAUDE.md").write_text("- use pnpm.\n- Tabs\n- Be brief\n- Be kind\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(folder: Path) -> list[str]:
    return [note.content for note in Notes(folder).entries("Project")]


def test_import_adds_what_the_project_does_not_have(cli: Command, folder: Path) -> None:
    before = (folder / "CLAUDE.md").read_bytes()
    assert cli("notes", "import", "--yes").stdout == "added 3 notes to AGENTS.md\n"
    assert notes(folder) == ["Use pnpm", "Tabs", "Be brief", "Be kind"]
    assert (folder / "CLAUDE.md").read_bytes() == before


def test_a_dry_run_of_import_adds_nothing(cli: Command, folder: Path) -> None:
    lines = cli("notes", "import", "--dry-run").stdout.splitlines()
    assert lines[0] == str(folder / "CLAUDE.md")
    assert lines[1].split() == ["1", "as", f"{folder / 'AGENTS.md'}:3", "use", "pnpm."]
    assert lines[2].split() == ["2", "new", "Tabs"]
    assert lines[-1] == "3 bullets of 4 can be added; nothing was added"
    assert notes(folder) == ["Use pnpm"]


def test_import_tells_offers_and_added_notes_as_json(cli: Command, folder: Path) -> None:
    document = cli.json("notes", "import", "--yes")
    assert (document["dry_run"], len(document["offers"]), len(document["notes"])) == (False, 4, 3)
    assert document["offers"][0] == {
        "content": "use pnpm.",
        "source": str(folder / "CLAUDE.md"),
        "line": 1,
        "duplicate_of": f"{folder / 'AGENTS.md'}:3",
    }


def test_import_may_take_the_bullets_of_a_named_file(cli: Command, folder: Path) -> None:
    (folder / "rules.md").write_text("- From the rules\n", "utf-8")
    cli("notes", "import", "--from", "rules.md", "--yes")
    assert notes(folder) == ["Use pnpm", "From the rules"]


def test_a_second_import_finds_nothing_to_add(cli: Command, folder: Path) -> None:
    cli("notes", "import", "--yes")
    assert cli("notes", "import").stdout.endswith("0 bullets of 4 can be added; nothing was added\n")
    assert len(notes(folder)) == 4


def test_without_files_of_other_agents_import_says_so(cli: Command, folder: Path) -> None:
    (folder / "CLAUDE.md").unlink()
    assert cli("notes", "import", "--yes").stdout == "no bullets found in other agents' files\n"


@pytest.mark.usefixtures("folder")
def test_import_without_yes_or_a_terminal_is_bad_input(cli: Command) -> None:
    assert cli.error("notes", "import") == (2, "invalid_argument")


def test_a_named_file_that_is_not_utf8_is_refused(cli: Command, folder: Path) -> None:
    (folder / "rules.md").write_bytes(b"- caf\xe9\n")
    assert cli.error("notes", "import", "--from", "rules.md", "--yes") == (2, "not_text")
    assert notes(folder) == ["Use pnpm"]


@pytest.mark.parametrize(
    ("answer", "status", "added"),
    [
        (b"1,3\n", 0, ["Tabs", "Be kind"]),
        (b"all\n", 0, ["Tabs", "Be brief", "Be kind"]),
        (b"\n", 0, []),
        (b"4\n", 2, []),
    ],
)
def test_on_a_terminal_a_user_chooses_among_the_bullets(
    folder: Path, answer: bytes, status: int, added: list[str]
) -> None:
    keyboard, terminal = os.openpty()
    os.write(keyboard, answer)
    command = [sys.executable, "-m", "keepstone", "notes", "import"]
    done = subprocess.run(command, stdin=terminal, capture_output=True, timeout=60, check=False)
    os.close(keyboard)
    os.close(terminal)
    assert (done.returncode, b"  1  Tabs" in done.stderr) == (status, True)
    assert notes(folder) == ["Use pnpm", *added]


@pytest.mark.parametrize(
    ("answer", "numbers"), [("", []), ("2", [2]), ("1,3", [1, 3]), ("3 1-2,2", [1, 2, 3]), ("3-1", [])]
)
def test_an_answer_names_numbers_and_ranges(answer: str, numbers: list[int]) -> None:
    assert numbers_of(answer, 3) == numbers


@pytest.mark.parametrize("answer", ["0", "4", "-1", "1-", "some", "1-999999999999", "²"])
def test_an_answer_that_names_anything_else_is_refused(answer: str) -> None:
    with pytest.raises(ValueError, match="nothing was added"):
        numbers_of(answer, 3)


@pytest.mark.parametrize("words", [["list"], ["add", "# a new one", "--project"]])
def test_a_file_beyond_what_agents_read_is_warned_about(cli: Command, folder: Path, words: list[str]) -> None:
    (folder / "AGENTS.md").write_text("text\n" * 7000, "utf-8")
    result = cli("notes", *words)
    assert (result.exit_code, result.stderr.startswith("warning: AGENTS.md is 34.2 KiB")) == (0, True)


@pytest.mark.usefixtures("folder")
def test_a_file_that_agents_read_whole_is_not_warned_about(cli: Command) -> None:
    assert cli("notes", "list").stderr == ""
