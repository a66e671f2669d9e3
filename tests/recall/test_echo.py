"""What only repeats a question or quotes memory comes after what answers it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.embed.conftest import minilm_folder, static_folder

import keepstone
from keepstone import Agent, Notes
from keepstone.chat.conversation import Conversation
from keepstone.chat.offline import OfflineResponder
from keepstone.cli import sample
from keepstone.embed.minilm import MiniLM
from keepstone.embed.static import Static
from keepstone.model import Scope
from keepstone.recall.echo import is_question, says_same

__all__ = ["minilm_folder", "static_folder"]

RIGHT = ("passkeys", "double-charge", "lena-summaries")


def ask(agent: Agent, question: str, folder: Path) -> str:
    """Ask in a chat of its own and return the answer."""
    chat = Conversation(agent, Notes(folder), OfflineResponder())
    return "".join(delta.text for delta in chat.send(question))


def embedder_of(name: str, request: pytest.FixtureRequest) -> Static | MiniLM | str:
    """Return an embedder by its name; the test is skipped where its model cannot be had."""
    if name == "none":
        return name
    folder: Path = request.getfixturevalue(f"{name}_folder")
    return Static(folder) if name == "static" else MiniLM(folder)


@pytest.mark.parametrize("name", ["none", "static", "minilm"])
def test_the_sample_answers_its_questions_however_often_they_are_asked(
    tmp_path: Path, request: pytest.FixtureRequest, name: str
) -> None:
    embedder = embedder_of(name, request)
    sample.copy_to(tmp_path / "home")
    with keepstone.open(tmp_path / "home", embedder=embedder, durability="os") as home:
        agent = home.agent("default")
        agent.vectors().fill(Scope("default"))
        for times in range(3):
            firsts = [agent.recall(question)[0].entry.id for question in sample.QUESTIONS]
            assert firsts == [*RIGHT], f"asked {times} times"
            for question in sample.QUESTIONS:
                ask(agent, question, tmp_path)


def test_echoes_come_last_and_are_not_relevant(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        agent = home.agent("a")
        fact = agent.session("s").add("note", text="The pager is carried by Ada in May")
        ask(agent, "who carries the pager in May?", tmp_path)
        first, *echoes = agent.recall("pager in May")
        assert first.entry.id == fact.id
        assert len(echoes) == 2
        assert {echo.relevance for echo in echoes} == {0.0}
        assert max(echo.score for echo in echoes) <= first.score


def test_a_chat_does_not_quote_its_own_quotes(tmp_path: Path) -> None:
    with keepstone.open(tmp_path / "home", embedder="none", durability="os") as home:
        agent = home.agent("a")
        agent.session("s").add("note", text="The pager is carried by Ada in May")
        answers = [ask(agent, "who carries the pager in May?", tmp_path) for _ in range(3)]
        assert [answer.count("\u201c") for answer in answers] == [1, 1, 1]


def test_a_question_that_nothing_answers_is_still_found(tmp_path: Path) -> None:
    with keepstone.open(tmp_path, embedder="none", durability="os") as home:
        agent = home.agent("a")
        agent.session("s").add("message", {"role": "user", "content": "Where is the walnut?"}, id="asked")
        assert [hit.entry.id for hit in agent.recall("Where is the walnut?")] == ["asked"]


def test_an_entry_is_first_by_its_exact_text(tmp_path: Path, static_folder: Path) -> None:
    with keepstone.open(tmp_path, embedder=Static(static_folder), durability="os") as home:
        agent = home.agent("a")
        texts = [f"worker {n} number {k} penguin" for n in range(3) for k in range(40)]
        agent.session("s").add_many({"type": "note", "text": text} for text in texts)
        agent.vectors().fill(Scope("a"))
        assert [agent.recall(text, limit=3)[0].entry.text for text in texts] == texts


@pytest.mark.parametrize("text", ["who is it", "Is it?", "Wo ist es?", "本当？"])
def test_a_question_is_known_by_its_mark_or_first_word(text: str) -> None:
    assert is_question(text)
    assert not is_question("Ada knows where it is")


def test_a_speaker_does_not_make_another_text() -> None:
    assert says_same("user: Where is it?", "where is it")
    assert not says_same("user: Where is it now?", "where is it")
