"""The page of sessions: open, begin, clear, delete."""

from __future__ import annotations

import re

from tests.tui.terminal import Chat, Terminal


def ids(chat: Chat) -> list[str]:
    return [info.id for info in chat.agent.sessions()]


def prepared(chat: Chat) -> None:
    chat.agent.session("old").add("message", {"role": "user", "content": "said long ago"})
    chat.session.add("message", {"role": "user", "content": "said now"})


def test_sessions_are_listed_with_change_and_size(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        assert "main (this one)" in terminal.text
        assert all(words in terminal.text for words in ("old", " B", "1 entry"))

    chat.run(steps)


def test_sessions_begin_with_their_title_and_are_readable_in_50_columns(chat: Chat) -> None:
    old = chat.agent.session("0f0e1a9c-8a66-7d3a-b1e4-9e5ad287121a")
    old.add("decision", {"content": "the database is PostgreSQL"})
    old.set_title("Choosing a database")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        words = re.sub(r"[▌ ]+", " ", terminal.text)
        assert f"Choosing a database {old.id} 20" in words

    chat.run(steps, size=(50, 30))


def test_sessions_are_known_by_their_last_words(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        assert "user: said long ago" in terminal.text

    chat.run(steps)


def test_escape_goes_on_with_the_session_as_before(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("down", "escape")
        assert "> said now" in terminal.text

    chat.run(steps)
    assert len(ids(chat)) == 2


def test_enter_opens_a_session_with_its_turns(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("down", "enter")
        assert "said long ago" in terminal.text
        assert "said now" not in terminal.text
        await terminal.say("more")

    chat.run(steps)
    assert [entry.text for entry in chat.agent.session("old").entries()][:2] == [
        "user: said long ago",
        "user: more",
    ]


def test_a_new_session_begins_empty(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("n")
        assert "said now" not in terminal.text
        await terminal.say("fresh")

    chat.run(steps)
    assert len(ids(chat)) == 3


def test_clearing_asks_first_and_empties_the_session(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("c", "n")
        assert chat.said() == ["user: said now"]
        await terminal.press("c", "down", "enter")
        assert "Cleared main" in terminal.text
        await terminal.press("escape")
        assert "said now" not in terminal.text

    chat.run(steps)
    assert (chat.said(), "main" in ids(chat)) == ([], True)


def test_deleting_asks_first_and_removes_the_session(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("down", "d")
        assert "Delete session old with its 1 entry for good?" in terminal.text
        await terminal.press("enter")
        assert "old" in ids(chat)
        await terminal.press("d", "y")
        assert "Deleted old" in terminal.text

    chat.run(steps)
    assert ids(chat) == ["main"]


def test_deleting_the_session_on_the_screen_begins_another(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("d", "y", "escape")
        assert "said now" not in terminal.text
        await terminal.say("fresh")

    chat.run(steps)
    assert "main" not in ids(chat)
    assert len(ids(chat)) == 2


def test_the_filter_narrows_sessions_as_one_types(chat: Chat) -> None:
    prepared(chat)
    chat.agent.session("old").set_title("Ferry timetable")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("slash", *"ferry")
        assert "Ferry timetable" in terminal.text
        assert "said now" not in terminal.text
        await terminal.press("enter", "enter")
        assert "> said long ago" in terminal.text

    chat.run(steps)


def test_a_filter_that_nothing_passes_says_so(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("slash", *"zebra")
        assert "No sessions." in terminal.text

    chat.run(steps)


def test_a_session_is_renamed_and_keeps_its_id(chat: Chat) -> None:
    prepared(chat)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("down", "r", *"Ferry talk", "enter")
        await terminal.until("Renamed.")
        assert "Ferry talk" in terminal.text

    chat.run(steps)
    (found,) = chat.agent.session_summaries(["old"])
    assert (found.id, found.title) == ("old", "Ferry talk")


def test_a_rename_that_is_cancelled_keeps_the_title(chat: Chat) -> None:
    prepared(chat)
    chat.agent.session("old").set_title("Kept")

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/sessions")
        await terminal.press("down", "r", *"Other", "escape")

    chat.run(steps)
    assert chat.agent.session_summaries(["old"])[0].title == "Kept"
