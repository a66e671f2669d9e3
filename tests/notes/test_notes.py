import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepstone.errors import AccessDeniedError, IsAFolderError, NotTextError, PathEscapeError
from keepstone.notes.notes import MemoryEntry, Notes, SaveResult

ADD_MANY = """
import sys
from keepstone.notes.notes import Notes
notes = Notes(sys.argv[1])
sys.stdin.readline()
for number in range(25):
    notes.add(f"note {number} of {sys.argv[2]}", "Project")
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def notes(project: Path, tmp_path: Path) -> Notes:
    return Notes(project, tmp_path / "user.md")


def contents(notes: Notes, kind: str | None = None) -> list[str]:
    return [entry.content for entry in notes.entries(kind)]


@pytest.mark.requirement(
    "notes.us1.project-goes-to-agents-md",
    "notes.fr003.project-file-is-agents-md",
    "notes.fr005.notes-are-bullets",
    "notes.edge.missing-files-are-made",
)
def test_a_project_note_is_a_bullet_in_agents_md(notes: Notes, project: Path) -> None:
    result = notes.add("Use pnpm instead of npm", "Project")
    assert (project / "AGENTS.md").read_text() == "## Memories\n\n- Use pnpm instead of npm\n"
    assert (result.saved, result.duplicate_of) == (True, None)


@pytest.mark.requirement("notes.us2.user-goes-to-the-user-file")
def test_a_user_note_is_a_bullet_in_the_user_file(notes: Notes, tmp_path: Path) -> None:
    notes.add("My name is Alice", "User")
    assert (tmp_path / "user.md").read_text() == "- My name is Alice\n"


@pytest.mark.requirement("notes.fr004.user-file-is-global")
def test_the_user_file_is_in_the_home_unless_told_otherwise(
    project: Path, user_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Notes(project).add("a", "User").entry.source == str(user_folder / ".wave" / "memory.md")
    monkeypatch.setenv("KEEPSTONE_USER_MEMORY", str(project / "variable.md"))
    assert Notes(project).add("a", "User").entry.source == str(project / "variable.md")
    assert Notes(project, "~/mine.md").add("a", "User").entry.source == str(user_folder / "mine.md")


def test_the_paths_are_those_of_the_construction(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    notes = Notes()
    monkeypatch.chdir(project.parent)
    assert notes.add("a", "Project").entry.source == str(project / "AGENTS.md")


@pytest.mark.requirement("notes.us2.user-notes-reach-every-project")
def test_a_user_note_is_there_in_every_project(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    Notes(tmp_path / "one", tmp_path / "user.md").add("My name is Alice", "User")
    assert "My name is Alice" in Notes(tmp_path / "two", tmp_path / "user.md").prompt()


@pytest.mark.requirement("notes.us3.all-notes-are-listed", "notes.entity.memory-entry")
def test_all_notes_are_listed_with_their_places(notes: Notes, project: Path, tmp_path: Path) -> None:
    notes.add("ours", "Project")
    notes.add("mine", "User")
    assert notes.entries() == [
        MemoryEntry("ours", "Project", str(project / "AGENTS.md"), 3),
        MemoryEntry("mine", "User", str(tmp_path / "user.md"), 1),
    ]
    assert contents(notes, "User") == ["mine"]


def test_the_result_names_the_entry_as_it_is_listed(notes: Notes, project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"\xef\xbb\xbf# Rules\r\n\r\nBe kind.")
    result = notes.add("two\r\n\rlines\n", "Project")
    assert result.entry.content == "two\n\nlines"
    assert notes.entries() == [result.entry]


@pytest.mark.requirement("notes.edge.duplicates-are-reported")
def test_a_note_that_the_file_has_is_not_written_again(notes: Notes, project: Path) -> None:
    first = notes.add("Use pnpm", "Project").entry
    before = (project / "AGENTS.md").read_bytes()
    result = notes.add("  use\nPNPM. ", "Project")
    assert (result.saved, result.duplicate_of, result.entry) == (False, first, first)
    assert (project / "AGENTS.md").read_bytes() == before


def test_a_note_that_the_other_file_has_is_saved_and_named(notes: Notes) -> None:
    first = notes.add("Use pnpm", "User").entry
    result = notes.add("use pnpm.", "Project")
    assert (result.saved, result.duplicate_of) == (True, first)
    assert contents(notes) == ["use pnpm.", "Use pnpm"]


def test_an_unreadable_other_file_does_not_stop_a_note(
    notes: Notes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "user.md").write_bytes(b"\xff")
    assert notes.add("a", "Project").saved
    assert "is not UTF-8 at byte 0" in caplog.text


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1),
    st.sampled_from(["Project", "User"]),
)
def test_any_text_reads_back_as_it_was_given(text: str, kind: str) -> None:
    content = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    with tempfile.TemporaryDirectory() as folder:
        notes = Notes(folder, f"{folder}/user.md")
        if not content:
            with pytest.raises(ValueError, match="must not be empty"):
                notes.add(text, kind)
        else:
            assert notes.add(text, kind).entry.content == content
        assert contents(notes) == [content][: len(content)]


@pytest.mark.requirement("notes.us3.delete-removes-from-the-file")
def test_a_removed_note_is_gone_from_its_file_only(notes: Notes, project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"## Memories\r\n- a\r\n- b\r\n  more\r\n\r\ntext\r\n- c")
    assert notes.remove(notes.entries()[1])
    assert (project / "AGENTS.md").read_bytes() == b"## Memories\r\n- a\r\n\r\ntext\r\n- c"


def test_a_moved_note_is_removed_by_its_content(notes: Notes, tmp_path: Path) -> None:
    entry = notes.add("a", "User").entry
    (tmp_path / "user.md").write_text("# Mine\n\n- b\n- a\n")
    assert notes.remove(entry)
    assert not notes.remove(entry)
    assert (tmp_path / "user.md").read_text() == "# Mine\n\n- b\n"


def test_of_equal_notes_the_nearest_is_removed(notes: Notes, tmp_path: Path) -> None:
    (tmp_path / "user.md").write_text("- a\n- b\n- a\n")
    assert notes.remove(notes.entries()[2])
    assert (tmp_path / "user.md").read_text() == "- a\n- b\n"


def test_a_removed_note_can_be_added_where_it_was(notes: Notes) -> None:
    first, *_ = [notes.add(text, "Project").entry for text in ("a", "b", "c")]
    notes.remove(first)
    assert notes.add(first.content, first.type, first.line) == SaveResult(
        first, saved=True, duplicate_of=None
    )
    assert contents(notes) == ["a", "b", "c"]


@pytest.mark.parametrize(("line", "error"), [(-1, ValueError), (True, TypeError), ("3", TypeError)])
def test_anything_but_a_line_is_refused(notes: Notes, line: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="line must"):
        notes.add("a", "Project", line)
    assert notes.entries() == []


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_replaced_note_keeps_its_place_and_all_other_bytes(
    notes: Notes, project: Path, newline: str
) -> None:
    file, text = project / "AGENTS.md", "# Top\n\n## Memories\n\n* a\n* b\n  more\n* c\n\n## End\n* no"
    file.write_bytes(text.replace("\n", newline).encode())
    result = notes.replace(notes.entries()[1], "B\nand more")
    assert result is not None
    assert (result.saved, result.entry) == (True, notes.entries()[1])
    changed = text.replace("* b\n  more", "* B\n  and more")
    assert file.read_bytes() == changed.replace("\n", newline).encode()


def test_a_note_may_change_its_case_alone(notes: Notes) -> None:
    result = notes.replace(notes.add("use PNPM", "User").entry, "Use pnpm")
    assert result is not None
    assert result.saved
    assert contents(notes) == ["Use pnpm"]


def test_a_note_is_not_made_to_say_what_another_says(notes: Notes) -> None:
    first, second = (notes.add(text, "Project").entry for text in "ab")
    result = notes.replace(second, "A.")
    assert result is not None
    assert (result.saved, result.duplicate_of) == (False, first)
    assert contents(notes) == ["a", "b"]


def test_a_note_that_is_gone_is_not_replaced(notes: Notes) -> None:
    entry = notes.add("a", "Project").entry
    assert notes.replace(MemoryEntry("a", "Project", "/elsewhere/AGENTS.md", 1), "b") is None
    notes.remove(entry)
    assert notes.replace(entry, "b") is None
    assert contents(notes) == []


def test_a_note_of_another_project_is_not_removed(notes: Notes) -> None:
    entry = notes.add("a", "Project").entry
    assert not notes.remove(MemoryEntry("a", "Project", "/elsewhere/AGENTS.md", entry.line))
    assert contents(notes) == ["a"]


@pytest.mark.requirement("notes.fr007.deduplication")
def test_deduplicating_removes_later_notes_within_each_file(
    notes: Notes, project: Path, tmp_path: Path
) -> None:
    (project / "AGENTS.md").write_text("## Memories\n- a\n- b\n- A.\n")
    (tmp_path / "user.md").write_text("- a\n-  a\n")
    removed = notes.deduplicate()
    assert [(entry.content, entry.type, entry.line) for entry in removed] == [
        ("A.", "Project", 4),
        ("a", "User", 2),
    ]
    assert (contents(notes), notes.deduplicate("User")) == (["a", "b", "a"], [])


@pytest.mark.requirement("notes.us1.project-notes-reach-the-answer", "notes.fr006.prompt-combines-both")
def test_the_prompt_holds_both_files_as_they_are_now(notes: Notes, project: Path) -> None:
    (project / "AGENTS.md").write_text("# Rules\n\nRun make test.\n")
    notes.add("My name is Alice", "User")
    assert "Run make test." in notes.prompt()
    notes.add("Use pnpm", "Project")
    prompt = notes.prompt()
    assert prompt.index("Run make test.") < prompt.index("Use pnpm") < prompt.index("My name is Alice")


@pytest.mark.requirement("notes.edge.large-files-stay-in-budget")
def test_a_file_of_five_megabytes_stays_in_its_budget(notes: Notes, project: Path, tmp_path: Path) -> None:
    (project / "AGENTS.md").write_text("## Memories\n" + "- a project note of a few words\n" * 80_000)
    (tmp_path / "user.md").write_text("prose without a note\n\n" * 120_000 + "- My name is Alice\n")
    prompt = notes.prompt(budget=500, query="what is my name?")
    assert "My name is Alice" in prompt
    assert 1200 < len(prompt.encode()) <= 1500


@pytest.mark.requirement("notes.edge.concurrent-writers-lose-nothing")
def test_processes_that_add_at_once_lose_no_note(notes: Notes, project: Path) -> None:
    command = [sys.executable, "-c", ADD_MANY, str(project)]
    adders = [subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE) for number in range(4)]
    for adder in adders:
        assert adder.stdin
        adder.stdin.write(b"go\n")
        adder.stdin.flush()
    for adder in adders:
        adder.communicate(timeout=60)
    expected = {f"note {number} of {adder}" for number in range(25) for adder in range(4)}
    assert set(contents(notes)) == expected
    assert len(contents(notes)) == 100
    assert [path.name for path in project.iterdir()] == ["AGENTS.md"]


@pytest.mark.parametrize("text", ["", " \n\t", "\0", "a\0b", "\ud800", "a\udfff"])
def test_text_that_cannot_be_a_note_is_refused(notes: Notes, project: Path, text: str) -> None:
    with pytest.raises(ValueError, match="a note"):
        notes.add(text, "Project")
    assert list(project.iterdir()) == []


@pytest.mark.parametrize("kind", ["project", "user", "", "Both"])
def test_a_type_that_is_none_is_refused(notes: Notes, project: Path, kind: str) -> None:
    for call in (lambda: notes.add("a", kind), lambda: notes.entries(kind), lambda: notes.deduplicate(kind)):
        with pytest.raises(ValueError, match="must be 'Project' or 'User'"):
            call()
    assert list(project.iterdir()) == []


def test_arguments_of_a_wrong_type_are_refused(notes: Notes, project: Path) -> None:
    for call in (
        lambda: notes.add(b"a", "Project"),  # type: ignore[arg-type]
        lambda: notes.add("a", None),  # type: ignore[arg-type]
        lambda: notes.entries(1),  # type: ignore[arg-type]
        lambda: notes.remove("a"),  # type: ignore[arg-type]
        lambda: notes.prompt(1.5),  # type: ignore[arg-type]
        lambda: notes.prompt(budget=True),
        lambda: notes.prompt(1, b"a"),  # type: ignore[arg-type]
        lambda: Notes(1),  # type: ignore[arg-type]
        lambda: Notes(".", b"a"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match="must be"):
            call()
    assert list(project.iterdir()) == []


def test_negative_budgets_and_bad_paths_are_refused(notes: Notes) -> None:
    for call in (lambda: notes.prompt(-1), lambda: Notes(""), lambda: Notes(".", "a\0b")):
        with pytest.raises(ValueError, match="must"):
            call()


def test_a_file_that_is_not_utf8_is_refused_untouched(notes: Notes, project: Path) -> None:
    (project / "AGENTS.md").write_bytes(b"# R\xe8gles\n- a\n")
    entry = MemoryEntry("a", "Project", str(project / "AGENTS.md"), 2)
    for call in (lambda: notes.add("b", "Project"), notes.entries, notes.prompt, lambda: notes.remove(entry)):
        with pytest.raises(NotTextError, match="at byte 3"):
            call()
    assert (project / "AGENTS.md").read_bytes() == b"# R\xe8gles\n- a\n"


def test_a_read_only_file_keeps_its_notes(notes: Notes, project: Path) -> None:
    entry = notes.add("a", "Project").entry
    (project / "AGENTS.md").chmod(0o444)
    for call in (lambda: notes.add("b", "Project"), lambda: notes.remove(entry)):
        with pytest.raises(AccessDeniedError, match="read-only"):
            call()
    assert contents(notes) == ["a"]


def test_a_folder_named_agents_md_is_refused(notes: Notes, project: Path) -> None:
    (project / "AGENTS.md").mkdir()
    for call in (lambda: notes.add("b", "Project"), notes.entries, notes.prompt):
        with pytest.raises(IsAFolderError, match="is a folder"):
            call()


def test_a_link_out_of_the_project_reaches_no_prompt(tmp_path: Path) -> None:
    project, secret = tmp_path / "project", tmp_path / ".netrc"
    project.mkdir()
    secret.write_text("password hunter2\n")
    (project / "AGENTS.md").symlink_to(secret)
    notes = Notes(project, user_file=tmp_path / "memory.md")
    for use in (notes.prompt, notes.entries, notes.sources, lambda: notes.add("x", "Project")):
        with pytest.raises(PathEscapeError) as refused:
            use()
        assert "hunter2" not in str(refused.value)
    assert secret.read_text() == "password hunter2\n"
