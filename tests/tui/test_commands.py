"""What may be typed after a slash."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.chat.model_server import ModelServer
from tests.tui.terminal import Chat, Terminal

from keepstone.tui.app import ChatApp
from keepstone.tui.commands import COMMANDS, Typed, command_of, help_text
from keepstone.tui.composer import Composer


@given(st.text())
def test_only_a_slash_and_a_word_make_a_command(text: str) -> None:
    typed = command_of(text)
    assert typed is None or text.startswith(f"/{typed.name}")
    assert typed is None or typed.name.isalpha()


@pytest.mark.parametrize("text", ["/usr/bin is full", " /help", "help", "/", "/2", "/Help"])
def test_an_ordinary_message_is_not_a_command(text: str) -> None:
    assert command_of(text) is None


def test_what_follows_a_command_is_its_argument() -> None:
    assert command_of("/recall  which one? ") == Typed("recall", "which one?")


def test_every_command_is_in_the_help_and_does_something() -> None:
    for name in COMMANDS:
        assert f"/{name}" in help_text()
        assert hasattr(ChatApp, f"_do_{name}")


def test_the_help_opens_and_escape_closes_it(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/help")
        assert "A message that starts with # is a note" in terminal.text
        await terminal.press("escape")
        assert "Write a message" not in terminal.text

    chat.run(steps)


def test_an_unknown_command_is_reported_and_not_sent(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/forgit x")
        assert "unknown command /forgit" in terminal.text

    chat.run(steps)
    assert chat.said() == []


@pytest.mark.parametrize(
    ("line", "words"), [("/recall", "an argument is missing"), ("/help me", "takes no argument")]
)
def test_a_command_that_is_typed_wrong_says_how(chat: Chat, line: str, words: str) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter(line)
        assert words in terminal.text

    chat.run(steps)


def test_recall_shows_hits_with_their_reasons(chat: Chat) -> None:
    chat.agent.session("old").add("decision", {"content": "the database is PostgreSQL"})

    async def steps(terminal: Terminal) -> None:
        await terminal.say("/recall database")
        assert "1. the database is PostgreSQL" in terminal.text
        assert "decision session old" in terminal.text
        assert "words: database" in terminal.text

    chat.run(steps)


def test_hits_name_the_title_of_their_session(chat: Chat) -> None:
    old = chat.agent.session("0f0e1a9c-8a66-7d3a-b1e4-9e5ad287121a")
    old.add("decision", {"content": "the database is PostgreSQL"})
    old.set_title("Choosing a database")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("/recall database")
        assert "session “Choosing a database”" in terminal.text
        assert old.id not in terminal.text

    chat.run(steps)


def test_context_shows_the_prompt_that_was_sent(chat: Chat, server: ModelServer) -> None:
    chat.notes.add("Use pnpm", "Project")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        await terminal.say("/context")
        assert "System prompt of the last request" in terminal.text
        shown = terminal.text.replace(" ", "")
        assert "".join(server.prompts[0].split()) in shown

    chat.run(steps, size=(100, 120))


def test_context_before_the_first_message_shows_what_would_be_sent(chat: Chat) -> None:
    chat.notes.add("Use pnpm", "Project")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("/context")
        assert "of the next request" in terminal.text

    chat.run(steps)


def test_another_agent_knows_nothing_of_the_first(chat: Chat) -> None:
    chat.agent.session("old").add("fact", {"content": "the safe is behind the clock"})

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/agent other")
        assert "keepstone · other" in terminal.text
        await terminal.say("Where is the safe?")
        assert "I remember nothing about that" in terminal.text

    chat.run(steps)
    assert chat.home.agent("other").sessions()


def test_an_agent_can_be_chosen_from_a_list(chat: Chat) -> None:
    chat.home.agent("other").session("s").add("fact", {"content": "x"})

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/agent")
        await terminal.press("down", "enter")
        assert "keepstone · other" in terminal.text

    chat.session.add("fact", {"content": "y"})
    chat.run(steps)


def test_a_name_that_no_agent_can_have_is_refused(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/agent ../x")
        assert "keepstone · default" in terminal.text
        assert "!" in terminal.text

    chat.run(steps)


def test_the_theme_changes_between_dark_and_light(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        dark = terminal.app.export_screenshot()
        await terminal.enter("/theme")
        assert terminal.app.theme == "keepstone-light"
        assert terminal.app.export_screenshot() != dark

    chat.run(steps)


def test_quit_leaves_and_names_the_session(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        await terminal.enter("/quit")
        await terminal.settle()

    assert chat.run(steps) == "main"


def test_forget_purges_after_a_question(chat: Chat, tmp_path: Path) -> None:
    chat.agent.session("old").add("fact", {"content": "the code is 4711 tulip"})

    async def steps(terminal: Terminal) -> None:
        await terminal.say("/forget tulip")
        await terminal.press("enter")
        assert "Remove every byte of this entry?" in terminal.text
        await terminal.press("n")
        assert chat.agent.recall("tulip")
        await terminal.press("d", "y")
        assert "Purged" in terminal.text
        await terminal.press("escape")

    chat.run(steps)
    chat.home.close()
    assert not any(b"tulip" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_what_was_purged_is_gone_from_the_screen(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.say("the code is tulip")
        await terminal.say("/forget tulip")
        await terminal.press("enter", "y", "escape")
        assert "tulip" not in terminal.text

    chat.run(steps)


def test_what_was_purged_is_gone_from_the_prompt_that_context_shows(chat: Chat, server: ModelServer) -> None:
    chat.agent.session("old").add("fact", {"content": "the code is tulip"})

    async def steps(terminal: Terminal) -> None:
        await terminal.say("What is the code?")
        assert "tulip" in server.prompts[0]
        await terminal.say("/forget the code is")
        await terminal.press("enter", "y", "escape")
        await terminal.say("/context")
        assert "System prompt" in terminal.text
        assert "tulip" not in terminal.text

    chat.run(steps, size=(100, 60))
    assert not chat.agent.recall("tulip")


def test_what_was_purged_cannot_be_brought_back_by_undo(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press(*"tulip")
        await terminal.say("")
        await terminal.say("/forget tulip")
        await terminal.press("enter", "y", "escape", "ctrl+z", "ctrl+z", "ctrl+z")
        assert "tulip" not in terminal.text

    chat.run(steps)


def test_what_was_cleared_is_gone_from_the_prompt_that_context_shows(chat: Chat, server: ModelServer) -> None:
    chat.agent.session("old").add("fact", {"content": "the code is tulip"})

    async def steps(terminal: Terminal) -> None:
        await terminal.say("What is the code?")
        await terminal.enter("/sessions")
        await terminal.press("down", "c", "y", "escape")
        await terminal.say("/context")
        assert "System prompt" in terminal.text
        assert "tulip" not in terminal.text

    chat.run(steps, size=(100, 60))
    assert server.asked


def test_a_bare_mark_is_not_sent(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("#")
        assert "write the note behind the #" in terminal.text

    chat.run(steps)
    assert chat.said() == []


def test_commands_are_offered_as_a_slash_is_typed(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press("/")
        assert "/agent [NAME]" in terminal.text
        await terminal.press(*"re")
        assert "search memory, with explanations" in terminal.text
        assert "/agent [NAME]" not in terminal.text
        await terminal.press(*"call who?")
        assert "search memory, with explanations" not in terminal.text

    chat.run(steps)


@pytest.mark.parametrize(
    ("keys", "completed"),
    [
        (["tab"], "/recall "),
        (["enter"], "/recall "),
        (["down", "tab"], "/retry"),
        (["down", "down", "tab"], "/recall "),
    ],
)
def test_a_chosen_command_is_completed(chat: Chat, keys: list[str], completed: str) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press("/", "r", "e", *keys)
        assert terminal.app.query_one(Composer).text == completed

    chat.run(steps)
    assert chat.said() == []


def test_a_completed_command_runs_with_the_next_enter(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press("/", "m", "enter", "enter")
        assert "Memory: this project's notes" in terminal.text

    chat.run(steps)
