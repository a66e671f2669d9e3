"""Messages, answers, and what goes wrong between them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from tests.chat.model_server import ModelServer
from tests.tui.terminal import Chat, Terminal
from textual import events
from textual.widgets import Input, TextArea
from textual.widgets._toast import Toast

from keepstone.chat import ModelChoice, choose
from keepstone.chat.messages import Request
from keepstone.recall import pipeline
from keepstone.tui.composer import Composer


def test_a_message_and_its_answer_are_shown_and_stored(chat: Chat, server: ModelServer) -> None:
    server.replies = ["PostgreSQL it is."]

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Which database?")
        assert "> Which database?" in terminal.text
        assert "PostgreSQL it is." in terminal.text

    chat.run(steps)
    assert chat.said() == ["user: Which database?", "assistant: PostgreSQL it is. "]


def test_control_j_begins_a_new_line_of_the_message(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press(*"one", "ctrl+j", *"two", "enter")
        await terminal.settle()

    chat.run(steps)
    assert chat.said()[0] == "user: one\ntwo"


def test_an_answer_is_shown_while_it_comes_and_escape_stops_it(chat: Chat, server: ModelServer) -> None:
    server.held.clear()

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Hi")
        await terminal.until("Hello.")
        await terminal.press("escape")
        await terminal.settle()
        assert "Stopped. The partial answer is kept" in terminal.text

    chat.run(steps)
    assert chat.session.entries()[-1].data["cut"] == "stopped"


def test_control_c_stops_an_answer_and_leaves_the_chat_running(chat: Chat, server: ModelServer) -> None:
    server.held.clear()

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Hi")
        await terminal.until("Hello.")
        await terminal.press("ctrl+c")
        await terminal.settle()
        assert "Stopped. The partial answer is kept" in terminal.text

    assert chat.run(steps) is None
    assert chat.said() == ["user: Hi", "assistant: Hello. "]


def test_control_c_twice_leaves_the_chat(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        await terminal.press("ctrl+c")
        await terminal.until("Press Ctrl+C again to leave")
        await terminal.press("ctrl+c")

    assert chat.run(steps) == "main"


def test_control_c_once_keeps_the_draft_and_the_input_uncovered(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press(*"draft", "ctrl+c")
        await terminal.until("Press Ctrl+C again to leave")
        assert terminal.app.query_one(Composer).text == "draft"
        assert not terminal.app.screen.query(Toast)

    assert chat.run(steps) is None


def test_control_c_on_a_page_says_how_to_leave_in_its_line_of_keys(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter("/memory")
        await terminal.press("ctrl+c")
        await terminal.until("Press Ctrl+C again to leave")
        assert not terminal.app.screen.query(Toast)

    chat.run(steps)


def test_up_recalls_earlier_messages_and_down_the_draft(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        field = terminal.app.query_one(Composer)
        await terminal.say("the first one")
        await terminal.say("the second one")
        await terminal.press(*"new", "up")
        assert field.text == "the second one"
        await terminal.press("up", "up")
        assert field.text == "the first one"
        await terminal.press("down", "down")
        assert field.text == "new"

    chat.run(steps)


def test_up_recalls_messages_of_a_session_that_is_continued(chat: Chat) -> None:
    chat.session.add("message", {"role": "user", "content": "said yesterday"})

    async def steps(terminal: Terminal) -> None:
        await terminal.press("up")
        assert terminal.app.query_one(Composer).text == "said yesterday"

    chat.run(steps)


def test_up_moves_within_a_message_of_several_lines_first(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        field = terminal.app.query_one(Composer)
        await terminal.say("before")
        await terminal.press("a", "ctrl+j", "b", "up")
        assert field.text == "a\nb"
        await terminal.press("up")
        assert field.text == "before"

    chat.run(steps)


def test_control_c_copies_what_is_selected(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.press(*"walnut", "shift+home", "ctrl+c")
        assert terminal.app.clipboard == "walnut"

    chat.run(steps)


def test_a_new_conversation_says_what_to_do_next(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        assert "# Use pnpm, not npm saves a note" in terminal.text
        await terminal.say("Hi")

    async def again(terminal: Terminal) -> None:
        assert "saves a note" not in terminal.text

    chat.run(steps)
    chat.run(again)


@pytest.mark.parametrize(("line", "keys"), [("", []), ("# x", ["shift+tab"]), ("/memory", [])])
def test_pasted_control_characters_reach_no_field(chat: Chat, line: str, keys: list[str]) -> None:
    async def steps(terminal: Terminal) -> None:
        await terminal.enter(line)
        await terminal.press(*keys)
        terminal.app.post_message(events.Paste("a\x1b[31m\x9bred\x07\tb"))
        await terminal.until("a[31mred")
        field = terminal.app.focused
        assert isinstance(field, Input | TextArea)
        text = field.value if isinstance(field, Input) else field.text
        assert "a[31mred\tb" in text

    chat.run(steps)


def test_a_page_may_be_read_while_an_answer_comes(chat: Chat, server: ModelServer) -> None:
    server.held.clear()

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Hi")
        await terminal.until("An answer is coming … · Esc stop")
        await terminal.enter("/help")
        server.held.set()
        await terminal.settle()
        await terminal.press("escape")
        assert "Hello." in terminal.text
        assert "An answer is coming" not in terminal.text

    chat.run(steps)


def test_a_message_waits_in_its_field_while_an_answer_comes(chat: Chat, server: ModelServer) -> None:
    server.held.clear()

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Hi")
        await terminal.until("Hello.")
        await terminal.enter("second")
        assert "An answer is still coming" in terminal.text
        assert "second" in terminal.text
        server.held.set()
        await terminal.settle()
        await terminal.press("enter")
        await terminal.settle()

    chat.run(steps)
    assert [words for words in chat.said() if words.startswith("user")] == ["user: Hi", "user: second"]


def test_leaving_in_mid_answer_keeps_what_came(chat: Chat, server: ModelServer) -> None:
    server.held.clear()

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Hi")
        await terminal.until("Hello.")
        await terminal.press("ctrl+q")

    assert chat.run(steps) == "main"
    assert chat.said() == ["user: Hi", "assistant: Hello. "]


@pytest.mark.parametrize(
    ("status", "words"), [(401, "rejected the key (401)"), (429, "(429)"), (500, "failed (500)")]
)
def test_a_refusal_is_shown_and_retry_asks_again(
    chat: Chat, server: ModelServer, status: int, words: str
) -> None:
    server.status = status

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        assert words in terminal.text
        server.status = 200
        await terminal.say("/retry")
        assert "Hello." in terminal.text

    chat.run(steps)
    assert chat.said() == ["user: Hi", "assistant: Hello. "]


def test_a_server_that_is_gone_is_reported_and_loses_no_message(chat: Chat) -> None:
    pytest.importorskip("openai")
    chat.choice = choose("http://127.0.0.1:1/v1?model=m")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        assert "cannot be reached" in terminal.text

    chat.run(steps)
    assert chat.said() == ["user: Hi"]


def test_a_server_that_keeps_silent_is_given_up_and_can_be_asked_again(
    chat: Chat, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keepstone.chat.openai_model.SILENCE", 0.2)
    server.held.clear()

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        assert "timed out" in terminal.text
        server.held.set()
        await terminal.say("/retry")
        assert terminal.text.count("Hello.") == 2

    chat.run(steps)
    assert chat.said() == ["user: Hi", "assistant: Hello. ", "assistant: Hello. "]


@pytest.mark.parametrize("nonsense", [b"<html>Login</html>", b"data: {broken\n\n"])
def test_an_unusable_answer_is_reported_and_can_be_retried(
    chat: Chat, server: ModelServer, nonsense: bytes
) -> None:
    server.nonsense = nonsense

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        assert "did not finish" in terminal.text
        server.nonsense = b""
        await terminal.say("/retry")
        assert "Hello." in terminal.text

    chat.run(steps)
    assert chat.said() == ["user: Hi", "assistant: Hello. "]


def test_an_answer_that_breaks_off_is_marked_also_when_it_is_read_again(
    chat: Chat, server: ModelServer
) -> None:
    server.cut = True

    async def steps(terminal: Terminal) -> None:
        if not chat.said():
            await terminal.say("Hi")
        assert "Hello." in terminal.text
        assert "/retry asks again" in terminal.text

    chat.run(steps)
    chat.run(steps)


def test_the_use_of_a_tool_is_shown(chat: Chat, server: ModelServer) -> None:
    server.replies = [("remember", {"text": "Alice prefers tea"}), "Noted."]

    async def steps(terminal: Terminal) -> None:
        await terminal.say("I prefer tea")
        assert "· uses remember" in terminal.text
        assert "Noted." in terminal.text

    chat.run(steps)
    assert chat.session.entries(types=["note"])[0].text == "Alice prefers tea"


def test_a_session_that_is_gone_on_with_shows_its_turns(chat: Chat) -> None:
    chat.session.add("message", {"role": "user", "content": "said before"})

    async def steps(terminal: Terminal) -> None:
        assert "> said before" in terminal.text

    chat.run(steps)


@pytest.mark.parametrize("width", [60, 80])
def test_a_long_text_wraps_in_a_narrow_terminal(chat: Chat, width: int) -> None:
    words = " ".join(f"word{number}" for number in range(60)) + " " + "x" * 150
    chat.session.add("message", {"role": "assistant", "content": words})

    async def steps(terminal: Terminal) -> None:
        assert words.replace(" ", "") in terminal.text.replace(" ", "")

    chat.run(steps, size=(width, 40))


def test_control_characters_of_memory_are_shown_as_escapes(chat: Chat) -> None:
    chat.session.add("message", {"role": "assistant", "content": "a\x1b[31mred\x07\u202eb [bold]c[/bold]"})

    async def steps(terminal: Terminal) -> None:
        assert r"a\x1b[31mred\x07\u202eb [bold]c[/bold]" in terminal.text

    chat.run(steps)


def test_two_chats_on_one_home_both_keep_their_turns(chat: Chat, server: ModelServer) -> None:
    async def whole() -> None:
        one, other = chat.app(), chat.app()
        async with one.run_test() as first, other.run_test() as second:
            pair = Terminal(one, first), Terminal(other, second)
            await pair[0].enter("from one")
            await pair[1].enter("from two")
            await pair[0].settle()
            await pair[1].settle()

    asyncio.run(whole())
    assert {"user: from one", "user: from two"} <= set(chat.said())
    assert len(server.asked) == 2


@pytest.mark.parametrize("keys", [("/new",), ("/sessions", "n")])
def test_a_new_session_without_words_leaves_none_behind(chat: Chat, keys: tuple[str, ...]) -> None:
    async def steps(terminal: Terminal) -> None:
        for command in keys[:1]:
            await terminal.enter(command)
        await terminal.press(*keys[1:], "ctrl+q")

    chat.run(steps)
    assert chat.agent.sessions() == []


def test_notes_that_cannot_be_read_are_reported_and_lose_no_message(chat: Chat) -> None:
    (chat.folder / "AGENTS.md").write_bytes(b"\xff\n")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        assert "is not UTF-8" in terminal.text

    chat.run(steps)
    assert chat.said() == ["user: Hi"]


MARKDOWN = """\
# Plan

Use **PostgreSQL**, because:

1. row locks
2. `jsonb`

```sql
SELECT 1;
```

| name | age |
|---|---|
| Ada | 36 |

See [the docs](https://example.org/x) and <b>this</b>, or ![it](http://example.org/y).
[end]: https://example.org/z
"""


def test_an_answer_of_a_model_is_shown_as_markdown(chat: Chat, server: ModelServer) -> None:
    server.replies = [MARKDOWN]

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Which database?")
        assert all(words in terminal.text for words in ("1. row locks", "SELECT 1", "36"))
        assert not any(mark in terminal.text for mark in ("**", "```", "|---|"))

    chat.run(steps, size=(100, 60))


def test_nothing_in_an_answer_can_be_clicked_or_hides_an_address(chat: Chat, server: ModelServer) -> None:
    server.replies = [MARKDOWN]

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Which database?")
        for words in ("[the docs](https://example.org/x)", "<b>this</b>", "![it](http://example.org/y)"):
            assert words in terminal.text
        assert "[end]: https://example.org/z" in terminal.text

    chat.run(steps, size=(100, 60))


def propose(server: ModelServer) -> None:
    """Let the model save a note, and then say something."""
    server.replies = [("save_note", {"text": "Always run the tests first", "where": "project"}), "I tried."]


def test_a_models_note_is_saved_once_the_person_agrees(chat: Chat, server: ModelServer) -> None:
    propose(server)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Remember the tests")
        await terminal.until("The model wants to save a note for this project")
        assert "Always run the tests first" in terminal.text
        assert chat.notes.entries() == []
        await terminal.press("y")
        await terminal.settle()

    chat.run(steps)
    assert [note.content for note in chat.notes.entries("Project")] == ["Always run the tests first"]


@pytest.mark.parametrize("key", ["enter", "n", "escape", "ctrl+c", "ctrl+q"])
def test_a_models_note_is_not_saved_without_a_yes(chat: Chat, server: ModelServer, key: str) -> None:
    propose(server)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter("Remember the tests")
        await terminal.until("The model wants to save")
        await terminal.press(key)
        await terminal.settle()
        if key != "ctrl+q":
            assert "The model wants" not in terminal.text

    chat.run(steps)
    assert chat.notes.entries() == []


class Raising:
    """A model that raises what is not ours."""

    name = "raising"
    uses_tools = False

    def answer(self, request: Request, /) -> Iterator[str]:
        yield "The beginning"
        raise KeyError(request)


def test_an_unexpected_error_of_a_model_leaves_the_app_running(chat: Chat) -> None:
    chat.choice = ModelChoice(Raising(), "a test")

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Hi")
        assert "raising failed (KeyError)" in terminal.text
        await terminal.say("/help")
        assert "Write a message and press Enter" in terminal.text

    chat.run(steps)


@pytest.mark.parametrize("line", ["/recall x", "/forget x", "/context x"])
def test_an_unexpected_error_of_a_recall_leaves_the_app_running(
    chat: Chat, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError("what a reranker raises")

    monkeypatch.setattr("keepstone.agent.recall", fail)

    async def steps(terminal: Terminal) -> None:
        await terminal.say(line)
        assert "Unexpected error (OSError)" in terminal.text

    chat.run(steps)


@pytest.mark.parametrize("line", ["/recall x", "/forget x", "/context x"])
def test_keys_are_answered_while_a_recall_runs(
    chat: Chat, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, recall = threading.Event(), threading.Event(), pipeline.recall

    def slow(*values: Any, **keys: Any) -> Any:
        begun.set()
        assert go_on.wait(30)
        return recall(*values, **keys)

    monkeypatch.setattr("keepstone.agent.recall", slow)

    async def steps(terminal: Terminal) -> None:
        await terminal.enter(line)
        await asyncio.to_thread(begun.wait, 30)
        await terminal.press(*"walnut")
        assert "walnut" in terminal.text
        go_on.set()
        await terminal.settle()
        assert "walnut" not in terminal.text  # The page is in front.

    chat.run(steps)


def test_the_beginning_of_a_long_answer_stays_in_view(chat: Chat, server: ModelServer) -> None:
    server.replies = ["The first line.\n\n" + "\n\n".join(f"Line {number}." for number in range(60))]

    async def steps(terminal: Terminal) -> None:
        await terminal.say("Tell me all.")
        assert "The first line." in terminal.text
        await terminal.say("And now?")
        assert "> And now?" in terminal.text

    chat.run(steps)


def test_the_heading_names_what_the_session_is_about(chat: Chat) -> None:
    async def steps(terminal: Terminal) -> None:
        assert "new session" in terminal.text
        await terminal.say("Which database?")
        assert "· Which database?" in terminal.text

    chat.run(steps)
