"""Who answers in the chat of the pages."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from nicegui import Client
from tests.web.page import on_a_page, within

import keepstone
from keepstone import Agent, Notes
from keepstone.chat import ModelError
from keepstone.chat.messages import Piece, Request, ToolCall
from keepstone.chat.offline import OfflineResponder
from keepstone.web.answering import Talking
from keepstone.web.elements import aside, box
from keepstone.web.pages.chat import Chat


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with keepstone.open(tmp_path / "home", embedder="none") as home:
        yield home.agent("coder")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path, tmp_path / "user.md")


class Scripted:
    """A model that says what it is told to, round by round."""

    name = "scripted"
    uses_tools = True

    def __init__(self, *rounds: list[Piece | Exception]) -> None:
        self._rounds = iter(rounds)

    def answer(self, request: Request, /) -> Iterator[Piece]:
        assert request.messages
        for piece in next(self._rounds):
            if isinstance(piece, Exception):
                raise piece
            yield piece


def said(agent: Agent) -> list[str]:
    return [entry.data["content"] for entry in agent.session("chat").entries()]


def test_the_chat_quotes_notes_and_entries_but_no_answers(agent: Agent, notes: Notes) -> None:
    notes.add("Use pnpm, never npm", "Project")
    agent.session("old").add("decision", {"content": "We moved to pnpm in March"})
    answers = Talking(notes, OfflineResponder())
    first = "".join(answers.answer(agent, "chat", "pnpm?"))
    second = "".join(answers.answer(agent, "chat", "pnpm?"))
    assert "Use pnpm, never npm" in first
    assert "We moved to pnpm in March" in first
    assert second == first


def test_the_message_is_stored_before_the_first_piece_comes(agent: Agent, notes: Notes) -> None:
    pieces = Talking(notes, Scripted(["One, ", "two."])).answer(agent, "chat", "Count")
    assert (next(pieces), said(agent)) == ("One, ", ["Count"])
    assert (list(pieces), said(agent)) == (["two."], ["Count", "One, two."])


def test_the_chat_shows_what_a_model_says_and_not_its_use_of_tools(agent: Agent, notes: Notes) -> None:
    model = Scripted(["I look. ", ToolCall("1", "recall", '{"query": "x"}')], ["Nothing there."])
    assert list(Talking(notes, model).answer(agent, "chat", "x?")) == ["I look. ", "Nothing there."]


def test_a_model_that_fails_is_raised_after_what_it_said(agent: Agent, notes: Notes) -> None:
    model = Scripted(["The beginning", ModelError("went away")])
    pieces = Talking(notes, model).answer(agent, "chat", "Hi")
    assert next(pieces) == "The beginning"
    with pytest.raises(ModelError, match="^went away$"):
        next(pieces)
    assert said(agent) == ["Hi", "The beginning"]


def test_an_answer_in_a_session_of_no_valid_id_is_refused(agent: Agent, notes: Notes) -> None:
    with pytest.raises(keepstone.InvalidSessionIdError):
        list(Talking(notes, OfflineResponder()).answer(agent, "", "Hi"))


@pytest.mark.parametrize(("agrees", "kept"), [(None, []), (False, []), (True, ["Use pnpm"])])
def test_a_models_note_is_saved_only_with_a_yes(
    agent: Agent, notes: Notes, agrees: Any, kept: list[str]
) -> None:
    call = ToolCall("1", "save_note", '{"text": "Use pnpm", "where": "project"}')
    answers = Talking(notes, Scripted([call], ["Done."]))
    if agrees is not None:
        answers = answers.asking(lambda *_: agrees is True)
    assert list(answers.answer(agent, "chat", "Save it")) == ["Done."]
    assert [note.content for note in notes.entries()] == kept


def test_answers_that_wait_for_a_model_do_not_delay_other_pages() -> None:
    go = threading.Event()

    def waiting() -> Iterator[str]:
        go.wait()
        yield from ()

    async def steps(page: Client) -> None:
        place: Any = SimpleNamespace(query={})
        chat = Chat(place)
        chat.list = box()  # type: ignore[assignment]
        streams = [asyncio.create_task(chat._stream(waiting())) for _ in range(40)]  # noqa: SLF001
        await asyncio.sleep(0)
        try:
            assert await asyncio.wait_for(within(page, lambda: aside(str, "looked")), 20) == "looked"
        finally:
            go.set()
            await asyncio.gather(*streams)

    on_a_page(steps)
