"""Turns are stored, answers know what was, and nothing that a server does loses a word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from tests.chat.conftest import KEY, Said
from tests.chat.model_server import ModelServer

import keepstone
from keepstone import Agent, Notes
from keepstone.chat import Conversation, endpoint
from keepstone.chat.anthropic_model import _said
from keepstone.chat.messages import Piece, Request, ToolCall
from keepstone.chat.tools import RESULTS
from keepstone.errors import ModelError, StoreError


def contents(talk: Conversation) -> list[tuple[str, str]]:
    return [(turn.data["role"], turn.data["content"]) for turn in talk.turns()]


def test_question_and_answer_are_stored_in_order(talk: Conversation, say: Said) -> None:
    assert say(talk, "Hi") == "Hello. "
    assert contents(talk) == [("user", "Hi"), ("assistant", "Hello. ")]
    assert talk.turns()[1].data["model"] == talk.model.name


def test_a_message_is_on_the_disk_before_the_model_is_asked(talk: Conversation, server: ModelServer) -> None:
    talk.send("Hi")
    assert (contents(talk), server.asked) == ([("user", "Hi")], [])


def test_an_answer_comes_in_pieces_while_the_server_still_writes(
    talk: Conversation, server: ModelServer
) -> None:
    server.held.clear()
    deltas = talk.send("Hi")
    assert next(deltas).text == "Hello. "
    server.held.set()
    assert list(deltas) == []


def test_every_request_holds_both_notes_files(
    talk: Conversation, notes: Notes, server: ModelServer, say: Said
) -> None:
    say(talk, "Hi")
    notes.add("Use pnpm instead of npm", "Project")
    notes.add("My name is Alice", "User")
    say(talk, "And now?")
    assert "pnpm" not in server.prompts[0]
    assert all(note in server.prompts[1] for note in ("Use pnpm instead of npm", "My name is Alice"))


def test_the_user_notes_are_there_from_any_folder(
    talk: Conversation, notes: Notes, tmp_path: Path, server: ModelServer, say: Said
) -> None:
    notes.add("My name is Alice", "User")
    other = tmp_path / "other"
    other.mkdir()
    say(Conversation(talk.agent, Notes(other), talk.model), "Hi")
    assert "My name is Alice" in server.prompts[0]


def test_every_round_of_tools_holds_both_notes_files(
    talk: Conversation, notes: Notes, server: ModelServer, say: Said
) -> None:
    notes.add("My name is Alice", "User")
    talk = Conversation(talk.agent, notes, talk.model, talk.session, ask=lambda *_: True)
    server.replies = [("save_note", {"text": "Use pnpm", "where": "project"}), ("list_files", {}), "Done."]
    say(talk, "Save that we use pnpm")
    assert ["Use pnpm" in prompt for prompt in server.prompts] == [False, True, True]
    assert all("My name is Alice" in prompt for prompt in server.prompts)


def shares(prompts: list[str]) -> list[float]:
    """Return which share of each prompt's bytes is what the one before began with."""
    found = []
    for one, other in pairwise(prompt.encode() for prompt in prompts):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
        found.append(sum(1 for _ in same) / len(other))
    return found


def test_over_fifty_turns_most_bytes_of_each_prompt_are_those_of_the_one_before(
    talk: Conversation, notes: Notes, server: ModelServer, say: Said
) -> None:
    for number in range(40):
        notes.add(f"Rule {number}: what belongs to part {number} stays in part {number}", "Project")
    talk.agent.session("old").add_many({"type": "fact", "text": f"part {n} is blue"} for n in range(50))
    talk.agent.session("old").add("decision", text="We take PostgreSQL", pinned=True)
    for number in range(50):
        say(talk, f"Which colour has part {number}?")
    stable = talk.sent.stable if talk.sent else ""
    assert all(prompt.startswith(stable) for prompt in server.prompts)
    assert min(shares(server.prompts)) > 0.6
    notes.add("Part 7 is red", "Project")
    say(talk, "Which colour has part 7?")
    say(talk, "Which colour has part 8?")
    assert not server.prompts[-1].startswith(stable)
    assert shares(server.prompts)[-1] > 0.6


def test_what_other_sessions_said_is_in_the_prompt(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    talk.agent.session("old").add("decision", {"content": "the database is PostgreSQL"})
    say(talk, "Which database do we use?")
    assert "the database is PostgreSQL" in server.prompts[0]


def test_the_prompt_kept_for_context_is_the_one_that_was_sent(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    say(talk, "Hi")
    assert talk.sent is not None
    assert talk.sent.text == server.prompts[0]


def test_the_stable_part_of_the_prompt_is_the_same_for_all_questions(
    talk: Conversation, notes: Notes, say: Said
) -> None:
    notes.add("Use pnpm", "Project")
    talk.agent.session("old").add("fact", {"content": "the office is in Lisbon"})
    stable = set()
    for question in ("Where is the office?", "Which package manager?", "Why?"):
        say(talk, question)
        assert talk.sent is not None
        stable.add(talk.sent.stable)
    assert len(stable) == 1
    assert "Use pnpm" in stable.pop()


def test_earlier_turns_go_with_a_question(talk: Conversation, server: ModelServer, say: Said) -> None:
    say(talk, "one")
    say(talk, "two")
    said = [message for message in server.asked[1]["messages"] if message["role"] != "system"]
    assert [message["role"] for message in said] == ["user", "assistant", "user"]


def test_messages_without_an_answer_between_them_become_one(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    talk.send("one")
    say(talk, "two")
    assert "one\\n\\ntwo" in json.dumps(server.asked[0]["messages"])


@pytest.mark.parametrize(
    ("status", "words"),
    [(401, "rejected the key"), (429, "over its rate limit"), (404, "not found"), (500, "failed (500)")],
)
def test_a_refusal_is_reported_and_loses_no_message(
    talk: Conversation, server: ModelServer, status: int, words: str, say: Said
) -> None:
    server.status = status
    told = say(talk, "Hi")
    assert words in told
    assert "/retry" in told
    assert contents(talk) == [("user", "Hi")]


def test_a_key_is_in_no_message_and_no_entry(
    talk: Conversation, server: ModelServer, say: Said, tmp_path: Path
) -> None:
    server.status = 500
    assert KEY not in say(talk, "Hi") + repr(talk.model) + repr(vars(talk.model))
    assert any(KEY in value for value in server.headers[0].values())
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_server_that_is_not_there_is_reported(talk: Conversation, say: Said) -> None:
    model = keepstone.chat.choose("http://127.0.0.1:1/v1?model=m").model
    refused = Conversation(talk.agent, talk.notes, model, talk.session)
    assert "cannot be reached" in say(refused, "Hi")
    assert contents(talk) == [("user", "Hi")]


def test_a_server_that_keeps_silent_is_given_up(
    talk: Conversation, server: ModelServer, say: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (keepstone.chat.openai_model, keepstone.chat.anthropic_model, endpoint):
        monkeypatch.setattr(module, "SILENCE", 0.2)
    server.held.clear()
    told = say(talk, "Hi")
    assert "timed out" in told
    server.held.set()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"<html>Login</html>",
        b"data: {broken\n\n",
        b"data: [1]\n\n",
        b'data: {"choices": 3}\n\n',
        b'event: message_start\ndata: {"type": "message_start"\n\n',
        b"data: \xff\xfe\n\n",
        b'event: content_block_delta\ndata: {"type": "content_block_delta", "index": 0, "delta": 3}\n\n',
        b"\x00" * 100,
    ],
)
def test_an_unusable_answer_is_reported_and_may_be_retried(
    talk: Conversation, server: ModelServer, say: Said, nonsense: bytes
) -> None:
    server.nonsense = nonsense
    assert "/retry" in say(talk, "Hi")
    assert contents(talk) == [("user", "Hi")]
    server.nonsense = b""
    assert [delta.text for delta in talk.retry()] == ["Hello. "]


def test_an_answer_that_breaks_off_is_kept_with_a_mark(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    server.cut = True
    assert say(talk, "Hi").startswith("Hello. ")
    turn = talk.turns()[-1]
    assert turn.data["content"] == "Hello. "
    assert "/retry" in turn.data["cut"]


def test_the_received_part_of_a_stopped_answer_is_kept(talk: Conversation, server: ModelServer) -> None:
    server.held.clear()
    deltas = talk.send("Hi")
    next(deltas)
    threading.Timer(0, talk.stop).start()
    assert list(deltas) == []
    assert (talk.turns()[-1].data["content"], talk.turns()[-1].data["cut"]) == ("Hello. ", "stopped")


def test_retry_answers_again_without_a_second_question(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    server.status = 429
    say(talk, "Hi")
    server.status = 200
    assert [delta.text for delta in talk.retry()] == ["Hello. "]
    assert contents(talk) == [("user", "Hi"), ("assistant", "Hello. ")]


def test_retry_without_a_message_says_so(talk: Conversation) -> None:
    with pytest.raises(ValueError, match="write one first"):
        talk.retry()


def test_a_model_saves_by_a_tool_and_knows_it_at_once(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    server.replies = [("remember", {"text": "Alice prefers tea", "type": "preference"}), "Noted."]
    assert say(talk, "I prefer tea") == "Noted. "
    assert [entry.type for entry in talk.session.entries()] == ["message", "preference", "message"]
    assert "Alice prefers tea" in server.prompts[1]
    assert "remembered, id" in json.dumps(server.asked[1]["messages"][-1])
    assert talk.turns()[-1].data["tools"] == ["remember"]


def test_a_model_that_only_asks_for_tools_is_stopped(
    talk: Conversation, server: ModelServer, say: Said
) -> None:
    server.replies = [("list_files", {})]
    assert "called tools 8 times" in say(talk, "Hi")
    assert len(server.asked) == 8


class Mute:
    """A model that has nothing to say."""

    name = "mute"
    uses_tools = False

    def answer(self, _: Request) -> Iterator[str]:
        return iter(())


def test_an_empty_answer_is_reported_as_such(agent: Agent, notes: Notes, say: Said) -> None:
    assert "mute sent an empty answer" in say(Conversation(agent, notes, Mute()), "Hi")


class Recorder:
    """A model that keeps what it is asked, and says the same each time."""

    name = "recorder"
    uses_tools = False

    def __init__(self, *pieces: str) -> None:
        self.asked: list[Request] = []
        self._pieces = pieces

    def answer(self, request: Request, /) -> Iterator[str]:
        self.asked.append(request)
        return iter(self._pieces)


def test_a_character_cut_in_two_is_stored_whole(agent: Agent, notes: Notes, say: Said) -> None:
    talk = Conversation(agent, notes, Recorder("a\ud83d", "\ude00", "\ud83d"))
    say(talk, "Hi")
    assert talk.turns()[-1].data["content"] == "a\U0001f600\ufffd"


def test_fifty_turns_share_their_stable_part(agent: Agent, notes: Notes, say: Said) -> None:
    model = Recorder("Yes.")
    talk = Conversation(agent, notes, model)
    notes.add("Use pnpm", "Project")
    agent.session("old").add("decision", {"content": "the database is PostgreSQL"})
    for number in range(50):
        say(talk, f"Is {number} a good number for the database?")
    assert len({request.prompt.stable for request in model.asked}) == 1
    assert "Use pnpm" in model.asked[0].prompt.stable


def test_turns_that_go_with_a_question_are_not_in_the_prompt_too(
    agent: Agent, notes: Notes, say: Said
) -> None:
    model = Recorder("Yes.")
    talk = Conversation(agent, notes, model)
    for words in ("the quokka is small", "how small is the quokka"):
        say(talk, words)
    assert "quokka" in model.asked[1].messages[0].text
    assert "quokka" not in model.asked[1].prompt.text


def test_stop_before_the_first_piece_asks_for_nothing_more(agent: Agent, notes: Notes) -> None:
    talk = Conversation(agent, notes, Recorder("Yes."))
    deltas = talk.send("Hi")
    talk.stop()
    assert list(deltas) == []
    assert contents(talk) == [("user", "Hi")]


def test_a_conversation_without_words_leaves_no_session(agent: Agent, talk: Conversation) -> None:
    Conversation(agent, talk.notes, talk.model).close()
    assert agent.sessions() == []


def test_leaving_a_session_without_live_entries_keeps_its_history(agent: Agent, talk: Conversation) -> None:
    session = agent.session("plans")
    deleted = session.add("note", text="deleted")
    session.add("note", text="archived", priority=0)
    session.archive_faded()
    session.delete(deleted.id)
    assert Conversation(agent, talk.notes, talk.model, agent.session("plans")).close()
    assert [version.text for version in agent.history(deleted.id)] == ["deleted", "deleted"]
    assert [entry.text for entry in session.entries(archived=True)] == ["archived"]


def test_leaving_a_new_session_keeps_what_others_wrote_to_it(agent: Agent, talk: Conversation) -> None:
    left = Conversation(agent, talk.notes, talk.model)
    entry = agent.session(left.session.id).add("note", text="acknowledged")
    agent.session(left.session.id).delete(entry.id)
    assert left.close()
    assert agent.history(entry.id)[0].text == "acknowledged"


def test_a_new_conversation_makes_its_session_with_the_first_message(
    agent: Agent, talk: Conversation, say: Said
) -> None:
    new = Conversation(agent, talk.notes, talk.model)
    assert agent.sessions() == []
    say(new, "Hi")
    assert [info.id for info in agent.sessions()] == [new.session.id]


def test_a_message_that_cannot_be_stored_is_never_asked(
    talk: Conversation, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr(talk.session, "add", full)
    with pytest.raises(StoreError):
        talk.send("Hi")
    assert server.asked == []


_PROGRAM = """
import sys, keepstone
from keepstone.chat import Conversation, choose
home, url = sys.argv[1:]
agent = keepstone.open(home).agent("default")
talk = Conversation(agent, keepstone.Notes(home), choose(url).model, agent.session("s"))
print(*(delta.text for delta in talk.send("one")), flush=True)
for delta in talk.send("two"):
    print(delta.text, flush=True)
"""


def test_a_kill_in_mid_answer_leaves_all_acknowledged_turns(tmp_path: Path, server: ModelServer) -> None:
    home = tmp_path / "home"
    home.mkdir()
    words = [sys.executable, "-c", _PROGRAM, str(home), f"{server.url}/v1?model=m"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["Hello."]
        server.held.clear()
        assert process.stdout.readline().split() == ["Hello."]
        os.kill(process.pid, signal.SIGKILL)
    with keepstone.open(home) as opened:
        said = [entry.data["content"] for entry in opened.agent("default").session("s").entries()]
    assert said == ["one", "Hello. ", "two"]


class Scripted:
    """A model that says what it is told to, request by request, and keeps the requests."""

    name = "scripted"
    uses_tools = True

    def __init__(self, *rounds: list[Piece | Exception]) -> None:
        self._rounds = iter(rounds)
        self.requests: list[Request] = []

    def answer(self, request: Request, /) -> Iterator[Piece]:
        self.requests.append(request)
        for piece in next(self._rounds):
            if isinstance(piece, Exception):
                raise piece
            yield piece


def scripted(agent: Agent, notes: Notes, *rounds: list[Piece | Exception]) -> tuple[Conversation, Scripted]:
    model = Scripted(*rounds)
    return Conversation(agent, notes, model, agent.session("s")), model


def roles(request: Request) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in request.messages]


def test_an_unexpected_error_of_a_model_is_reported(agent: Agent, notes: Notes) -> None:
    talk, _ = scripted(agent, notes, ["part", KeyError("a key")])
    deltas = list(talk.send("Hi"))
    assert [delta.kind for delta in deltas] == ["text", "error"]
    assert "scripted failed (KeyError)" in deltas[1].text
    assert "a key" not in deltas[1].text
    assert contents(talk) == [("user", "Hi"), ("assistant", "part")]


def test_a_whitespace_answer_counts_as_empty(agent: Agent, notes: Notes) -> None:
    talk, _ = scripted(agent, notes, ["\n ", "\t"])
    assert "sent an empty answer" in list(talk.send("Hi"))[-1].text
    assert contents(talk) == [("user", "Hi")]


def test_stored_turns_without_words_are_not_sent(agent: Agent, notes: Notes) -> None:
    for role, words in (("user", "Hi"), ("assistant", "\n"), ("user", "  "), ("assistant", "Hello")):
        agent.session("s").add("message", {"role": role, "content": words})
    talk, model = scripted(agent, notes, ["ok"])
    list(talk.send("And now?"))
    assert roles(model.requests[0]) == [("user", "Hi"), ("assistant", "Hello"), ("user", "And now?")]


def test_anthropic_gets_no_message_without_blocks(agent: Agent, notes: Notes) -> None:
    agent.session("s").add("message", {"role": "user", "content": "Hi"})
    agent.session("s").add("message", {"role": "assistant", "content": "\n"})
    talk, model = scripted(agent, notes, ["ok"])
    list(talk.send("And now?"))
    assert all(_said(message)["content"] for message in model.requests[0].messages)


def test_an_answer_given_again_replaces_the_cut_one_in_requests(agent: Agent, notes: Notes) -> None:
    talk, model = scripted(agent, notes, ["It is fo", ModelError("cut")], ["It is forty-two."], ["Yes."])
    list(talk.send("Q?"))
    list(talk.retry())
    list(talk.send("Sure?"))
    assert roles(model.requests[2]) == [("user", "Q?"), ("assistant", "It is forty-two."), ("user", "Sure?")]


def test_turns_are_found_behind_many_other_messages(agent: Agent, notes: Notes) -> None:
    session = agent.session("s")
    session.add("message", {"role": "user", "content": "My name is Ada"})
    session.add_many({"type": "message", "role": "tool", "content": f"result {n}"} for n in range(100))
    talk, _ = scripted(agent, notes)
    assert contents(talk) == [("user", "My name is Ada")]


def test_tool_results_of_one_message_are_bounded(agent: Agent, notes: Notes) -> None:
    agent.files.write("big", "x" * 30_000)
    calls: list[Piece | Exception] = [
        ToolCall(str(number), "read_file", '{"path": "big"}') for number in range(30)
    ]
    talk, model = scripted(agent, notes, *[["I look.", *calls] for _ in range(7)], ["Done."])
    list(talk.send("Hi"))
    results = [result for message in model.requests[-1].messages for result in message.results]
    assert len(results) == 7 * 30
    assert sum(len(result.content) for result in results) < RESULTS + len(results) * 200


def test_a_models_secret_is_masked_where_secrets_are_refused(tmp_path: Path, notes: Notes) -> None:
    key = "ghp_" + 9 * "a1B2"
    with keepstone.open(tmp_path / "strict", secrets="refuse") as home:
        talk, _ = scripted(home.agent("a"), notes, [f"Set {key}", " and go on."])
        list(talk.send("How?"))
        assert contents(talk) == [("user", "How?"), ("assistant", "Set [secret: GitHub token] and go on.")]


def test_a_models_note_waits_for_the_persons_yes(agent: Agent, notes: Notes) -> None:
    call = ToolCall("1", "save_note", json.dumps({"text": "Use pnpm", "where": "project"}))
    asked: list[str] = []

    def ask(text: str, _: str) -> bool:
        assert notes.entries() == []
        asked.append(text)
        return True

    talk = Conversation(agent, notes, Scripted([call], ["Saved."]), agent.session("s"), ask=ask)
    list(talk.send("Save it"))
    assert (asked, [note.content for note in notes.entries()]) == (["Use pnpm"], ["Use pnpm"])
