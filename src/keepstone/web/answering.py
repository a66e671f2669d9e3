"""Answers for the chat page, with the same ``Conversation`` as ``keepstone chat``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from keepstone.agent import Agent
from keepstone.chat import ChatModel, Conversation, ModelError
from keepstone.chat.tools import Ask
from keepstone.notes.notes import Notes


class Answerer(Protocol):
    """Answers the messages of the chat page."""

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store a message in the session, yield the answer in chunks, and store the answer.

        Called in a thread; each chunk is shown at once. A ``KeepstoneError`` or ``ValueError`` is shown in
        place of the answer.
        """


class Talking:
    """Answers with a model, which sees memory and notes.

    Args:
        notes: The notes of the project and its user.
        model: The model.
        ask: Asks the user to confirm a note that the model wants to save; without it none is saved.
        reason: The reason for the choice of the model, for people.
    """

    def __init__(self, notes: Notes, model: ChatModel, ask: Ask | None = None, *, reason: str = "") -> None:
        self._notes = notes
        self.model = model
        self._ask = ask
        self.reason = reason

    # All pages share one answerer, but a confirmation belongs to the page whose model asks. So each page has
    # its own copy.
    def asking(self, ask: Ask) -> Talking:
        """Return a copy that asks the user before it saves a note from the model."""
        return Talking(self._notes, self.model, ask, reason=self.reason)

    def answer(self, agent: Agent, session: str, message: str) -> Iterator[str]:
        """Store a message, yield the answer in chunks, and store the answer; may raise ModelError."""
        conversation = Conversation(agent, self._notes, self.model, agent.session(session), ask=self._ask)
        for delta in conversation.send(message):
            if delta.kind == "error":
                raise ModelError(delta.text)
            if delta.kind == "text":
                yield delta.text
