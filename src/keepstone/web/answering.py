"""Who answers in the chat: the conversation of ``keepstone chat``, so that both ways in answer alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from keepstone.agent import Agent
from keepstone.chat import ChatModel, Conversation, ModelError
from keepstone.chat.tools import Ask
from keepstone.notes.notes import Notes


class Answerer(Protocol):
    """Answers what a person writes in the chat."""

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store a message in the session, yield the answer piece by piece, and store the answer.

        It is called in a thread, and each piece is shown as soon as it comes. What it raises as a
        ``KeepstoneError`` or ``ValueError`` is shown in place of the answer.
        """


class Talking:
    """Answers with a model, and with what memory and notes hold.

    Args:
        notes: The notes of the project and its user.
        model: What answers.
        ask: Asks the person whether a note of the model's is saved; without it none is.
    """

    def __init__(self, notes: Notes, model: ChatModel, ask: Ask | None = None) -> None:
        self._notes = notes
        self._model = model
        self._ask = ask

    def asking(self, ask: Ask) -> Talking:
        """Return one that asks a person before it saves a note of the model's."""
        return Talking(self._notes, self._model, ask)

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store a message, yield the answer piece by piece, and store it; ModelError if the model fails."""
        conversation = Conversation(agent, self._notes, self._model, agent.session(session), ask=self._ask)
        for delta in conversation.send(message):
            if delta.kind == "error":
                raise ModelError(delta.text)
            if delta.kind == "text":
                yield delta.text
