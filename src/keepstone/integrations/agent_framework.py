"""Microsoft Agent Framework: a history provider that stores in the agent's sessions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from copy import deepcopy
from threading import Lock
from typing import Any, ClassVar, TypeGuard

from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import in_thread, needs, opened_agent, opened_session, write_in_thread
from keepstone.integrations.texts import called, returned, said, text_of_blocks
from keepstone.model import Record
from keepstone.services.memory_repository import Target
from keepstone.session import Session
from keepstone.text.messages.speakers import said_by

with needs("agent-framework"):
    from agent_framework import Content, HistoryProvider, Message

_TYPE = "message"


class KeepstoneHistoryProvider(HistoryProvider):
    """Conversation history of an agent: loads a session's messages before a run, and stores new ones.

    Each session of the framework is a session of the keepstone agent, and each message is an entry. Nothing
    is stored in the framework's session state.

    Args:
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        source_id: The provider's id, unique among the providers of one agent.
        options: ``load_messages``, ``store_inputs``, ``store_context_messages``, ``store_context_from`` and
            ``store_outputs``, as ``HistoryProvider`` takes them.
    """

    DEFAULT_SOURCE_ID: ClassVar[str] = "keepstone"
    DEFAULT_SESSION_ID: ClassVar[str] = "agent-framework"
    """The session of messages without a session id."""

    def __init__(
        self,
        home: Target = None,
        *,
        agent: str = DEFAULT_AGENT,
        source_id: str = DEFAULT_SOURCE_ID,
        **options: Any,
    ) -> None:
        """Open the home. Nothing is written before the first message."""
        super().__init__(source_id, **options)
        self._agent = opened_agent(home, agent)
        self._saving = Lock()

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002  The log is the memory.
        **_kwargs: Any,
    ) -> list[Message]:
        """Return a session's messages, oldest first. A missing session has none."""
        return await in_thread(self._load, session_id)

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,  # noqa: ARG002
        **_kwargs: Any,
    ) -> None:
        """Append the messages that the session does not have yet: all of them, or none.

        The messages may be new, or a whole transcript that begins with stored messages.
        """
        await write_in_thread(self._save, session_id, messages)

    def _session(self, session_id: str | None) -> Session:
        return opened_session(self._agent, session_id or self.DEFAULT_SESSION_ID)

    def _load(self, session_id: str | None) -> list[Message]:
        # Copy the data: messages keep references to parts of it, and records are shared.
        return [Message.from_dict(deepcopy(data)) for data in _stored(self._session(session_id))]

    def _save(self, session_id: str | None, messages: Sequence[Message]) -> None:
        given = [message.to_dict() for message in messages]
        with self._saving:  # Two calls with the same transcript must not both add it.
            session = self._session(session_id)
            # The file name contains only a digest of a long id, so the id is stored in the entries.
            named = {} if session_id in (session.id, None) else {"session_id": session_id}
            start = _overlap(_stored(session), given)
            session.add_many(
                {"type": _TYPE, "text": _text(message), "data": data, "origin": said_by(data), **named}
                for message, data in zip(messages[start:], given[start:], strict=True)
            )


def _stored(session: Session) -> list[Record]:
    """Return the stored messages of a session, which are shared and must not be changed."""
    found = (record.get("data") for record in session.records() if record["type"] == _TYPE)
    return [data for data in found if _is_message(data)]


def _is_message(data: Any) -> TypeGuard[Record]:
    return isinstance(data, dict) and isinstance(data.get("contents"), list) and "role" in data


def _overlap(stored: Sequence[Record], given: Sequence[Record]) -> int:
    """Return how many of the given messages are stored: up to the end of the longest common run.

    A common run is all stored messages, or messages at the end of the stored and at the start of the given
    messages. A single user message without an id is not a run: the user may have repeated it.
    """
    if not stored or not given:
        return 0
    # Compare only the end of the stored messages, so that the time does not depend on the length of the
    # history.
    known, ids = [*map(_identity, stored[-len(given) :])], [*map(_identity, given)]
    is_plain_input = stored[-1]["role"] == "user" and stored[-1].get("message_id") is None
    if len(stored) <= len(given):
        for start in range(len(ids) - len(known) + 1):
            if ids[start : start + len(known)] == known:
                # If a user says "yes" twice, without an id the second "yes" is a new message.
                if is_plain_input and start == 0 and len(known) == 1:
                    break
                return start + len(known)
    # Try the longest overlap first, as a short overlap may be a coincidence.
    for length in range(min(len(known), len(ids)), 0, -1):
        if known[-length:] == ids[:length] and not (is_plain_input and length == 1):
            return length
    return 0


def _identity(message: Record) -> tuple[str, ...]:
    if message.get("message_id") is not None:
        return ("id", str(message["message_id"]))
    contents = json.dumps(message["contents"], sort_keys=True, default=str)
    return ("content", str(message["role"]), contents)


def _text(message: Message) -> str:
    return text_of_blocks(map(_block, message.contents))


def _block(content: Content) -> Record:
    if content.type == "function_call":
        return called(content.name, content.parse_arguments())
    if content.type == "function_result":
        return returned(content.result)
    return said(content.text)
