"""Strands Agents: a session manager that stores messages and state as entries in the agent's sessions."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from keepstone.errors import EntryNotFoundError, KeepstoneError
from keepstone.filesystem.layout import DEFAULT_AGENT
from keepstone.integrations.homes import needs, opened_agent, opened_session
from keepstone.integrations.texts import STATE, called, returned, said, text_of_blocks
from keepstone.model import Record
from keepstone.services.memory_repository import Target
from keepstone.session import Session as KeepstoneSession
from keepstone.text.messages.speakers import said_by

with needs("strands", but="in an environment without the extras mcp and all, which need a newer mcp"):
    from strands.session.repository_session_manager import RepositorySessionManager
    from strands.session.session_repository import SessionRepository
    from strands.types.exceptions import SessionException
    from strands.types.session import Session, SessionAgent, SessionMessage

if TYPE_CHECKING:
    from strands.multiagent.base import MultiAgentBase

_SESSION = "session"
_MESSAGE = "message"


class KeepstoneSessionManager(RepositorySessionManager, SessionRepository):
    """Session manager of a Strands agent: restores its messages and state, and stores new ones.

    Each session is a session of the keepstone agent. It has an entry for each message, whose text is
    searched, an entry for the session, and an entry for each Strands agent. A search finds a redacted message
    by its redaction only.

    Args:
        session_id: The id of the session; it must not have a path separator. It is created if it is missing.
        home: What ``keepstone.open`` takes, or a Home.
        agent: The agent of the home. Memory of other agents cannot be accessed.
        kwargs: Further arguments of ``RepositorySessionManager``.

    Raises:
        ValueError: The session id has a path separator, or the home or agent is invalid.
    """

    def __init__(
        self, session_id: str, home: Target = None, *, agent: str = DEFAULT_AGENT, **kwargs: Any
    ) -> None:
        """Open the home, and create the session if it is missing."""
        self._agent = opened_agent(home, agent)
        super().__init__(session_id=session_id, session_repository=self, **kwargs)

    def create_session(self, session: Session, **_kwargs: Any) -> Session:
        """Create a session; raise SessionException if it exists."""
        if self.read_session(session.session_id) is not None:
            raise SessionException(f"Session {session.session_id} already exists")
        self._put(session.session_id, _SESSION, _SESSION, session.to_dict())
        return session

    def read_session(self, session_id: str, **_kwargs: Any) -> Session | None:
        """Return a session; None if it is missing."""
        data = self._data(session_id, _SESSION)
        return None if data is None else Session.from_dict(data)

    def delete_session(self, session_id: str, **_kwargs: Any) -> None:
        """Remove every byte of a session; raise SessionException if it is missing."""
        with _session_errors():
            removed = self._session(session_id).remove()
        if not removed:
            raise SessionException(f"Session {session_id} does not exist")

    def create_agent(self, session_id: str, session_agent: SessionAgent, **_kwargs: Any) -> None:
        """Add an agent to a session."""
        entry_id = f"agent/{_checked('agent', session_agent.agent_id)}"
        self._put(session_id, "agent", entry_id, session_agent.to_dict())

    def read_agent(self, session_id: str, agent_id: str, **_kwargs: Any) -> SessionAgent | None:
        """Return an agent; None if it is missing."""
        data = self._data(session_id, f"agent/{_checked('agent', agent_id)}")
        return None if data is None else SessionAgent.from_dict(data)

    def update_agent(self, session_id: str, session_agent: SessionAgent, **_kwargs: Any) -> None:
        """Replace an agent, but keep its time of creation; raise SessionException if it is missing."""
        previous = self.read_agent(session_id, session_agent.agent_id)
        if previous is None:
            raise SessionException(f"Agent {session_agent.agent_id} in session {session_id} does not exist")
        # Strands gives each object a new time; its own session managers keep the first time.
        session_agent.created_at = previous.created_at
        self.create_agent(session_id, session_agent)

    def create_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_kwargs: Any
    ) -> None:
        """Add a message of an agent."""
        entry_id = _message_id(agent_id, session_message.message_id)
        data = {"agent_id": agent_id, **session_message.to_dict()}
        self._put(session_id, _MESSAGE, entry_id, data, _text(session_message), said_by(data["message"]))

    def read_message(
        self, session_id: str, agent_id: str, message_id: int, **_kwargs: Any
    ) -> SessionMessage | None:
        """Return a message; None if it is missing."""
        data = self._data(session_id, _message_id(agent_id, message_id))
        return None if data is None else SessionMessage.from_dict(data)

    def update_message(
        self, session_id: str, agent_id: str, session_message: SessionMessage, **_kwargs: Any
    ) -> None:
        """Replace a message, but keep its time of creation; raise SessionException if it is missing."""
        previous = self.read_message(session_id, agent_id, session_message.message_id)
        if previous is None:
            raise SessionException(f"Message {session_message.message_id} does not exist")
        session_message.created_at = previous.created_at
        self.create_message(session_id, agent_id, session_message)

    def list_messages(
        self, session_id: str, agent_id: str, limit: int | None = None, offset: int = 0, **_kwargs: Any
    ) -> list[SessionMessage]:
        """Return an agent's messages sorted by id; raise SessionException if session or agent is missing."""
        if self.read_agent(session_id, agent_id) is None:
            raise SessionException(f"Agent {agent_id} in session {session_id} does not exist")
        with _session_errors():
            records = self._session(session_id).records()
        found = [
            record["data"]
            for record in records
            if record["type"] == _MESSAGE and _is_message(record.get("data"), agent_id)
        ]
        # Sort by id, not by time, because an update of a message changes its time.
        found.sort(key=lambda data: int(data["message_id"]))
        end = None if limit is None else offset + limit
        return [SessionMessage.from_dict(data) for data in found[offset:end]]

    def create_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **_kwargs: Any) -> None:
        """Store the state of a graph or swarm."""
        entry_id = f"multi_agent/{_checked('agent', multi_agent.id)}"
        self._put(session_id, "multi_agent", entry_id, multi_agent.serialize_state())

    def read_multi_agent(self, session_id: str, multi_agent_id: str, **_kwargs: Any) -> Record | None:
        """Return the state of a graph or swarm; None if it is missing."""
        return self._data(session_id, f"multi_agent/{_checked('agent', multi_agent_id)}")

    def update_multi_agent(self, session_id: str, multi_agent: MultiAgentBase, **_kwargs: Any) -> None:
        """Replace the state of a graph or swarm; raise SessionException if it is missing."""
        if self.read_multi_agent(session_id, multi_agent.id) is None:
            raise SessionException(
                f"MultiAgent state {multi_agent.id} in session {session_id} does not exist"
            )
        self.create_multi_agent(session_id, multi_agent)

    def _session(self, session_id: str) -> KeepstoneSession:
        return opened_session(self._agent, _checked("session", session_id))

    def _data(self, session_id: str, entry_id: str) -> Record | None:
        with _session_errors():
            try:
                return self._agent.get(entry_id, self._session(session_id).id).data
            except EntryNotFoundError:
                return None

    def _put(
        self,
        session_id: str,
        kind: str,
        entry_id: str,
        data: Record,
        text: str | None = None,
        origin: str | None = None,
    ) -> None:
        """Store an entry: a message has a text, and state has none."""
        keys = STATE if text is None else {"text": text}
        with _session_errors():
            self._session(session_id).put(
                {"id": entry_id, "type": kind, "data": data, "origin": origin, **keys}
            )


@contextmanager
def _session_errors() -> Iterator[None]:
    try:
        yield
    except KeepstoneError as error:
        raise SessionException(str(error)) from error


def _checked(kind: str, name: str) -> str:
    """Return an id; ValueError if it has a path separator, as in Strands' own session managers."""
    if "/" in name or os.sep in name:
        raise ValueError(f"{kind}_id={name} | id cannot contain path separators")
    return name


def _message_id(agent_id: str, message_id: int) -> str:
    if not isinstance(message_id, int):
        raise ValueError(f"message_id=<{message_id}> | message id must be an integer")  # noqa: TRY004
    return f"message/{_checked('agent', agent_id)}/{message_id}"


def _is_message(data: Any, agent_id: str) -> bool:
    return isinstance(data, dict) and data.get("agent_id") == agent_id and "message_id" in data


def _text(session_message: SessionMessage) -> str:
    """Return the text of a message, or of its redaction, for the search."""
    # ``to_message`` returns the redaction instead of the message: the original text must not be searched.
    message = session_message.to_message()
    return text_of_blocks(map(_block, message["content"]), message["role"])


def _block(block: Any) -> Record:
    if "toolUse" in block:
        return called(block["toolUse"]["name"], block["toolUse"]["input"])
    if "toolResult" in block:
        content = block["toolResult"]["content"]
        return returned([said(part["text"]) if "text" in part else part.get("json") for part in content])
    return said(block.get("text"))
