"""A message that begins with ``#``: where should it go?"""

from __future__ import annotations

from pathlib import Path

from tests.chat.model_server import ModelServer
from tests.tui.terminal import Chat, Terminal

from keepstone import Notes


def contents(chat: Chat, kind: str) -> list[str]:
    return [entry.content for entry in chat.notes.entries(kind)]


def test_enter_saves_a_note_for_the_project(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm instead of npm")
        assert "Save this note" in terminal.text
        await terminal.press("enter")
        assert "Saved as a Project note" in terminal.text
        assert "AGENTS.md:3" in terminal.text.replace(" ", "")

    chat.run(steps)
    assert "- Use pnpm instead of npm" in (chat.folder / "AGENTS.md").read_text()


def test_the_arrow_key_chooses_the_user_file(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# My name is Alice")
        await terminal.press("down", "enter")
        assert "Saved as a User note" in terminal.text

    chat.run(steps)
    assert (contents(chat, "User"), contents(chat, "Project")) == (["My name is Alice"], [])


def test_escape_saves_nothing_and_gives_the_text_back(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm")
        await terminal.press("escape")
        assert "Save this note" not in terminal.text
        assert "# Use pnpm" in terminal.text

    chat.run(steps)
    assert chat.notes.entries() == []


def test_a_note_can_be_corrected_before_it_is_saved(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpn")
        await terminal.press("shift+tab", "end", "backspace", "m", "tab", "enter")

    chat.run(steps)
    assert contents(chat, "Project") == ["Use pnpm"]


def test_a_note_without_text_keeps_the_selector_open(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# x")
        await terminal.press("shift+tab", "end", "backspace", "tab", "enter")
        assert "a note must not be empty" in terminal.text
        await terminal.press("escape")

    chat.run(steps)
    assert chat.notes.entries() == []


def test_a_note_that_is_there_already_is_named(chat: Chat) -> None:
    chat.notes.add("Use pnpm", "Project")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# use PNPM.")
        await terminal.press("enter")
        assert "Not saved: " in terminal.text
        assert "already says “Use pnpm”" in terminal.text

    chat.run(steps)
    assert contents(chat, "Project") == ["Use pnpm"]


def test_a_note_that_the_other_file_has_says_so(chat: Chat) -> None:
    chat.notes.add("Use pnpm", "User")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm")
        await terminal.press("enter")
        assert "The User notes say the same" in terminal.text

    chat.run(steps)
    assert contents(chat, "Project") == ["Use pnpm"]


def test_a_file_that_cannot_be_written_leaves_the_other_choice(chat: Chat) -> None:
    (chat.folder / "AGENTS.md").mkdir()

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm")
        await terminal.press("enter")
        assert "folder" in terminal.text
        await terminal.press("down", "enter")
        assert "Saved as a User note" in terminal.text

    chat.run(steps)
    assert contents(chat, "User") == ["Use pnpm"]


def test_a_file_that_is_too_long_for_other_agents_is_reported(chat: Chat) -> None:
    chat.notes.add("x" * 33_000, "Project")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm")
        await terminal.press("enter")
        assert "AGENTS.md is 32.3 KiB; some agents, such as Codex, stop reading at 32.0 KiB" in terminal.text

    chat.run(steps, size=(150, 24))


def test_hash_alone_is_neither_a_note_nor_stored(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.say("#")

    chat.run(steps)
    assert chat.said() == []
    assert chat.notes.entries() == []


def test_a_note_of_several_lines_is_one_bullet(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press(*"# one", "ctrl+j", *"two", "enter")
        await terminal.press("enter")

    chat.run(steps)
    assert contents(chat, "Project") == ["one\ntwo"]


def test_the_model_knows_a_note_in_the_very_next_request(chat: Chat, server: ModelServer) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        await terminal.enter("# Use pnpm")
        await terminal.press("enter")
        await terminal.enter("# My name is Alice")
        await terminal.press("down", "enter")
        await terminal.say("And now?")

    chat.run(steps)
    assert "pnpm" not in server.prompts[0]
    assert all(words in server.prompts[1] for words in ("Use pnpm", "My name is Alice"))


def reader(prompt: str) -> str:
    """Answer as a model would that has read its prompt."""
    tool, name = ("pnpm" if "Use pnpm" in prompt else "npm", "Alice" if "Alice" in prompt else "you")
    return f"{tool} it is, {name}!"


def test_answers_use_notes_at_once_and_the_users_in_every_folder(
    chat: Chat, server: ModelServer, tmp_path: Path
) -> None:
    server.replies = [("list_files", {}), reader]

    async def here(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm")
        await terminal.press("enter")
        await terminal.enter("# My name is Alice")
        await terminal.press("down", "enter")
        await terminal.say("Which package manager?")
        assert "pnpm it is, Alice!" in terminal.text

    async def elsewhere(terminal: Terminal) -> None:
        await terminal.say("Which package manager?")
        assert " npm it is, Alice!" in terminal.text

    chat.run(here)
    (tmp_path / "elsewhere").mkdir()
    chat.notes, chat.session = Notes(tmp_path / "elsewhere"), chat.agent.session("other")
    chat.run(elsewhere)
    assert ["Use pnpm" in prompt for prompt in server.prompts] == [True, True, False]
    assert all("My name is Alice" in prompt for prompt in server.prompts)


def test_without_a_model_the_answer_quotes_the_note(chat: Chat, tmp_path: Path) -> None:
    chat.notes.add("Use pnpm instead of npm", "Project")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("pnpm or npm?")
        assert "(offline, no model)" in terminal.text
        assert "“Use pnpm instead of npm”" in terminal.text

    chat.run(steps)
    assert tmp_path.exists()


def test_the_chosen_place_has_a_mark_and_not_only_a_colour(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("# Use pnpm")
        assert "▌ Project" in terminal.text
        await terminal.press("down")
        assert "▌ User" in terminal.text
        assert "▌ Project" not in terminal.text

    chat.run(steps)
