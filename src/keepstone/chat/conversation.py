"""A conversation that stores each turn and answers with memory in the prompt.

for delta in Conversation(agent, Notes("."), model).send("Which package manager do we use?"):
    print(delta.text, end="")
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from typing import Any, Literal

from keepstone.agent import Agent
from keepstone.chat.cancellation import Stoppable
from keepstone.chat.messages import (
    ChatModel,
    Message,
    Prompt,
    Quote,
    Request,
    ToolCall,
    ToolResult,
    Transient,
)
from keepstone.chat.tools import Ask, MemoryTools, ToolBudget
from keepstone.context import estimate_tokens
from keepstone.errors import KeepstoneError, ModelError, SecretError
from keepstone.log.arguments import new_id
from keepstone.model import Entry
from keepstone.notes.notes import Notes
from keepstone.recall.echo import ANSWERED, is_question
from keepstone.session import Session
from keepstone.text.display import frames_of

logger = logging.getLogger("keepstone.chat")

MESSAGE = "message"
"""The entry type of turns."""
BUDGET = 4000
"""Maximum tokens of memory in a system prompt."""
_HISTORY = 8000
"""Maximum tokens of earlier turns in a request."""
_TURNS = 60
"""Maximum number of earlier turns in a request."""
_ROUNDS = 8
"""Maximum rounds of tool calls before an answer."""
_INSTRUCTIONS = (
    "You are {agent}, an assistant in a terminal with your own long-term memory. Your memory follows below; "
    "use it in your answers, and mention its date where that matters. "
    'Use the tool "remember" for facts that will matter in later sessions, and '
    '"recall" to search for what is not below. Answer briefly.\n\n'
)


@dataclass(frozen=True, slots=True)
class Delta:
    """A chunk of a streamed answer, or an event during it."""

    kind: Literal["text", "tool", "error"]
    text: str
    """More text of the answer, a short description of a tool call, or an error message with its remedy."""


@dataclass(slots=True)
class _ModelAnswer:
    """The answer received so far."""

    text: str = ""
    is_memory: bool = False
    """Whether the answer has text that is not transient."""
    tools: list[str] = field(default_factory=list)
    links: list[dict[str, str]] = field(default_factory=list)
    """Links to the entries that the answer quotes."""
    cut: str = "stopped"
    """The reason why the answer is incomplete; empty once it is complete."""


class Conversation:
    """A conversation of a user with one agent in one session. Not thread-safe.

    Args:
        agent: The agent.
        notes: The notes of the project and its user, which are part of every request.
        model: The model.
        session: The session to store turns in and to continue; default: a new one.
        budget: Maximum tokens of memory in a system prompt, as ``estimate_tokens`` counts them.
        ask: A function that asks the user to confirm a note that the model wants to save; without it no note
            from a model is saved. Called in the thread that consumes the answer.
    """

    def __init__(
        self,
        agent: Agent,
        notes: Notes,
        model: ChatModel,
        session: Session | None = None,
        *,
        budget: int = BUDGET,
        ask: Ask | None = None,
    ) -> None:
        self.agent = agent
        self.notes = notes
        self.model = model
        # A session is created with its first message, so leaving removes no session that others may write to.
        self.session = agent.session(new_id()) if session is None else session
        self.sent: Prompt | None = None
        """The system prompt of the last request; None before the first."""
        self._budget = budget
        self._ask = ask
        self._pieces: Stoppable[str | ToolCall] | None = None
        self._stopped = False

    def send(self, text: str) -> Iterator[Delta]:
        """Store the user's message, yield the answer as it is streamed, and store the answer, too.

        When this returns, the message is on the disk; the model is called at the first ``next``. A partial
        answer, ended by the server or by ``stop``, is stored with the reason in ``cut``.

        Raises:
            KeepstoneError: The message or the answer could not be stored, or memory could not be read.
                Errors of the model are deltas of kind ``"error"`` instead.
        """
        # Store the message here, not in the iterator below, which does nothing before its first ``next``.
        question = self.session.add(MESSAGE, {"role": "user", "content": text}, origin="user")
        self._stopped = False
        return self._answer(question)

    def retry(self) -> Iterator[Delta]:
        """Answer the user's last message again, without storing it again.

        Raises:
            ValueError: The session has no message of the user.
        """
        said = [entry for entry in self.turns() if entry.data.get("role") == "user"]
        if not said:
            raise ValueError("there is no message to answer: write one first")
        self._stopped = False
        return self._answer(said[-1])

    def stop(self) -> None:
        """Stop the current answer and keep what was received. Thread-safe."""
        self._stopped = True
        if self._pieces is not None:
            self._pieces.stop()

    @property
    def stopped(self) -> bool:
        """Whether the latest answer was stopped."""
        return self._stopped

    def turns(self, limit: int = _TURNS) -> list[Entry]:
        """Return the last turns of the session, oldest first, without other messages."""
        most = limit
        while True:
            found = self.session.entries(limit=most, types=[MESSAGE], include_superseded=True)
            turns = [entry for entry in found if entry.data.get("role") in ("user", "assistant")]
            if len(turns) >= limit or len(found) < most:
                return turns[max(0, len(turns) - limit) :]
            # A session may also contain an unknown number of tool messages, which are not turns.
            most *= 4

    def preview(self, question: str | None = None, sent: Iterable[Entry] = ()) -> Prompt:
        """Return the system prompt, for a question if one is given.

        Turns in ``sent`` are left out, as the request contains them as messages.
        """
        window = [turn.id for turn in sent]
        context = self.agent.context(question, budget=self._budget, notes=self.notes, window=window)
        head = instructions(self.agent.slug)
        return Prompt(head + context.text[: context.stable], context.text[context.stable :])

    def close(self) -> bool:
        """Stop the current answer; False if the session was never created."""
        self.stop()
        return self.session.info() is not None

    def _answer(self, question: Entry) -> Iterator[Delta]:
        answer = _ModelAnswer()
        try:
            yield from self._rounds(question, answer)
        except ModelError as error:
            answer.cut = str(error)
            yield Delta("error", answer.cut)
        finally:
            self._pieces = None
            # Even if the consumer stops early or an error ends the answer, the text that was shown is stored.
            self._store(answer, question)

    def _rounds(self, question: Entry, answer: _ModelAnswer) -> Iterator[Delta]:
        """Call the model and the tools that it requests, until it requests none."""
        tools = MemoryTools(self.agent, self.notes, self.session, self._ask)
        results = ToolBudget(tools)
        turns = self._with_earlier(question)
        messages = _alternating(turns)
        for _ in range(_ROUNDS):
            # Build the prompt for each round, so that it includes memories that a tool has just saved.
            self.sent = self._prompt(turns)
            begin, calls = len(answer.text), list[ToolCall]()
            yield from self._streamed(
                Request(self.sent, (*messages,), tools, words_of_turn(question)), answer, calls
            )
            if not calls and not answer.text.strip() and not self._stopped:
                raise ModelError(
                    f"{self.model.name} sent an empty answer. Your message is stored: /retry asks again."
                )
            # After a stop, results of tools would only begin another round.
            if self._stopped or not calls:
                answer.cut = "stopped" if self._stopped else ""
                return
            messages += [Message("assistant", _whole(answer.text[begin:]), calls=(*calls,))]
            answered = [ToolResult(call.id, results.call(call.name, call.arguments)) for call in calls]
            messages += [Message("user", "", results=(*answered,))]
        raise ModelError(
            f"{self.model.name} called tools {_ROUNDS} times without an answer; /retry asks again"
        )

    def _streamed(self, request: Request, answer: _ModelAnswer, calls: list[ToolCall]) -> Iterator[Delta]:
        self._pieces = Stoppable(self.model.answer(request))
        # ``stop`` may have been called before ``_pieces`` existed.
        if self._stopped:
            self._pieces.stop()
        try:
            for piece in self._pieces:
                if isinstance(piece, str):
                    answer.text += piece
                    answer.is_memory |= not isinstance(piece, Transient)
                    answer.links += [piece.link] if isinstance(piece, Quote) else []
                    yield Delta("text", piece)
                else:
                    calls.append(piece)
                    answer.tools.append(piece.name)
                    yield Delta("tool", f"{piece.name} {piece.arguments}")
        except KeepstoneError:
            raise
        except Exception as error:
            # A third-party model's error may contain a key, so only its type is shown.
            logger.error("the model raised %s at\n%s", type(error).__name__, frames_of(error))  # noqa: TRY400
            raise ModelError(
                f"{self.model.name} failed ({type(error).__name__}). "
                "Your message is stored: /retry asks again."
            ) from error
        finally:
            self._pieces.stop()

    def _store(self, answer: _ModelAnswer, question: Entry) -> None:
        if not (answer.is_memory and answer.text.strip()):
            return
        data: dict[str, Any] = {"role": "assistant", "content": _whole(answer.text), "model": self.model.name}
        data |= {"tools": answer.tools} if answer.tools else {}
        data |= {"cut": answer.cut} if answer.cut else {}
        links = answer.links or None
        try:
            stored = self.session.add(MESSAGE, data, links=links, origin="model")
        except SecretError:
            from keepstone.secrets.policy import mask  # Loaded only where a home refuses secrets.

            # The user cannot change a model's answer, so it is stored with its secrets masked.
            stored = self.session.add(MESSAGE, mask(data), links=links, origin="model")
        if links and is_question(question.text):
            # Recall then ranks neither question nor answer before the quoted entry.
            self.session.link(question.id, stored.id, ANSWERED)

    def _prompt(self, turns: list[Entry]) -> Prompt:
        question = turns[-1]
        preview = self.preview(words_of_turn(question), turns)
        return Prompt(preview.stable, preview.varying + today(question.ts))

    def _with_earlier(self, question: Entry) -> list[Entry]:
        """Return as many of the last turns as fit into the request, ending with the question."""
        turns = self.turns()
        # In a retry the question is an earlier turn, and the turns after it are left out.
        places = [place for place, turn in enumerate(turns) if turn.id == question.id]
        left = _HISTORY
        chosen = [question]
        for turn in reversed(_without_retried(turns[: places[0]] if places else [])):
            left -= estimate_tokens(turn.text)
            if left < 0:
                break
            chosen.insert(0, turn)
        return chosen


def instructions(agent: str) -> str:
    """Return the beginning of an agent's system prompts, before its memory."""
    return _INSTRUCTIONS.format(agent=agent)


def today(moment: datetime) -> str:
    """Return the end of a system prompt, after the memory."""
    return f"\nToday is {moment:%A, %Y-%m-%d}.\n"


def _without_retried(turns: list[Entry]) -> list[Entry]:
    """Return turns without partial answers that were retried."""
    again = [turn.data["role"] == "assistant" for turn in turns[1:]]
    return [turn for turn, other in zip_longest(turns, again) if not (other and turn.data.get("cut"))]


def words_of_turn(turn: Entry) -> str:
    """Return the text of a turn, without its speaker."""
    content = turn.data.get("content")
    return content if isinstance(content, str) else turn.text


def _whole(text: str) -> str:
    """Join surrogate pairs and replace lone surrogates: some servers split a character between chunks."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _alternating(turns: list[Entry]) -> list[Message]:
    """Return turns as alternating messages that start with the user's; consecutive ones are merged."""
    messages: list[Message] = []
    for turn in turns:
        role: Literal["user", "assistant"] = "user" if turn.data["role"] == "user" else "assistant"
        words = words_of_turn(turn)
        if not words.strip():
            continue  # Servers reject requests with a blank message.
        if messages and messages[-1].role == role:
            # Providers require alternating roles. Two questions are consecutive if the first had no answer.
            messages[-1] = Message(role, f"{messages[-1].text}\n\n{words}")
        elif messages or role == "user":
            messages.append(Message(role, words))
    return messages
