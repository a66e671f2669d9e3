"""A conversation: each turn is remembered, and each answer knows what was.

for delta in Conversation(agent, Notes("."), model).send("Which package manager do we use?"):
    print(delta.text, end="")
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Literal

from keepstone.agent import Agent
from keepstone.chat.cancellation import Stoppable
from keepstone.chat.messages import ChatModel, Message, ModelError, Prompt, Request, ToolCall, ToolResult
from keepstone.chat.tools import Ask, MemoryTools, ToolBudget
from keepstone.context import estimate_tokens
from keepstone.errors import KeepstoneError, SecretError
from keepstone.log.arguments import new_id
from keepstone.model import Entry
from keepstone.notes.notes import Notes
from keepstone.session import Session
from keepstone.text.display import frames_of

logger = logging.getLogger("keepstone.chat")

MESSAGE = "message"
"""The type of the entries that turns are stored as."""
BUDGET = 4000
"""Tokens of memory in a system prompt."""
_HISTORY = 8000
"""Tokens of earlier turns that go with a question."""
_TURNS = 60
"""Earlier turns that go with a question, at most."""
_ROUNDS = 8
"""How often a model may ask for tools before it has to answer."""
_INSTRUCTIONS = (
    "You are {agent}, an assistant at a terminal with a memory of your own. What you remember stands below; "
    "use it in your answers, and say from when it is where that matters. "
    'Save with the tool "remember" what will matter in later sessions; '
    'look up with "recall" what does not stand below. Answer briefly.\n\n'
)


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of what happens while an answer comes."""

    kind: Literal["text", "tool", "error"]
    text: str
    """More of the answer; the use of a tool in a few words; or what went wrong and what to do."""


@dataclass(slots=True)
class _ModelAnswer:
    """What came of an answer so far."""

    text: str = ""
    tools: list[str] = field(default_factory=list)
    cut: str = "stopped"
    """Why it is not whole; empty once it is."""


class Conversation:
    """One agent, one session and a model that talk with a person. Not to be shared between threads.

    Args:
        agent: Whose memory it is.
        notes: The notes of the project and its user; every request holds them.
        model: What answers.
        session: Where turns are stored, and whose turns are gone on with; a new one if not given.
        budget: The most tokens of memory in a system prompt, as ``estimate_tokens`` counts them.
        ask: Asks the person whether a note that the model proposes is saved; without it no note of a
            model's is. It is called in the thread that takes the answer.
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
        # Not made before its first message: so leaving has nothing to remove that others may have written to.
        self.session = agent.session(new_id()) if session is None else session
        self.sent: Prompt | None = None
        """The system prompt of the last request; None before the first."""
        self._budget = budget
        self._ask = ask
        self._pieces: Stoppable[str | ToolCall] | None = None
        self._stopped = False

    def send(self, text: str) -> Iterator[Delta]:
        """Store what a person says, then yield the answer as it comes, and store that too.

        When this returns the message is on the disk; the model is asked with the first ``next``. An answer
        that was cut off, by the server or by ``stop``, is stored as far as it came, with ``cut`` saying why.

        Raises:
            KeepstoneError: The message or the answer could not be stored, or memory could not be read.
                What the model does wrong is a delta of kind ``"error"`` instead.
        """
        question = self.session.add(MESSAGE, {"role": "user", "content": text})
        self._stopped = False
        return self._answered(question)

    def retry(self) -> Iterator[Delta]:
        """Answer the last message of the person anew, which is not stored again.

        Raises:
            ValueError: There is none in this session.
        """
        said = [entry for entry in self.turns() if entry.data.get("role") == "user"]
        if not said:
            raise ValueError("there is no message to answer yet: write one first")
        self._stopped = False
        return self._answered(said[-1])

    def stop(self) -> None:
        """Give up the answer that is coming, keeping what came. Any thread may call."""
        self._stopped = True
        if self._pieces is not None:
            self._pieces.stop()

    @property
    def stopped(self) -> bool:
        """Whether the answer that was coming last was given up."""
        return self._stopped

    def turns(self, limit: int = _TURNS) -> list[Entry]:
        """Return the last turns of the session, oldest first, whatever other messages are among them."""
        most = limit
        while True:
            found = self.session.entries(limit=most, types=[MESSAGE])
            turns = [entry for entry in found if entry.data.get("role") in ("user", "assistant")]
            if len(turns) >= limit or len(found) < most:
                return turns[max(0, len(turns) - limit) :]
            most *= 4

    def preview(self, question: str | None = None, sent: Iterable[Entry] = ()) -> Prompt:
        """Return the system prompt that would go with a question, or with none in particular.

        Turns that are ``sent`` beside it do not stand in it again.
        """
        window = [turn.id for turn in sent]
        context = self.agent.context(question, budget=self._budget, notes=self.notes, window=window)
        head = _INSTRUCTIONS.format(agent=self.agent.slug)
        return Prompt(head + context.text[: context.stable], context.text[context.stable :])

    def close(self) -> bool:
        """Give up what is coming; False if there is no session, because nothing was said in a new one."""
        self.stop()
        return self.session.info() is not None

    def _answered(self, question: Entry) -> Iterator[Delta]:
        answer = _ModelAnswer()
        try:
            yield from self._rounds(question, answer)
        except ModelError as error:
            answer.cut = str(error)
            yield Delta("error", answer.cut)
        finally:
            self._pieces = None
            self._store(answer)

    def _rounds(self, question: Entry, answer: _ModelAnswer) -> Iterator[Delta]:
        """Ask, use the tools that the model wants, ask again, until it wants none."""
        tools = MemoryTools(self.agent, self.notes, self.session, self._ask)
        results = ToolBudget(tools)
        turns = self._with_earlier(question)
        messages = _alternating(turns)
        for _ in range(_ROUNDS):
            # Made anew each time: what a tool has just saved is in the next request.
            self.sent = self._prompt(turns)
            begin, calls = len(answer.text), list[ToolCall]()
            yield from self._streamed(Request(self.sent, (*messages,), tools), answer, calls)
            if not calls and not answer.text.strip() and not self._stopped:
                raise ModelError(
                    f"{self.model.name} answered nothing. Your message is kept: /retry asks again."
                )
            if self._stopped or not calls:
                answer.cut = "stopped" if self._stopped else ""
                return
            messages += [Message("assistant", _whole(answer.text[begin:]), calls=(*calls,))]
            answered = [ToolResult(call.id, results.call(call.name, call.arguments)) for call in calls]
            messages += [Message("user", "", results=(*answered,))]
        raise ModelError(
            f"{self.model.name} asked for tools {_ROUNDS} times without an answer; /retry asks again"
        )

    def _streamed(self, request: Request, answer: _ModelAnswer, calls: list[ToolCall]) -> Iterator[Delta]:
        self._pieces = Stoppable(self.model.answer(request))
        if self._stopped:
            self._pieces.stop()
        try:
            for piece in self._pieces:
                if isinstance(piece, str):
                    answer.text += piece
                    yield Delta("text", piece)
                else:
                    calls.append(piece)
                    answer.tools.append(piece.name)
                    yield Delta("tool", f"{piece.name} {piece.arguments}")
        except KeepstoneError:
            raise
        except Exception as error:
            # A model is other people's code; its error may hold a key, so only its type is told.
            logger.error("the model raised %s at\n%s", type(error).__name__, frames_of(error))  # noqa: TRY400
            raise ModelError(
                f"{self.model.name} failed ({type(error).__name__}). Your message is kept: /retry asks again."
            ) from error
        finally:
            self._pieces.stop()

    def _store(self, answer: _ModelAnswer) -> None:
        if not answer.text.strip():
            return
        data: dict[str, Any] = {"role": "assistant", "content": _whole(answer.text), "model": self.model.name}
        data |= {"tools": answer.tools} if answer.tools else {}
        data |= {"cut": answer.cut} if answer.cut else {}
        try:
            self.session.add(MESSAGE, data)
        except SecretError:
            from keepstone.secrets.policy import mask  # Loaded only where a home refuses secrets.

            # The person cannot change what a model said, so it is kept without its secrets.
            self.session.add(MESSAGE, mask(data))

    def _prompt(self, turns: list[Entry]) -> Prompt:
        question = turns[-1]
        preview = self.preview(words_of_turn(question), turns)
        return Prompt(preview.stable, f"{preview.varying}\nToday is {question.ts:%A, %Y-%m-%d}.\n")

    def _with_earlier(self, question: Entry) -> list[Entry]:
        """Return as many of the last turns as fit, the question last."""
        turns = self.turns()
        places = [place for place, turn in enumerate(turns) if turn.id == question.id]
        left = _HISTORY
        chosen = [question]
        for turn in reversed(_without_retried(turns[: places[0]] if places else [])):
            left -= estimate_tokens(turn.text)
            if left < 0:
                break
            chosen.insert(0, turn)
        return chosen


def _without_retried(turns: list[Entry]) -> list[Entry]:
    """Return turns without the answers that were cut off and then given again."""
    again = [turn.data["role"] == "assistant" for turn in turns[1:]]
    return [turn for turn, other in zip_longest(turns, again) if not (other and turn.data.get("cut"))]


def words_of_turn(turn: Entry) -> str:
    """Return what was said in a turn, without who said it."""
    content = turn.data.get("content")
    return content if isinstance(content, str) else turn.text


def _whole(text: str) -> str:
    """Return a text whose characters are whole: some servers cut one in two, which no file can hold."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _alternating(turns: list[Entry]) -> list[Message]:
    """Return turns as messages: the person begins, and two in a row by the same are one."""
    messages: list[Message] = []
    for turn in turns:
        role: Literal["user", "assistant"] = "user" if turn.data["role"] == "user" else "assistant"
        words = words_of_turn(turn)
        if not words.strip():
            continue  # Servers refuse messages without words, and every later request with one.
        if messages and messages[-1].role == role:
            messages[-1] = Message(role, f"{messages[-1].text}\n\n{words}")
        elif messages or role == "user":
            messages.append(Message(role, words))
    return messages
