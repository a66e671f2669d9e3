"""The memory manager: all notes of both files."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.tui.terminal import Chat, Terminal

from keepstone.errors import AccessDeniedError
from keepstone.tui.memory import edit


@pytest.fixture(autouse=True)
def three_notes(chat: Chat) -> None:
    chat.notes.add("Use pnpm instead of npm", "Project")
    chat.notes.add("Deploy on Fridays never", "Project")
    chat.notes.add("My name is Alice", "User")


def contents(chat: Chat) -> list[str]:
    return [entry.content for entry in chat.notes.entries()]


def test_all_notes_are_listed_with_their_source(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        assert all(content in terminal.text for content in contents(chat))
        assert "AGENTS.md:3" in terminal.text
        assert "memory.md:1" in terminal.text

    chat.run(steps, size=(150, 24))


def test_what_is_typed_filters_the_list(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press(*"fri never")
        assert "Deploy on Fridays never" in terminal.text
        assert "pnpm" not in terminal.text
        await terminal.press(*" zzz")
        assert "No matching notes" in terminal.text

    chat.run(steps)


def test_a_deleted_note_comes_back_by_undo(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("delete")
        assert contents(chat) == ["Deploy on Fridays never", "My name is Alice"]
        assert "Ctrl+Z restores it" in terminal.text
        await terminal.press("ctrl+z")
        assert "Saved as a Project note" in terminal.text

    chat.run(steps)
    assert contents(chat) == ["Use pnpm instead of npm", "Deploy on Fridays never", "My name is Alice"]


def test_a_note_is_edited_in_place_and_the_edit_undone(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("enter", *" or yarn", "enter")
        await terminal.until("Changed. Ctrl+Z undoes it.")
        assert contents(chat)[0] == "Use pnpm instead of npm or yarn"
        await terminal.press("ctrl+z")

    chat.run(steps)
    assert contents(chat) == ["Use pnpm instead of npm", "Deploy on Fridays never", "My name is Alice"]


def test_an_edit_that_is_cancelled_changes_nothing(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("enter", *"xyz", "escape")
        assert "Use pnpm instead of npm" in terminal.text

    chat.run(steps)
    assert contents(chat)[0] == "Use pnpm instead of npm"


def test_an_edit_to_what_another_note_says_is_refused(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("enter", *["backspace"] * 30, *"Deploy on Fridays never", "enter")
        await terminal.until("already says the same")

    chat.run(steps)
    assert contents(chat)[:2] == ["Use pnpm instead of npm", "Deploy on Fridays never"]


def test_undo_without_a_deletion_says_so(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("ctrl+z")
        assert "Nothing to undo" in terminal.text

    chat.run(steps)


def test_a_note_that_is_gone_already_is_reported(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        chat.notes.remove(chat.notes.entries()[0])
        await terminal.press("delete")
        assert "It no longer exists" in terminal.text

    chat.run(steps)
    assert contents(chat) == ["Deploy on Fridays never", "My name is Alice"]


def test_escape_closes_the_list_and_changes_nothing(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("escape")
        assert "Memory:" not in terminal.text

    chat.run(steps)
    assert len(contents(chat)) == 3


def test_a_terminal_that_cannot_be_lent_is_reported(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("ctrl+o")
        assert "cannot run an editor" in terminal.text

    chat.run(steps)


def test_the_editor_gets_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "notes file.md"
    program = tmp_path / "edit.py"
    program.write_text("import sys, pathlib; pathlib.Path(sys.argv[1]).write_text('edited')")
    monkeypatch.setenv("EDITOR", f"{sys.executable} {program}")
    monkeypatch.delenv("VISUAL", raising=False)
    assert (edit(str(path)), path.read_text()) == ("", "edited")


@pytest.mark.parametrize(
    ("editor", "words"), [("/no/such/editor", "cannot run"), ("false", "status 1"), ('"', "cannot")]
)
def test_an_editor_that_fails_is_reported(editor: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", editor)
    assert words in edit("x")


def test_a_file_that_cannot_be_read_is_reported_on_the_page(chat: Chat) -> None:
    (chat.folder / "AGENTS.md").write_bytes(b"\xff")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        assert "is not UTF-8" in terminal.text

    chat.run(steps)


def test_a_note_that_cannot_be_deleted_stays_listed(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> bool:
        raise AccessDeniedError("the file is read-only")

    monkeypatch.setattr(chat.notes, "remove", refuse)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("delete")
        assert "the file is read-only" in terminal.text

    chat.run(steps)
    assert len(contents(chat)) == 3
