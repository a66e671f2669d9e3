"""Without a model, memory itself answers: with quotes and dates."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.chat.conftest import Said

import keepstone
from keepstone import Agent, Notes
from keepstone.chat import Conversation
from keepstone.chat.offline import OfflineResponder
from keepstone.cli import sample

RIGHT = ("passkeys", "double-charge", "lena-summaries")
"""The entries that answer the questions of the sample."""


@pytest.fixture
def talk(agent: Agent, notes: Notes) -> Conversation:
    return Conversation(agent, notes, OfflineResponder(), agent.session("s"))


def test_an_entry_is_quoted_with_its_date_and_origin(talk: Conversation, say: Said) -> None:
    data = {"content": "the database is PostgreSQL"}
    talk.agent.session("old").add("decision", data, ts="2026-03-04T10:00:00Z")
    told = say(talk, "Which database?")
    assert told.startswith("(offline, no model)")
    assert "“the database is PostgreSQL”\n  2026-03-04, decision, session old" in told


def test_a_note_is_quoted_with_its_file_and_line(talk: Conversation, notes: Notes, say: Said) -> None:
    notes.add("My name is Alice", "User")
    told = say(talk, "What is my name?")
    assert "“My name is Alice”\n  User note, " in told
    assert "memory.md:1" in told


def test_what_is_not_remembered_is_not_made_up(talk: Conversation, say: Said) -> None:
    talk.agent.session("old").add("fact", {"content": "the database is PostgreSQL"})
    assert say(talk, "Who won?") == "(offline, no model) I remember nothing about that."


def test_a_statement_is_answered_as_kept(talk: Conversation, say: Said) -> None:
    assert say(talk, "My cat is called Miso.").startswith("(offline, no model) Your message is stored. ")
    assert "“user: My cat is called Miso.”" in say(talk, "Who is the cat?")


def test_neither_questions_nor_own_answers_are_quoted(talk: Conversation, say: Said) -> None:
    talk.agent.session("old").add("fact", {"content": "the database is PostgreSQL"})
    first = say(talk, "Which database?")
    assert say(talk, "which database?") == first
    assert say(talk, "Which DATABASE did we choose?").count("“") == 1


def test_the_best_quotes_are_few_and_short(talk: Conversation, say: Said) -> None:
    talk.agent.session("old").add_many(
        {"type": "fact", "text": f"database {number} {'x ' * 400}"} for number in range(20)
    )
    told = say(talk, "Which database?")
    assert told.count("“") == 5
    assert len(told) < 3000
    assert told.endswith(" more: /recall Which database?")


def test_the_best_quote_comes_first(talk: Conversation, say: Said) -> None:
    old = talk.agent.session("old")
    old.add("fact", {"content": "the release was late because of the weather"})
    old.add("fact", {"content": "the release goes out on Thursday at noon"})
    old.add("fact", {"content": "the weather on Thursday was fine"})
    told = say(talk, "Does the release go out on Thursday?")
    assert told.split("“")[1].startswith("the release goes out on Thursday")


def test_no_more_is_quoted_than_is_relevant(talk: Conversation, notes: Notes, say: Said) -> None:
    old = talk.agent.session("old")
    old.add("decision", {"content": "the retry policy of the payment worker is five attempts"})
    for text in ("I have written it on the fridge", "the boarding pass is in the mail", "lunch is at noon"):
        old.add("message", {"role": "user", "content": text})
    notes.add("The worker of the month gets a cake", "User")
    told = say(talk, "Which retry policy has the payment worker?")
    assert told.count("\n\n“") == 1
    assert "more:" not in told


def test_an_earlier_message_without_an_answer_is_not_asked_again(talk: Conversation, say: Said) -> None:
    say(talk, "Our database is PostgreSQL, because of its row locks.")
    assert "PostgreSQL" not in say(talk, "Which package manager do we use?")


def test_an_answer_in_other_words_is_quoted_beside_its_question(talk: Conversation, say: Said) -> None:
    old = talk.agent.session("old")
    old.add("message", {"role": "user", "content": "When does the release go out?"})
    old.add("message", {"role": "assistant", "content": "Thursday at noon"})
    old.add("message", {"role": "assistant", "content": "I have written it on the fridge"})
    told = say(talk, "When will the release go out?")
    assert told.split("“")[1].startswith("assistant: Thursday at noon")
    assert "fridge" not in told


def test_what_is_less_than_half_as_relevant_as_the_best_is_not_quoted(
    notes: Notes, say: Said, tmp_path: Path
) -> None:
    sample.copy_to(tmp_path / "sample")
    with keepstone.open(tmp_path / "sample", embedder="none") as home:
        for question, right, most in zip(sample.QUESTIONS, RIGHT, (1, 3, 1), strict=True):
            talk = Conversation(home.agent("default"), notes, OfflineResponder())
            say(talk, question)
            links = talk.session.entries()[-1].links
            assert links[0]["to"] == right
            assert len(links) <= most


def test_a_note_that_says_a_part_comes_after_an_entry_that_says_all(
    talk: Conversation, notes: Notes, say: Said
) -> None:
    notes.add("Payment workers are tested at night", "User")
    talk.agent.session("old").add("fact", {"content": "the payment retry policy is five attempts"})
    told = say(talk, "Payment retry policy?")
    assert "five attempts" in told.split("“")[1]


def test_quotes_name_the_title_of_their_session(talk: Conversation, say: Said) -> None:
    old = talk.agent.session("0f0e1a9c-8a66-7d3a-b1e4-9e5ad287121a")
    old.add("fact", {"content": "the database is PostgreSQL"})
    old.set_title("Choosing a database")
    told = say(talk, "Which database?")
    assert "session “Choosing a database”" in told
    assert old.id not in told


def test_what_another_agent_remembers_is_never_quoted(
    agent: Agent, notes: Notes, say: Said, home: object
) -> None:
    assert isinstance(home, keepstone.Home)
    home.agent("other").session("s").add("fact", {"content": "the safe is behind the clock"})
    talk = Conversation(agent, notes, OfflineResponder())
    assert "clock" not in say(talk, "Where is the safe?")


def test_an_answer_without_quotes_is_not_stored(talk: Conversation, say: Said) -> None:
    say(talk, "Who won?")
    assert [entry.text for entry in talk.session.entries()] == ["user: Who won?"]
    talk.agent.session("old").add("fact", {"content": "the database is PostgreSQL"})
    say(talk, "Which database?")
    assert [entry.data["role"] for entry in talk.session.entries()] == ["user", "user", "assistant"]


def test_a_stored_answer_links_to_the_entries_that_it_quotes(talk: Conversation, say: Said) -> None:
    old = talk.agent.session("old").add("decision", {"content": "the database is PostgreSQL"})
    say(talk, "Which database?")
    answer = talk.session.entries()[-1]
    assert answer.links == ({"rel": "quotes", "to": old.id, "session": "old"},)
    assert [entry.id for entry in talk.agent.related(answer.id, "quotes")] == [old.id]


def test_an_answer_that_quotes_notes_only_has_no_links(talk: Conversation, notes: Notes, say: Said) -> None:
    notes.add("My name is Alice", "User")
    say(talk, "What is my name?")
    assert talk.session.entries()[-1].links == ()
